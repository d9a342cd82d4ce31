from __future__ import annotations

import math

import pytest

from forecast.service_key import NO_OWNER, Owner
from kube.objects.constraints import PodConstraints, TopologySpreadConstraint
from kube.objects.objects import NodeInfo, PodInfo
from placement.scores.pod_topology_spread import PodTopologySpreadScore
from tests.placement.small_cluster import chosen, is_in, node_of, pod_of, scores, view_of

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REPLICA_SET = Owner("ReplicaSet", "web-1")
WEB = chosen(is_in("app", "web"))


def in_zone(name: str, zone: str) -> NodeInfo:
    return node_of(name, {HOSTNAME: name, ZONE: zone})


def replica(i: int, node: str = "", *, owner: Owner = REPLICA_SET, owner_uid: str = "rs") -> PodInfo:
    return pod_of(f"web-{i}", {"app": "web"}, node=node, owner=owner, owner_uid=owner_uid)


def test_pods_of_a_controller_are_spread_over_hosts_and_zones_by_default() -> None:
    nodes = [in_zone("a", "z1"), in_zone("b", "z1"), in_zone("c", "z2")]
    view = view_of(nodes, [replica(0, "a"), replica(1, "a"), replica(2, "b")])
    # Three hosts (ln 5, skew 3) and two zones (ln 4, skew 5).
    hosts, zones = math.log(5), math.log(4)
    raw = [round(2 * hosts + 2 + 3 * zones + 4), round(hosts + 2 + 3 * zones + 4), 2 + 4]
    assert raw == [13, 12, 6]
    expected = {"a": 100 * (13 + 6 - 13) // 13, "b": 100 * (13 + 6 - 12) // 13, "c": 100}
    assert scores(PodTopologySpreadScore(), replica(9), view, ["a", "b", "c"]) == expected


@pytest.mark.parametrize(
    "probe",
    [
        replica(9, owner=NO_OWNER, owner_uid=""),
        replica(9, owner=Owner("Job", "web")),
        replica(9, owner=Owner("DaemonSet", "web")),
    ],
    ids=["no controller", "Job", "DaemonSet"],
)
def test_other_pods_are_not_spread_by_default(probe: PodInfo) -> None:
    view = view_of([in_zone("a", "z1"), in_zone("b", "z2")], [replica(0, "a")])
    assert scores(PodTopologySpreadScore(), probe, view, ["a", "b"]) == {"a": 0, "b": 0}


@pytest.mark.parametrize("max_skew", [-(2**31), -1, 0, 2**31 - 1])
def test_absurd_skews_do_no_harm(max_skew: int) -> None:
    view = view_of([in_zone("a", "z1"), in_zone("b", "z2")], [replica(0, "a")])
    odd = PodConstraints(spread=(TopologySpreadConstraint(max_skew, ZONE, hard=False, selector=WEB),))
    assert set(scores(PodTopologySpreadScore(), pod_of("new", constraints=odd), view, ["a", "b"])) == {"a", "b"}
