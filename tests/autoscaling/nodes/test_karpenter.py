"""A real Karpenter: it leaves the nodes that the guard marks, removes the others, and orders nodes for our buffers."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from autoscaling.autoscale_settings import BufferOptions, GuardOptions
from autoscaling.nodes.buffer_hand import BufferHand
from autoscaling.nodes.guard import GuardedNodes, kept_until
from autoscaling.nodes.guard_hand import GuardHand
from testing.constants import with_constants
from testing.servers.cluster_objects import ClusterWriter, pod
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.servers.karpenter.binary import definitions
from testing.servers.karpenter.karpenter import Karpenter
from testing.waiting import eventually
from tests.autoscaling.conftest import Api
from tests.autoscaling.nodes.conftest import CAPACITY_BUFFERS
from tests.autoscaling.nodes.made_up import at, nodes_with, ramp, services_ahead

pytestmark = pytest.mark.long  # a build of minutes on a new machine, and Karpenter takes its time

LONG = 240.0
RAMP, VALLEY = at(8.5), at(1)
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_POOL = "/apis/karpenter.sh/v1/nodepools"


@pytest.fixture(scope="module")
def pool(plane: ControlPlane, api: Api) -> Iterator[Karpenter]:
    """A pool of nodes of 4 cores, from which idle nodes go after 5 seconds."""
    for file in definitions():
        for definition in yaml.safe_load_all(file.read_text()):
            api.request("POST", _DEFINITIONS, definition)
    assert eventually(lambda: _is_served(api, _POOL) and _is_served(api, CAPACITY_BUFFERS))
    with ClusterWriter(plane) as writer, KubeScheduler(plane), Karpenter(plane) as karpenter:
        head = {"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}}
        api.request("POST", "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses", head)
        requirements = [
            {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
            {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
            {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["c-4x-amd64-linux"]},
        ]
        reference = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
        spec = {
            "template": {"spec": {"requirements": requirements, "nodeClassRef": reference, "expireAfter": "Never"}},
            "disruption": {
                "consolidationPolicy": "WhenEmptyOrUnderutilized",
                "consolidateAfter": "5s",
                "budgets": [{"nodes": "100%"}],
            },
        }
        head = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"}}
        api.request("POST", _POOL, head | {"spec": spec})
        yield karpenter
        writer.delete_many(writer.list_all("pods"))


def _is_served(api: Api, path: str) -> bool:
    return api.session.submit(api.session.request("GET", path, None, seconds=30)).result(LONG).is_success


def ready_nodes(api: Api) -> list[Any]:
    """Nodes that stay. kwok's kubelets are played here: each new node reports that it is ready."""
    found = api.items("/api/v1/nodes")
    for one in found:
        if not any(c["type"] == "Ready" and c["status"] == "True" for c in one["status"].get("conditions", [])):
            ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
            path = f"/api/v1/nodes/{one['metadata']['name']}/status"
            api.request("PATCH", path, {"status": {"conditions": [ready]}}, merge=True)
    return sorted(
        (one for one in found if "deletionTimestamp" not in one["metadata"]), key=lambda one: one["metadata"]["name"]
    )


def consolidated(api: Api, wanted: int) -> bool:
    return len(ready_nodes(api)) == wanted


def _all_bound(writer: ClusterWriter) -> bool:
    return all(one["spec"].get("nodeName") for one in writer.list_all("pods"))


def nodes_now(writer: ClusterWriter) -> GuardedNodes:
    """All nodes, of 4 cores, on which nothing runs."""
    found = sorted(writer.list_all("nodes"), key=lambda one: one["metadata"]["name"])
    until = [kept_until(one["metadata"].get("annotations", {})) for one in found]
    made = nodes_with([0.0] * len(found), cores=4.0, until=until)
    names = tuple(one["metadata"]["name"] for one in found)
    return GuardedNodes(names, made.allocatable, made.requested, made.usable, made.until)


def test_a_marked_node_stays_and_goes_when_the_guard_unmarks_it(plane: ControlPlane, api: Api, pool: Karpenter) -> None:
    with ClusterWriter(plane) as writer:
        writer.create_many(pod(f"p{i}", cpu="2500m") for i in range(3))
        assert eventually(lambda: consolidated(api, 3) and _all_bound(writer)), pool.end_of_log()

        # The model expects 6 cores more soon: two nodes of 4 are to stay when the pods are gone.
        options = with_constants(GuardOptions(), margin=0.0, fill=1.0, slack=0.0, horizon=3600)
        guard = GuardHand(api.session, lambda: nodes_now(writer), options)
        ahead = services_ahead([0], [ramp(0, 12, since=8, until=10)])
        api.run(guard.act(ahead, RAMP))
        marked = {
            one["metadata"]["name"]
            for one in writer.list_all("nodes")
            if "karpenter.sh/do-not-disrupt" in one["metadata"].get("annotations", {})
        }
        assert guard.kept == len(marked) == 2
        writer.delete_many(writer.list_all("pods"))
        assert eventually(lambda: consolidated(api, 2)), pool.end_of_log()
        time.sleep(20)  # four times what Karpenter waits for before it removes an idle node
        assert {one["metadata"]["name"] for one in ready_nodes(api)} == marked, pool.end_of_log()

        api.run(guard.act(ahead, VALLEY))
        assert eventually(lambda: consolidated(api, 0)), pool.end_of_log()


def test_karpenter_orders_nodes_for_our_buffers(api: Api, pool: Karpenter) -> None:
    ahead = services_ahead([15], [ramp(10, 30)], cpu=[3.0])
    hand = BufferHand(api.session, with_constants(BufferOptions(), lead=1800, margin=0.0, most_share=1.0))
    api.run(hand.act(ahead, RAMP))
    assert sum(hand.chunks.values()) == 5
    assert eventually(lambda: consolidated(api, 5)), json.dumps(api.items(CAPACITY_BUFFERS)) + pool.end_of_log()
    api.run(hand.act(ahead, VALLEY))
    assert eventually(lambda: consolidated(api, 0)), pool.end_of_log()
