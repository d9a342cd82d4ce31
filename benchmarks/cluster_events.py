"""Time and memory of the cluster in columns: decoding what the API server sends, applying it, checking it.

    python -m benchmarks.cluster_events [--nodes 5000] [--pods 100000] [--events 5000]

Pods are JSON objects as an API server lists them (managedFields, probes, volumes, conditions: about 7 kB). Decoding is
timed beside json.loads, which builds everything, and beside the official client's model classes. Then, in a
process of its own so that its memory is its own, the state is filled from lists of decoded pages and pod events
are applied one by one.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness import command_line, peak_gib
from cluster.tables.self_check import drifts, observe
from cluster.tables.state import ClusterState
from kube.decoding.decoding import Kind, decode_event, decode_list
from kube.objects.objects import PodInfo
from testing.processes.process_figures import resident_bytes

_PAGE = 500
_PODS_PER_SERVICE = 20
_NOW = 1_795_276_800.0


def node_json(number: int) -> dict[str, Any]:
    """A Node with 50 images."""
    amounts = {"cpu": "32", "memory": "131072Mi", "pods": "110", "ephemeral-storage": "101430960Ki"}
    name = f"node-{number:05d}"
    return {
        "metadata": {
            "name": name,
            "uid": f"node-uid-{number}",
            "resourceVersion": "1",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % 3}"},
        },
        "spec": {"podCIDR": "10.0.0.0/24"},
        "status": {
            "capacity": amounts,
            "allocatable": amounts | {"cpu": "31850m"},
            "conditions": [{"type": kind, "status": "True"} for kind in ("MemoryPressure", "DiskPressure", "Ready")],
            "addresses": [{"type": "InternalIP", "address": f"10.1.{number // 250}.{number % 250}"}],
            "images": [
                {"names": [f"registry.example/team/image-{i}@sha256:{i:064d}"], "sizeBytes": i} for i in range(50)
            ],
        },
    }


def replica_set_json(service: int, revision: int) -> dict[str, Any]:
    """Metadata of a ReplicaSet; each Deployment has a current one and two old ones."""
    name = f"service-{service:05d}"
    return {
        "metadata": {
            "name": f"{name}-7d9f8b{revision}",
            "namespace": f"team-{service % 40:02d}",
            "uid": f"rs-{service}-{revision}",
            "resourceVersion": "1",
            "creationTimestamp": "2026-11-01T00:00:00Z",
            "annotations": {
                "deployment.kubernetes.io/revision": str(revision),
                "deployment.kubernetes.io/desired-replicas": str(_PODS_PER_SERVICE),
            },
            "ownerReferences": [{"kind": "Deployment", "name": name, "uid": f"d-{service}", "controller": True}],
        }
    }


def pod_json(number: int, node: int) -> dict[str, Any]:
    """A running Pod of two containers."""
    service = number // _PODS_PER_SERVICE
    name = f"service-{service:05d}-7d9f8b3-{number:06d}"
    resources = {
        "requests": {"cpu": f"{50 + service % 20 * 50}m", "memory": f"{64 + service % 16 * 64}Mi"},
        "limits": {"memory": f"{128 + service % 16 * 64}Mi"},
    }
    fields: dict[str, Any] = {f"f:field-{i}": {".": {}, "f:name": {}, "f:value": {}} for i in range(40)}
    probe = {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10, "timeoutSeconds": 1}
    environment = [{"name": f"SETTING_{i}", "value": "some-value-of-ordinary-length"} for i in range(10)]
    containers = [
        {
            "name": container,
            "image": f"registry.example/team/{container}:1.2.3",
            "resources": resources,
            "env": environment,
            "livenessProbe": probe,
            "readinessProbe": probe,
            "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
        }
        for container in ("main", "proxy")
    ]
    return {
        "metadata": {
            "name": name,
            "generateName": f"service-{service:05d}-7d9f8b3-",
            "namespace": f"team-{service % 40:02d}",
            "uid": f"{number:08x}-0000-4000-8000-{number:012x}",
            "resourceVersion": str(number + 1),
            "creationTimestamp": "2026-11-21T16:00:00Z",
            "labels": {"app": f"service-{service:05d}", "pod-template-hash": "7d9f8b3", "team": f"team-{service % 40}"},
            "annotations": {"cni.projectcalico.org/podIP": f"10.2.{number % 256}.7/32"},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": f"service-{service:05d}-7d9f8b3",
                    "uid": f"rs-{service}-3",
                    "controller": True,
                }
            ],
            "managedFields": [
                {"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsV1": fields}
                for manager in ("kube-controller-manager", "kubelet")
            ],
        },
        "spec": {
            "nodeName": f"node-{node:05d}",
            "containers": containers,
            "schedulerName": "default-scheduler",
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
            "volumes": [{"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}],
        },
        "status": {
            "phase": "Running",
            "qosClass": "Burstable",
            "conditions": [{"type": kind, "status": "True"} for kind in ("Initialized", "Ready", "PodScheduled")],
            "containerStatuses": [
                {
                    "name": container["name"],
                    "state": {"running": {"startedAt": "2026-11-21T16:00:09Z"}},
                    "resources": resources,
                    "image": container["image"],
                    "imageID": container["image"],
                    "ready": True,
                    "restartCount": 0,
                }
                for container in containers
            ],
        },
    }


def pages(items: Callable[[int], dict[str, Any]], n: int) -> Iterator[bytes]:
    """Lists of n objects, page by page, as bytes."""
    for start in range(0, n, _PAGE):
        page = {"metadata": {"resourceVersion": "1"}, "items": [items(i) for i in range(start, min(start + _PAGE, n))]}
        yield json.dumps(page, separators=(",", ":")).encode()


def seconds_of(action: Callable[[], object], *, at_least: float = 0.5) -> float:
    """The quickest of as many runs as fit into `at_least` seconds, and of one at least."""
    best, until = float("inf"), time.perf_counter() + at_least
    while best == float("inf") or time.perf_counter() < until:
        started = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - started)
    return best


def print_decoding() -> None:
    """MB/s of a page of pods, a page of nodes, and single watch events."""
    from kubernetes.client import ApiClient

    client = ApiClient()

    def official(texts: list[str], model: str) -> None:
        for text in texts:
            client.deserialize(text, model, "application/json")

    def line(name: str, size: int, *actions: Callable[[], object]) -> None:
        plain, theirs, ours = (size / 1e6 / seconds_of(action) for action in actions)
        print(f"{name:<34} {size / 1e6:>6.1f} {plain:>11.0f} {theirs:>16.1f} {ours:>8.0f}")

    print(f"{'decoding':<34} {'MB':>6} {'json.loads':>11} {'official client':>16} {'ours':>8}   MB/s")
    for kind, page, model in (
        (Kind.PODS, next(pages(lambda i: pod_json(i, i), _PAGE)), "V1PodList"),
        (Kind.NODES, next(pages(node_json, _PAGE)), "V1NodeList"),
    ):
        line(
            f"a page of {_PAGE} {kind.value}",
            len(page),
            partial(json.loads, page),
            partial(official, [page.decode()], model),
            partial(decode_list, kind, page),
        )
    objects = [json.dumps(pod_json(i, i), separators=(",", ":")) for i in range(_PAGE)]
    events = [f'{{"type":"MODIFIED","object":{one}}}'.encode() for one in objects]
    line(
        f"{_PAGE} watch events of pods",
        sum(map(len, events)),
        partial(each, json.loads, events),
        partial(official, objects, "V1Pod"),
        partial(each, partial(decode_event, Kind.PODS), events),
    )


def each(action: Callable[[bytes], object], bodies: list[bytes]) -> None:
    """One after the other."""
    for body in bodies:
        action(body)


def microseconds(action: Callable[[PodInfo], object], pods: list[PodInfo]) -> tuple[float, float]:
    """Median and 99th percentile of one call each."""
    taken = np.empty(len(pods))
    for i, pod in enumerate(pods):
        started = time.perf_counter()
        action(pod)
        taken[i] = time.perf_counter() - started
    return float(np.median(taken) * 1e6), float(np.quantile(taken, 0.99) * 1e6)


def run_state(n_nodes: int, n_pods: int, n_events: int) -> None:
    """Fill a state, apply events, check it; print what it took."""
    rng = random.Random(1)
    placed = [rng.randrange(n_nodes) for _ in range(n_pods)]
    n_services = -(-n_pods // _PODS_PER_SERVICE)
    items: list[tuple[Kind, Callable[[int], dict[str, Any]], int]] = [
        (Kind.REPLICA_SETS, lambda i: replica_set_json(i // 3, i % 3 + 1), 3 * n_services),
        (Kind.NODES, node_json, n_nodes),
        (Kind.PODS, lambda i: pod_json(i, placed[i]), n_pods),
    ]
    gc.collect()
    empty = resident_bytes(os.getpid()) / 2**20
    state = ClusterState(now=_NOW)
    print(f"\n{n_nodes} nodes, {n_pods} pods, {n_services} services: lists")
    for kind, item, n in items:
        objects = [one for body in pages(item, n) for one in decode_list(kind, body).objects]
        again = [replace(one) for one in objects]
        first = seconds_of(partial(state.replace, kind, objects), at_least=0)
        same = seconds_of(partial(state.replace, kind, again), at_least=0)
        print(f"  replace({kind.value}, {n}): {first:.2f} s the first time, {same:.2f} s when nothing changed")
        del objects, again
    gc.collect()
    now, peak = resident_bytes(os.getpid()) / 2**20, 1024 * peak_gib()
    print(f"  memory of objects and tables: {now - empty:.0f} MiB (process {now:.0f}, peak {peak:.0f})")

    some = rng.sample(list(state.pods.values()), min(n_events, n_pods))
    status = [replace(pod, started=_NOW) for pod in some]
    moved = [replace(pod, uid=f"{pod.uid}-again", created=pod.created + 60) for pod in some]
    events: list[tuple[str, Callable[[PodInfo], object], list[PodInfo]]] = [
        ("status changes", state.put_pod, status),
        ("deleted", lambda pod: state.delete_pod(pod.uid), status),
        ("added", state.put_pod, some),
        ("replaced by one of the same name", state.put_pod, moved),
    ]
    print(f"\n{'one pod event, microseconds':<34} {'median':>8} {'p99':>8}")
    for name, action, pods in events:
        median, p99 = microseconds(action, pods)
        print(f"{name:<34} {median:>8.1f} {p99:>8.1f}")

    copying = seconds_of(partial(observe, state), at_least=0)
    observed = observe(state)
    started = time.perf_counter()
    found = drifts(observed)
    beside = time.perf_counter() - started
    print(f"\nself-check: {copying:.2f} s under the lock, {beside:.2f} s beside it, {len(found)} drifts")
    print(f"all seats as arrays: {seconds_of(state.seats, at_least=0) * 1e3:.1f} ms")


def main() -> None:
    """Print the tables."""
    parser = command_line(__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--events", type=int, default=5000)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        run_state(arguments.nodes, arguments.pods, arguments.events)
        return
    print_decoding()
    sys.stdout.flush()
    sizes = ["--nodes", str(arguments.nodes), "--pods", str(arguments.pods), "--events", str(arguments.events)]
    subprocess.run([sys.executable, "-m", "benchmarks.cluster_events", "--child", *sizes], check=True)


if __name__ == "__main__":
    main()
