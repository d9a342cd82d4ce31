"""PodGroups of one API from the watch into the directory, under the lock of the tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from placement.pod_groups.group_apis import OURS, GroupApi
from placement.pod_groups.pod_group import PodGroupInfo
from scheduler.gangs.directory import GangDirectory


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
