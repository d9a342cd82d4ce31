from __future__ import annotations

import pytest

from kube.objects.constraints import PodConstraints, PreferredPodTerm
from placement.scores.inter_pod_affinity import InterPodAffinityScore
from tests.placement.small_cluster import is_in, node_of, pod_of, scores, term, view_of

NODES = [node_of("a", {"zone": "z1"}), node_of("b", {"zone": "z2"}), node_of("c", {"zone": "z3"}), node_of("d")]
NAMES = ["a", "b", "c", "d"]
NEAR_WEB = term("zone", is_in("app", "web"))


def preferring(weight: int) -> PodConstraints:
    return PodConstraints(preferred_affinity=(PreferredPodTerm(weight, NEAR_WEB),))


def test_where_nothing_tells_nodes_apart_all_have_zero() -> None:
    assert scores(InterPodAffinityScore(), pod_of("new"), view_of(NODES, []), NAMES) == dict.fromkeys(NAMES, 0)
    assert scores(InterPodAffinityScore(), pod_of("new"), view_of(NODES, []), []) == {}


@pytest.mark.parametrize("weight", [-(2**31), 0, 2**31 - 1])
def test_absurd_weights_do_no_harm(weight: int) -> None:
    pods = [pod_of(f"w{i}", {"app": "web"}, node="a", constraints=preferring(weight)) for i in range(3)]
    probe = pod_of("new", {"app": "web"}, constraints=preferring(weight))
    found = scores(InterPodAffinityScore(), probe, view_of(NODES, pods), NAMES)
    assert found["a"] == (100 if weight > 0 else 0) and set(found.values()) <= {0, 100}
