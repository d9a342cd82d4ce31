"""Time and memory until a whole cluster is in ClusterState, from a real API server on this machine.

    python -m benchmarks.first_sync [--nodes 5000] [--pods 100000] [--services 5000] [--typed-pods 20000]

The objects are written straight into etcd (half a minute instead of several), then listed over TLS in two
processes, each with its own peak memory:

    state   KubernetesSource: nodes, pods, ReplicaSets and Jobs into ClusterState, until all four are in sync
    typed   the official client's own models: the same pages of pods (--typed-pods of them) and nodes, kept in lists
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import command_line, peak_gib
from kube.decoding.decoding import ApiObject, Kind
from testing.servers.cluster_objects import Manifest, node, pod, replica_set
from testing.servers.control_plane.control_plane import ControlPlane

_PAGE = 500
_CREATED = "2026-01-05T07:11:13Z"
_PLACES = {"Node": "minions", "Pod": "pods/default", "ReplicaSet": "replicasets/default"}


def cluster(n_nodes: int, n_pods: int, n_services: int) -> Iterator[Manifest]:
    """Nodes, ReplicaSets and running pods as kubelets and controllers leave them, about 5 kB each pod."""
    for i in range(n_nodes):
        yield _stored(node(f"node-{i:05d}", labels={"topology.kubernetes.io/zone": f"zone-{i % 3}"}), i)
    owners = []
    for i in range(n_services):
        name = f"service-{i:04d}"
        owner = replica_set(f"{name}-7d9f8b6c5d", deployment=name, desired_replicas=n_pods // n_services)
        owners.append(_stored(owner, i))
    yield from owners
    for i in range(n_pods):
        yield _pod(i, owners[i % n_services], f"node-{i % n_nodes:05d}")


def _pod(i: int, owner: Manifest, on: str) -> Manifest:
    manifest = pod(
        f"{owner['metadata']['name']}-{i:05d}",
        node=on,
        owner=owner,
        labels=owner["metadata"]["labels"] | {"team": f"team-{i % 40}", "version": "v1.27.3"},
        annotations={"prometheus.io/scrape": "true", "kubectl.kubernetes.io/restartedAt": _CREATED},
    )
    probe = {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10}
    names = ("app", "sidecar")
    manifest["spec"]["containers"] = [
        {
            "name": name,
            "image": f"registry.example/{name}:v1.27.3",
            "resources": {
                "requests": {"cpu": f"{100 + i % 7 * 50}m", "memory": f"{128 + i % 5 * 64}Mi"},
                "limits": {"memory": "1Gi"},
            },
            "env": [{"name": f"SETTING_{k}", "value": f"value-{k}"} for k in range(6)],
            "ports": [{"containerPort": 8080, "protocol": "TCP"}],
            "livenessProbe": probe,
            "readinessProbe": probe,
            "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
        }
        for name in names
    ]
    manifest["spec"] |= {"volumes": [{"name": "token", "emptyDir": {}}], "serviceAccountName": "default"}
    conditions = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    manifest["status"] = {
        "phase": "Running",
        "conditions": [{"type": kind, "status": "True", "lastTransitionTime": _CREATED} for kind in conditions],
        "hostIP": "10.1.2.3",
        "podIP": "10.2.3.4",
        "podIPs": [{"ip": "10.2.3.4"}],
        "startTime": _CREATED,
        "qosClass": "Burstable",
        "containerStatuses": [
            {
                "name": name,
                "image": f"registry.example/{name}:v1.27.3",
                "imageID": f"registry.example/{name}@sha256:{'0123456789abcdef' * 4}",
                "containerID": f"containerd://{i:064x}",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": _CREATED}},
            }
            for name in names
        ],
    }
    return _stored(manifest, i)


def _stored(manifest: Manifest, i: int) -> Manifest:
    """What the API server adds before it stores an object."""
    fields: Manifest = {
        "f:metadata": {"f:labels": {".": {}, 'k:{"name":"app"}': {}}},
        "f:spec": {"f:containers": {".": {}}},
    }
    manifest["metadata"] |= {
        "uid": f"{len(manifest['kind']):08x}-0000-4000-8000-{i:012x}",
        "creationTimestamp": _CREATED,
        "generation": 1,
        "managedFields": [
            {
                "manager": manager,
                "operation": "Update",
                "apiVersion": manifest["apiVersion"],
                "time": _CREATED,
                "fieldsType": "FieldsV1",
                "fieldsV1": fields,
            }
            for manager in ("kube-controller-manager", "kubelet")
        ],
    }
    return manifest


class _StateSink:
    """A ClusterState under one lock."""

    def __init__(self) -> None:
        from cluster.tables.state import ClusterState

        self.state, self._lock = ClusterState(), threading.Lock()

    def replace(self, kind: Kind, objects: Sequence[ApiObject]) -> None:
        with self._lock:
            self.state.replace(kind, objects)

    def put(self, kind: Kind, obj: ApiObject) -> None:
        raise RuntimeError(f"{kind.value} {obj.name} changed: nothing does in this benchmark")

    delete = put


def sync_state(kubeconfig: Path, expected: tuple[int, int]) -> dict[str, float]:
    """The scorer's way. expected: nodes and pods there must be."""
    from kube.client.kubernetes_client import api_client
    from kube.client.kubernetes_source import KubernetesSource

    sink, before = _StateSink(), 1024 * peak_gib()
    started = time.perf_counter()
    source = KubernetesSource(api_client(kubeconfig), sink, page_size=_PAGE)
    source.start()
    if not source.wait_synced(600):
        raise RuntimeError(f"not in sync after 600 s: {source.status()}")
    seconds = time.perf_counter() - started
    found = (int(sink.state.alive.sum()), len(sink.state.seat_of))
    source.stop()
    if found != expected:
        raise RuntimeError(f"{found} nodes and seats in the state, {expected} on the server")
    return {"seconds": seconds, "before_mib": before, "peak_mib": 1024 * peak_gib(), "pods": found[1]}


