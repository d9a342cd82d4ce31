"""PodGroups of one API from the watch into the directory, under the lock of the tables; and how many there are in each
phase, for metrics and the status page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager

from kube.client.kubernetes_contract import OptionalSink
from placement.pod_groups.group_apis import OURS, GroupApi
from placement.pod_groups.pod_group import PodGroupInfo
from scheduler.gangs.directory import GangDirectory

_NEW = "Pending"
"""No status has been written yet."""


class PodGroupSink:
    """Implements OptionalSink. reading: takes the lock of the tables, as LiveTables.reading."""

    def __init__(
        self, directory: GangDirectory, reading: Callable[[], AbstractContextManager[object]], api: GroupApi = OURS
    ) -> None:
        self._directory, self._reading, self._api = directory, reading, api

    def replace(self, objects: Sequence[PodGroupInfo]) -> None:
        with self._reading():
            self._directory.replace_groups(objects, self._api)

    def absent(self) -> None:
        """The API server does not serve the API."""
        with self._reading():
            self._directory.replace_groups([], self._api, is_served=False)

    def put(self, obj: PodGroupInfo) -> None:
        """One is new or has changed."""
        with self._reading():
            self._directory.put_group(obj)

    def delete(self, obj: PodGroupInfo) -> None:
        with self._reading():
            self._directory.delete_group(obj)


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
