"""A sink that only keeps what it is told, and compares it with what the API server lists."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence

from kube.decoding.decoding import SCORED_KINDS, ApiObject, Kind, decode_list
from kube.decoding.jobs import JobInfo
from kube.objects.objects import PodInfo, ReplicaSetInfo
from kube.objects.storage_objects import StorageCapacityInfo, VolumeClaimInfo
from testing.servers.cluster_objects import ClusterWriter


class StoredObjects:
    """Objects by kind and key.

    mistakes : what must not happen: an object twice in a list, the deletion of an unknown one
    """

    def __init__(self, kinds: Sequence[Kind] = SCORED_KINDS) -> None:
        self._lock = threading.Lock()
        self._kinds = kinds
        self._objects: dict[Kind, dict[str, ApiObject]] = {kind: {} for kind in kinds}
        self.mistakes: list[str] = []

    def replace(self, kind: Kind, objects: Sequence[ApiObject]) -> None:
        by_key = {_key(obj): obj for obj in objects}
        with self._lock:
            if len(by_key) != len(objects):
                self.mistakes.append(f"{len(objects) - len(by_key)} {kind.value} twice in a list")
            self._objects[kind] = by_key

    def put(self, kind: Kind, obj: ApiObject) -> None:
        with self._lock:
            self._objects[kind][_key(obj)] = obj

    def delete(self, kind: Kind, obj: ApiObject) -> None:
        with self._lock:
            if self._objects[kind].pop(_key(obj), None) is None:
                self.mistakes.append(f"deletion of {kind.value} {obj.name}, which is not there")

    def names(self, kind: Kind) -> set[str]:
        """Of the objects there are."""
        with self._lock:
            return {obj.name for obj in self._objects[kind].values()}

    def get(self, kind: Kind, name: str) -> ApiObject | None:
        """An object by its name."""
        with self._lock:
            return next((obj for obj in self._objects[kind].values() if obj.name == name), None)

    def equals_server(self, writer: ClusterWriter) -> bool:
        """Whether every object is as the API server lists it now, field by field, and there is no other."""
        for kind in self._kinds:
            listed = decode_list(kind, json.dumps({"items": writer.list_all(kind.value), "metadata": {}}).encode())
            with self._lock:
                if {_key(obj): obj for obj in listed.objects} != self._objects[kind]:
                    return False
        return not self.mistakes


def _key(obj: ApiObject) -> str:
    if isinstance(obj, PodInfo | ReplicaSetInfo | JobInfo):
        return obj.uid
    return f"{obj.namespace}/{obj.name}" if isinstance(obj, VolumeClaimInfo | StorageCapacityInfo) else obj.name