def read_typed(kubeconfig: Path, n_pods: int) -> dict[str, float]:
    """The official client's models, at most `n_pods` pods."""
    from kubernetes import client

    from kube.client.kubernetes_client import api_client

    api, before = client.CoreV1Api(api_client(kubeconfig)), 1024 * peak_gib()
    started = time.perf_counter()
    nodes = _all_pages(api.list_node, sys.maxsize)
    pods = _all_pages(api.list_pod_for_all_namespaces, n_pods)
    seconds = time.perf_counter() - started
    del nodes
    return {"seconds": seconds, "before_mib": before, "peak_mib": 1024 * peak_gib(), "pods": len(pods)}


def _all_pages(read: Any, at_most: int) -> list[Any]:
    items: list[Any] = []
    token: str | None = ""
    while token is not None and len(items) < at_most:
        page = read(limit=_PAGE, _continue=token or None)
        items += page.items
        token = page.metadata._continue or None
    return items


def write(plane: ControlPlane, manifests: Iterator[Manifest]) -> tuple[int, float]:
    """Into etcd, under the keys and in the JSON form that the API server reads; returns objects and mean bytes."""
    count = size = 0
    batch: list[tuple[str, bytes]] = []
    for manifest in manifests:
        value = json.dumps(manifest).encode()
        batch.append((f"/registry/{_PLACES[manifest['kind']]}/{manifest['metadata']['name']}", value))
        count, size = count + 1, size + len(value)
        if len(batch) == 100:
            plane.etcd.put(batch)
            batch = []
    plane.etcd.put(batch)
    return count, size / count


def child(way: str, kubeconfig: Path, arguments: argparse.Namespace) -> dict[str, float]:
    """Figures of a process of its own."""
    options = [f"--{name}={getattr(arguments, name)}" for name in ("nodes", "pods")]
    options += [f"--typed-pods={arguments.typed_pods}", f"--way={way}", f"--kubeconfig={kubeconfig}"]
    command = [sys.executable, "-m", "benchmarks.first_sync", *options]
    return dict(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout))


def main() -> None:
    """Print a line per way."""
    parser = command_line(__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--services", type=int, default=5_000)
    parser.add_argument("--typed-pods", type=int, default=20_000)
    parser.add_argument("--way", choices=("state", "typed"), help=argparse.SUPPRESS)
    parser.add_argument("--kubeconfig", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.way == "state":
        print(json.dumps(sync_state(arguments.kubeconfig, (arguments.nodes, arguments.pods))))
        return
    if arguments.way == "typed":
        print(json.dumps(read_typed(arguments.kubeconfig, arguments.typed_pods)))
        return
    with ControlPlane() as plane:
        started = time.perf_counter()
        count, size = write(plane, cluster(arguments.nodes, arguments.pods, arguments.services))
        print(f"{count:,} objects of {size:,.0f} bytes stored in {time.perf_counter() - started:.0f} s\n")
        # The API server begins with what a restarted one has: everything in its watch cache.
        plane.api_server.kill()
        plane.api_server.start(600)
        print(f"{'way':<8} {'pods':>8} {'seconds':>9} {'per 1,000 pods':>15} {'peak MiB':>9} {'kB per pod':>11}")
        for way in ("state", "typed"):
            figures = child(way, plane.kubeconfig, arguments)
            pods, seconds = figures["pods"], figures["seconds"]
            print(
                f"{way:<8} {pods:>8,.0f} {seconds:>9.1f} {seconds / pods * 1000:>15.3f} {figures['peak_mib']:>9.0f} "
                f"{(figures['peak_mib'] - figures['before_mib']) * 1024 / pods:>11.1f}"
            )


if __name__ == "__main__":
    main()
