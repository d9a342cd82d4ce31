"""A cluster of any size behind a real API server, batches of pods for its scheduler, and when each was bound."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import urllib3

from forecast.model_artefact import artefact_of
from forecast.published_models import Registry
from kube.objects.objects import NodeInfo, PodInfo
from testing.clusters.large_cluster import large_cluster
from testing.servers.cluster_objects import ClusterWriter, Manifest, node, pod, replica_set, running
from testing.servers.control_plane.control_plane import ControlPlane

_CREATED = "2026-01-05T07:11:13Z"
BATCH_LABEL = "benchmark"
_SERVICES_ROLLED_OUT = 50
_RESTART_SECONDS = 300.0


class LoadedCluster:
    """Context manager: nodes of testing/clusters/large_cluster.py with pods that sit there, and their model.

    models     : directory of the registry that has the model
    node_names : of all nodes
    sets       : a ReplicaSet of each service
    """

    def __init__(self, n_nodes: int, n_pods: int, n_services: int, directory: Path) -> None:
        self._sizes, self.models = (n_nodes, n_pods, n_services), directory / "models"

    def __enter__(self) -> Self:
        made = large_cluster(*self._sizes, first_day=datetime.now(UTC).date())
        Registry(str(self.models)).publish(artefact_of(made.model, datetime.now(UTC)))
        with ExitStack() as stack:
            self.node_names = [one.name for one in made.nodes]
            self.plane = stack.enter_context(ControlPlane())
            self.writer = stack.enter_context(ClusterWriter(self.plane))
            for namespace in sorted({service.namespace for service in made.model.services}):
                self.writer.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
            replicas = -(-self._sizes[1] // self._sizes[2])
            self.sets = self.writer.create_many(
                replica_set(
                    f"{service.name}-5d9c7b6f4d",
                    namespace=service.namespace,
                    deployment=service.name,
                    desired_replicas=replicas,
                )
                for service in made.model.services
            )
            self._store(map(_stored_node, made.nodes))
            owners = {one["metadata"]["name"]: one for one in self.sets}
            self._store(_stored_pod(one, owners[one.owner.name]) for one in made.pods)
            # A restarted API server has in its caches what was written past it.
            self.plane.api_server.kill()
            self.plane.api_server.start(_RESTART_SECONDS)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    def batch(
        self,
        name: str,
        n_pods: int,
        *,
        n_services: int = _SERVICES_ROLLED_OUT,
        scheduler_name: str = "default-scheduler",
        labels_of: Callable[[int], Mapping[str, str]] = lambda i: {},
        gates: Sequence[str] = (),
    ) -> list[Manifest]:
        """Pods that wait to be scheduled, of so many services in turn; created now.

        labels_of : further labels, by number of the pod
        gates     : scheduling gates of each
        """
        made = self.manifests(
            name, n_pods, n_services=n_services, scheduler_name=scheduler_name, labels_of=labels_of, gates=gates
        )
        return self.writer.create_many(made)

    def manifests(
        self,
        name: str,
        n_pods: int,
        *,
        n_services: int = _SERVICES_ROLLED_OUT,
        scheduler_name: str = "default-scheduler",
        labels_of: Callable[[int], Mapping[str, str]] = lambda i: {},
        gates: Sequence[str] = (),
    ) -> Iterator[Manifest]:
        """Yield the same pods, to be created one by one."""
        sets = self.sets[:n_services]
        for i in range(n_pods):
            owner = sets[i % len(sets)]
            made = pod(
                f"{name}-{i:05d}",
                namespace=owner["metadata"]["namespace"],
                owner=owner,
                cpu="100m",
                memory="128Mi",
                labels=owner["spec"]["selector"]["matchLabels"] | {BATCH_LABEL: name} | dict(labels_of(i)),
                scheduler_name=scheduler_name,
            )
            if gates:
                made["spec"]["schedulingGates"] = [{"name": gate} for gate in gates]
            yield made

    def bindings(self, batch: str) -> Bindings:
        """A watch of a batch's bindings."""
        return Bindings(self.plane, batch)

    def _store(self, manifests: Iterator[Manifest]) -> None:
        """Straight into etcd: a minute less than through the API server."""
        pairs: list[tuple[str, bytes]] = []
        for manifest in manifests:
            metadata = manifest["metadata"]
            place = f"pods/{metadata['namespace']}" if manifest["kind"] == "Pod" else "minions"
            pairs.append((f"/registry/{place}/{metadata['name']}", json.dumps(manifest).encode()))
            if len(pairs) == 100:
                self.plane.etcd.put(pairs)
                pairs = []
        if pairs:
            self.plane.etcd.put(pairs)


