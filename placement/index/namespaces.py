"""Namespaces and their labels, by which affinity terms and rules of policies choose pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cluster.tables.changes import Change
from kube.decoding.decoding import ApiObject, Kind
from kube.objects.constraints import PodAffinityTerm
from kube.objects.labels import selector_matches
from kube.objects.objects import NamespaceInfo


class Namespaces:
    """By name. A namespace that is not known has no labels."""

    def __init__(self) -> None:
        self._of: dict[str, NamespaceInfo] = {}
        self.version = 0
        """Grows with every change: what was concluded from namespaces before holds no longer."""

    def replace(self, namespaces: Sequence[NamespaceInfo]) -> None:
        self._of = {one.name: one for one in namespaces}
        self.version += 1

    def put(self, namespace: NamespaceInfo) -> None:
        """One is new or has changed."""
        if self._of.get(namespace.name) != namespace:
            self._of[namespace.name] = namespace
            self.version += 1

    def delete(self, namespace: NamespaceInfo) -> None:
        if self._of.pop(namespace.name, None) is not None:
            self.version += 1

    def labels_of(self, namespace: str) -> Mapping[str, str] | None:
        """None = it is not known. For any thread."""
        known = self._of.get(namespace)
        return None if known is None else known.labels

    def annotations_of(self, namespace: str) -> Mapping[str, str]:
        """Return ours; empty where the namespace is not known. For any thread."""
        known = self._of.get(namespace)
        return {} if known is None else known.annotations

    def meant_by(self, term: PodAffinityTerm, namespace: str) -> bool:
        """Whether a term means pods of a namespace (AffinityTerm.Matches in pkg/scheduler/framework/types.go)."""
        if namespace in term.namespaces:
            return True
        if term.namespace_selector is None:
            return False
        known = self._of.get(namespace)
        return selector_matches(term.namespace_selector, {} if known is None else known.labels)


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
