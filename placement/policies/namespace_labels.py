"""Labels of namespaces, where no index of the whole cluster is kept: a scorer by itself needs them for rules alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cluster.tables.changes import Change
from kube.decoding.decoding import ApiObject, Kind
from kube.objects.objects import NamespaceInfo
from placement.index.namespaces import Namespaces


class NamespaceLabels:
    """Implements cluster.follower.Follower, of Kind.NAMESPACES."""

    def __init__(self) -> None:
        self._namespaces = Namespaces()

    def labels_of(self, namespace: str) -> Mapping[str, str] | None:
        """None = it is not known. For any thread."""
        return self._namespaces.labels_of(namespace)

    def apply(self, changes: Sequence[Change]) -> None:
        """Nothing: nodes and pods are of no concern."""

    def rebuild(self) -> None:
        """Nothing is made from nodes and pods."""

    def replace(self, kind: Kind, objects: Sequence[ApiObject]) -> None:
        self._namespaces.replace([one for one in objects if isinstance(one, NamespaceInfo)])

    def put(self, kind: Kind, item: ApiObject) -> None:
        """One is new or has changed."""
        if isinstance(item, NamespaceInfo):
            self._namespaces.put(item)

    def delete(self, kind: Kind, item: ApiObject) -> None:
        if isinstance(item, NamespaceInfo):
            self._namespaces.delete(item)
