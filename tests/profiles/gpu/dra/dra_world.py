"""Nodes with devices, claims, the plugin over them, and an API server that keeps what it is sent."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from kube.client.api_answer import ApiAnswer, answered
from kube.objects.objects import PodInfo, PodResourceClaim
from placement.status import Status
from profiles.gpu.dra.claim_table import DraTable
from profiles.gpu.dra.dynamic_resources import DynamicResources
from testing.placement.views import node_named, passing, pod_with, view_of
from tests.profiles.gpu.dra.manifests import (
    Manifest,
    claim_of,
    class_of,
    device,
    device_class,
    resource_slice,
    slice_of,
)
from tests.scheduler.volumes.volume_world import ApiServer


@dataclass
class ClaimServer(ApiServer):
    """Implements Session; what is submitted waits until `World.settle`.

    after : called once, when a request has been carried out; what it returns is the answer instead
    """

    submitted: list[Coroutine[Any, Any, None]] = field(default_factory=list)
    after: Callable[[], ApiAnswer | None] | None = None

    async def request(
        self, method: str, path: str, body: bytes | None, *, content_type: str = "", seconds: float
    ) -> ApiAnswer:
        name = path.removesuffix("/status")
        if method == "GET":
            self.asked.append(f"GET {path}")
            if self.says:
                return self.says.pop(0)
            known = self.objects.get(name.rpartition("/")[2])
            return answered(404, b"{}") if known is None else answered(200, json.dumps(known).encode())
        if method in ("POST", "DELETE"):
            answer = self._made_or_gone(method, path, json.loads(body or b""))
            after, self.after = self.after, None
            return answer if after is None else after() or answer
        if name.rpartition("/")[2] not in self.objects:
            return answered(404, b"{}")
        answer = await super().request(method, name, body, content_type=content_type, seconds=seconds)
        after, self.after = self.after, None
        return answer if after is None else after() or answer

    def _made_or_gone(self, method: str, path: str, sent: Manifest) -> ApiAnswer:
        self.asked.append(f"{method} {path}")
        if method == "DELETE":
            self.objects.pop(path.rpartition("/")[2], None)
            return answered(200, b"{}")
        name = sent["metadata"]["name"]
        if name in self.objects:
            return answered(409, b"{}")
        self.version += 1
        sent["metadata"] |= {"uid": f"uid-{name}", "resourceVersion": str(self.version)}
        self.put(sent)
        return answered(201, json.dumps(sent).encode())

    def submit(self, work: Coroutine[Any, Any, None]) -> Future[None]:
        self.submitted.append(work)
        return Future()

    def status(self, name: str) -> Manifest:
        found: Manifest = self.objects[name].get("status", {})
        return found

    def devices(self, name: str) -> list[str]:
        """Of a claim, as it is written."""
        results = self.status(name).get("allocation", {}).get("devices", {}).get("results", [])
        return [f"{one['pool']}/{one['device']}" for one in results]

    def users(self, name: str) -> list[str]:
        return [one["uid"] for one in self.status(name).get("reservedFor", [])]


class World:
    """Nodes a and b with two devices each, the class `gpu`."""

    def __init__(
        self,
        *claims: Manifest,
        slices: tuple[Manifest, ...] | None = None,
        nodes: Iterable[str] = "ab",
        dry_run: bool = False,
    ) -> None:
        self.server = ClaimServer()
        self.view = view_of([node_named(name, labels={"rack": f"rack-{name}"}) for name in nodes])
        self.lock, self.now = threading.RLock(), 1_700_000_000.0
        self.table = DraTable(self.view.state, self.locked)
        self.assumed: set[str] = set()
        self.plugin = DynamicResources(
            None if dry_run else self.server,
            self.view,
            self.table,
            is_assumed=self.assumed.__contains__,
            clock=lambda: self.now,
        )
        self.woken: list[str] = []
        self.table.on_claim.append(lambda pod: self.woken.append(pod.name))
        self.table.on_room.append(lambda: self.woken.append("room"))
        if slices is None:
            slices = tuple(resource_slice(f"s-{name}", device("0"), device("1"), node=name) for name in nodes)
        self.table.slices.replace([slice_of(one) for one in slices])
        self.table.classes.replace([class_of(device_class())])
        for one in claims:
            self.put(one)

    @contextmanager
    def locked(self) -> Iterator[None]:
        with self.lock:
            yield

    def put(self, manifest: Manifest) -> None:
        """The API server has it, and the watch brings it."""
        self.server.put(manifest)
        self.table.claims.put(claim_of(manifest))

    def watch(self, name: str) -> None:
        """The watch brings a claim as it is in the API server."""
        self.table.claims.put(claim_of(self.server.objects[name]))

    def see(self, pod: PodInfo, node: str | None) -> None:
        """The watch brings a pod as it is; None = it is gone."""
        with self.lock:
            if node is None:
                self.table.apply(self.view.state.delete_pod(pod.uid))
            else:
                self.table.apply(self.view.state.put_pod(replace(pod, node=node)))

    @staticmethod
    def pod(name: str, *claims: str | None) -> PodInfo:
        made = pod_with(name=name)
        return replace(made, resource_claims=tuple(PodResourceClaim(f"c{i}", one) for i, one in enumerate(claims)))

    def fits(self, pod: PodInfo) -> set[str]:
        with self.lock:
            return passing(self.plugin, pod, self.view)

    def reserve(self, pod: PodInfo, node: str) -> Status:
        with self.lock:
            return self.plugin.reserve(pod, node)

    def reserved(self, name: str, node: str, *claims: str) -> PodInfo:
        pod = self.pod(name, *claims)
        status = self.reserve(pod, node)
        assert status.is_success, status
        return pod

    def pre_bind(self, pod: PodInfo, node: str) -> Status:
        return asyncio.run(self.plugin.pre_bind(pod, node))

    def settle(self) -> None:
        """What was submitted is carried out."""

        async def run() -> None:
            waiting, self.server.submitted = self.server.submitted, []
            await asyncio.wait_for(asyncio.gather(*waiting), 30)

        asyncio.run(run())

    def used(self) -> set[str]:
        """As everybody reckons with it."""
        return {f"{one.pool}/{one.device}" for one in self.table.used}
