"""The soak would see what it looks for."""

from __future__ import annotations

from testing.clusters.gpu_nodes import INDEX, gpu_node, gpu_pod
from testing.clusters.own_nodes import our_node, our_pod
from testing.servers.cluster_objects import Manifest, node, pod
from testing.soak.watchman import what_is_wrong

NODES = [our_node("ours", cpu=1), node("theirs"), gpu_node("cards", gpus=2)]


def _on(at: str, manifest: Manifest) -> Manifest:
    manifest["spec"]["nodeName"] = at
    return {"status": {"phase": "Running"}} | manifest


def test_all_is_well() -> None:
    pods = [_on("ours", our_pod(f"a-{i}", cpu="500m")) for i in range(2)] + [_on("theirs", pod("b"))]
    assert list(what_is_wrong(pods, NODES)) == []


def test_a_node_past_allocatable() -> None:
    pods = [_on("ours", our_pod(f"a-{i}", cpu="500m")) for i in range(3)]
    assert list(what_is_wrong(pods, NODES)) == ["node ours has 1.5 of 1 cpu"]


def test_a_card_that_is_given_away_twice() -> None:
    pods = [_on("cards", gpu_pod(f"g-{i}", gpus=1)) for i in range(2)]
    for one in pods:
        one["metadata"]["annotations"] = {INDEX: "1"}
    assert list(what_is_wrong(pods, NODES)) == ["2000 thousandths of device 1 of cards"]


def test_a_pod_in_the_domain_of_others() -> None:
    (ours,) = what_is_wrong([_on("theirs", our_pod("a"))], NODES)
    (theirs,) = what_is_wrong([_on("ours", pod("b"))], NODES)
    assert "pod a of forecast-scheduler is on theirs" in ours and "pod b of default-scheduler is on ours" in theirs


def test_what_is_on_a_node_that_is_gone_is_nobodys_fault() -> None:
    assert list(what_is_wrong([_on("deleted", our_pod("a", cpu="100"))], NODES)) == []
