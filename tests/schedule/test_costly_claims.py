"""Claims whose expressions cost hours or gigabytes, accepted by a real API server: other pods are placed meanwhile."""

from __future__ import annotations

from testing.clusters.gpu_nodes import GPUS, gpu_node, gpu_pod
from testing.clusters.own_nodes import LONG, bound, condition
from testing.processes.scorer_process import eventually
from testing.servers.cluster_objects import ClusterWriter, Manifest
from tests.schedule.conftest import Started
from tests.scheduler.profiles.gpu.dra.manifests import device, device_class, request, resource_slice
from tests.scheduler.profiles.gpu.dra.test_expressions import OURS
from tests.scheduler.profiles.gpu.dra.test_search_time import ALL_MEMORY, NEVER_ENDS

N_NODES, PER_NODE = 20, 16


def stored(made: Manifest) -> Manifest:
    """As it is written to a server."""
    made["metadata"] = {"name": made["metadata"]["name"]}
    return made


def claimed(name: str, namespace: str, *requests: Manifest) -> list[Manifest]:
    """A claim and a pod that uses it."""
    spec = {"devices": {"requests": list(requests)}}
    metadata = {"name": name, "namespace": namespace}
    made = gpu_pod(name, namespace=namespace)
    made["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimName": name}]
    return [{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": spec}, made]


def test_costly_claims_of_one_namespace_do_not_stop_the_others(writer: ClusterWriter, start: Started) -> None:
    for name in ("greedy", "honest"):
        writer.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    nodes = [f"node-{i}" for i in range(N_NODES)]
    writer.create(stored(device_class()))
    writer.create_many(gpu_node(name, 0) for name in nodes)
    writer.create_many(
        stored(resource_slice(name, *(device(f"{i}", index=i) for i in range(PER_NODE)), node=name)) for name in nodes
    )
    process = start(profiles=["gpu"])
    costly = {
        "never": [request("r", f"{OURS}.index > 0 && {NEVER_ENDS}")],
        "memory": [request("r", f"{OURS}.index > 0 && {ALL_MEMORY}")],
        "search": [request("r", count=8), request("q", f"{OURS}.index > 100")],
    }
    for number in range(4):
        for kind, requests in costly.items():
            writer.create_many(claimed(f"{kind}-{number}", "greedy", *requests))
    honest = [claimed(f"fine-{i}", "honest", request("r", f"{OURS}.index < 8")) for i in range(10)]
    for one in honest:
        writer.create_many(one)
    writer.create_many(gpu_pod(f"plain-{i}") for i in range(10))
    assert eventually(lambda: bound(writer, "fine") + bound(writer, "plain") == 20, LONG), process.log[-3000:]

    def reasons() -> dict[str, str]:
        waiting = writer.list_all("pods", field_selector="spec.nodeName=")
        return {one["metadata"]["name"]: condition(one)[1] for one in waiting if one["spec"]["schedulerName"] == GPUS}

    assert eventually(lambda: all(reasons().values()), LONG), reasons()
    said = reasons()
    assert set(said) == {f"{kind}-{number}" for kind in costly for number in range(4)}
    words = ("for one device", "of memory", "takes too long", "too many ways")
    assert all(any(one in why for one in words) for why in said.values()), said
    assert process.metric("forecast_gpu_dra_selector_refusals_total") > 0
