"""Two nodes, claims that wait, free volumes; an API server that writes what it is asked to."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from kube.client.api_answer import ApiAnswer, answered
from kube.decoding.decoding import decode_pod
from kube.objects.objects import PodInfo
from kube.objects.storage_objects import VolumeClaimInfo, VolumeInfo
from scheduler.binding.volume_binder import VolumeBinder
from tests.placement.storage_cluster import StorageCluster
from tests.placement.storage_manifests import Manifest, claim, pod, storage_class, term, using, volume

HOST = "kubernetes.io/hostname"
SELECTED = "volume.kubernetes.io/selected-node"


def waiting(name: str, of_class: str = "local", size: str = "1Gi", **more: Any) -> Manifest:
    """A claim that waits for its first consumer."""
    made = claim(name, size, storage_class=of_class, phase="Pending", **more)
    made["metadata"] |= {"uid": f"uid-{name}", "resourceVersion": "10"}
    return made


def local(name: str, on: str, size: str = "1Gi") -> Manifest:
    """A free volume of one node."""
    made = volume(name, size, storage_class="local", **term(HOST, on))
    made["metadata"]["resourceVersion"] = "10"
    return made


def merged(manifest: Manifest, change: Mapping[str, Any]) -> Manifest:
    """RFC 7396."""
    result = dict(manifest)
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key, {}), value) if isinstance(value, Mapping) else value
    return result


@dataclass
class ApiServer:
    """Implements Session. Keeps the objects it was given, and answers as a real one where versions do not match."""

    objects: dict[str, Manifest] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    says: list[ApiAnswer] = field(default_factory=list)  # instead, one after the other
    version: int = 100

    def put(self, manifest: Manifest) -> None:
        self.objects[manifest["metadata"]["name"]] = manifest

    async def request(
        self, method: str, path: str, body: bytes | None, *, content_type: str = "", seconds: float
    ) -> ApiAnswer:
        self.asked.append(f"{method} {path}")
        await asyncio.sleep(0)
        if self.says:
            return self.says.pop(0)
        before, change = self.objects[path.rpartition("/")[2]], json.loads(body or b"")
        asked, known = change["metadata"], before["metadata"]
        for key in ("uid", "resourceVersion"):
            if key in asked and asked[key] != known.get(key):
                return answered(409, b"{}")
        self.version += 1
        after = merged(before, merged(change, {"metadata": {"resourceVersion": str(self.version)}}))
        self.put(after)
        return answered(200, json.dumps(after).encode())


class World:
    """nodes a and b, the classes `local` and `made`, and the plugin over it."""

    def __init__(self, *manifests: Manifest, seconds: float = 600.0) -> None:
        self.server = ApiServer()
        self.cluster = StorageCluster(
            ({"kind": "Node", "metadata": {"name": name, "labels": {HOST: name}}} for name in ("a", "b")),
            clock=lambda: self.now,
        )
        for one in (storage_class("local"), storage_class("made", "example.com/made"), *manifests):
            self.put(one)
        self.lock, self.now, self.kept = threading.RLock(), 1000.0, dict[str, float]()
        self.plugin = VolumeBinder(
            self.server,
            self.cluster.view,
            locked=self.locked,
            keep=self.kept.__setitem__,
            seconds=seconds,
            clock=lambda: self.now,
        )

    @contextmanager
    def locked(self) -> Iterator[None]:
        with self.lock:
            yield

    first: PodInfo

    def put(self, manifest: Manifest) -> None:
        """The API server has it, and the watch brings it."""
        self.server.put(manifest)
        self.cluster.put(manifest)

    def watch(self, name: str, **change: Any) -> None:
        """Somebody changes an object (merged), and the watch brings it."""
        self.server.version += 1
        version = {"metadata": {"resourceVersion": str(self.server.version)}}
        with self.lock:
            self.put(merged(self.server.objects[name], merged(change, version)))

    def bind(self, name: str, volume_name: str) -> None:
        """As the volume controller does."""
        self.watch(volume_name, status={"phase": "Bound"})
        self.watch(
            name,
            metadata={"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
            spec={"volumeName": volume_name},
        )

    def pod(self, name: str, *claims: str) -> PodInfo:
        """A pod that waits, in the tables."""
        manifest = pod(name, *using(*claims))
        self.cluster.put(manifest)
        return decode_pod(manifest)

    def claim(self, name: str) -> VolumeClaimInfo:
        """As everybody reckons with it."""
        return self.cluster.index.storage.claims["default", name]

    def volume(self, name: str) -> VolumeInfo:
        """As everybody reckons with it."""
        return self.cluster.index.storage.volumes[name]