class Bindings:
    """Context manager: a thread that notes when pods of a batch are bound. It reads no JSON: that costs nothing.

    seen : by name of the pod, when it was seen bound, by time.perf_counter()
    """

    def __init__(self, plane: ControlPlane, batch: str) -> None:
        query = f"watch=true&labelSelector={BATCH_LABEL}%3D{batch}&fieldSelector=spec.nodeName%21%3D"
        self._url, self._headers = f"{plane.url}/api/v1/pods?{query}", {"Authorization": f"Bearer {plane.token}"}
        self._pool = urllib3.PoolManager(ca_certs=str(plane.ca_file), retries=False)
        self.seen: dict[str, float] = {}
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._ended = False

    def __enter__(self) -> Self:
        self._answer = self._watch("")
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended = True
        with suppress(RuntimeError):  # the server has just ended it
            self._answer.shutdown()
        self._thread.join(10)
        self._pool.clear()

    def times(self, n_pods: int, seconds: float, end_of_log: Callable[[], str]) -> list[float]:
        """When each was seen, by time.perf_counter(), once there are `n_pods`.

        Raises TimeoutError with what the scheduler said last.
        """
        deadline = time.perf_counter() + seconds
        while len(self.seen) < n_pods:
            if not self._thread.is_alive():
                raise RuntimeError("the watch of bindings has failed")
            if time.perf_counter() > deadline:
                raise TimeoutError(f"{len(self.seen)} of {n_pods} were bound in {seconds:.0f} s: {end_of_log()}")
            time.sleep(0.1)
        return list(self.seen.values())[:n_pods]

    def _watch(self, since: str) -> urllib3.BaseHTTPResponse:
        answer = self._pool.request(
            "GET",
            f"{self._url}&resourceVersion={since}",
            headers=self._headers,
            preload_content=False,
            timeout=urllib3.Timeout(connect=10, read=None),
        )
        if answer.status != 200:
            raise RuntimeError(f"the watch of bindings: {answer.status} {answer.read(500)!r}")
        return answer

    def _follow(self) -> None:
        """The API server cuts a watch that cannot keep up, where the machine has too much to do: go on from there."""
        last = b""
        while not self._ended:
            last = self._read() or last
            self._answer.close()
            if not self._ended:
                self._answer = self._watch(json.loads(last)["object"]["metadata"]["resourceVersion"] if last else "")

    def _read(self) -> bytes:
        """Until the watch ends; returns its last line."""
        rest, last = b"", b""
        try:
            for chunk in self._answer.stream(2**16):
                *lines, rest = (rest + chunk).split(b"\n")
                now = time.perf_counter()
                # A pod comes into the selection when it is bound: that is an addition. Later changes are none.
                self.seen |= {_name_in(line): now for line in lines if line.startswith(b'{"type":"ADDED"')}
                last = lines[-1] if lines else last
        except (urllib3.exceptions.HTTPError, OSError, ValueError):
            if not self._ended:
                raise
        return last


def _name_in(line: bytes) -> str:
    """Of the object of an event: the first name in it."""
    return line.partition(b'"name":"')[2].partition(b'"')[0].decode()


def _stored_node(one: NodeInfo) -> Manifest:
    cpu, memory = (str(int(one.capacity[kind])) for kind in ("cpu", "memory"))
    return _stored(node(one.name, cpu=cpu, memory=memory, labels=one.labels), one.name)


def _stored_pod(one: PodInfo, owner: Manifest) -> Manifest:
    manifest = pod(
        one.name,
        namespace=one.namespace,
        node=one.node,
        owner=owner,
        labels=one.labels,
        cpu="250m",
        memory="512Mi",
        status=running(_CREATED),
    )
    return _stored(manifest, one.uid)


def _stored(manifest: Manifest, uid: str) -> Manifest:
    """What the API server adds before it stores an object."""
    manifest["metadata"] |= {"uid": uid, "creationTimestamp": _CREATED, "generation": 1}
    return manifest
