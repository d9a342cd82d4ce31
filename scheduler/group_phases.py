"""How many PodGroups there are in each phase, as the watch has them: for metrics and the status page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from kube.client.kubernetes_contract import OptionalSink
from placement.pod_groups.pod_group import PodGroupInfo

_NEW = "Pending"
"""No status has been written yet."""


class GroupPhases:
    """Implements OptionalSink, for one API's groups; passes everything on. Counts may be asked for by any thread."""

    def __init__(self, sink: OptionalSink[PodGroupInfo]) -> None:
        self._sink = sink
        self._phases: dict[str, str] = {}

    def counts(self) -> Mapping[str, int]:
        return Counter(list(self._phases.values()))

    def replace(self, objects: Sequence[PodGroupInfo]) -> None:
        self._phases = {group.key: group.status.phase or _NEW for group in objects}
        self._sink.replace(objects)

    def absent(self) -> None:
        """There are none: the API server does not serve them."""
        self._phases = {}
        self._sink.absent()

    def put(self, obj: PodGroupInfo) -> None:
        """One is new or has changed."""
        self._phases[obj.key] = obj.status.phase or _NEW
        self._sink.put(obj)

    def delete(self, obj: PodGroupInfo) -> None:
        self._phases.pop(obj.key, None)
        self._sink.delete(obj)
