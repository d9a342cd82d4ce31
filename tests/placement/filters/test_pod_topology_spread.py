"""What upstream's tables leave out; the tables themselves are in test_upstream_cases.py."""

from __future__ import annotations

import pytest

from kube.objects.constraints import PodConstraints, TopologySpreadConstraint
from placement.filters.pod_topology_spread import PodTopologySpread
from tests.placement.small_cluster import chosen, is_in, node_of, pod_of, rejections, view_of

WEB = chosen(is_in("app", "web"))
NODES = [node_of(name, {"host": name, "zone": zone}) for name, zone in (("a", "z1"), ("b", "z2"))]


def spread(*constraints: TopologySpreadConstraint) -> PodConstraints:
    return PodConstraints(spread=constraints)


def hard(key: str, max_skew: int = 1, **others: int) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(max_skew, key, hard=True, selector=WEB, **others)  # type: ignore[arg-type]


def test_an_empty_selector_counts_no_pod_but_the_new_one() -> None:
    pods = [pod_of(f"p{i}", {"app": "web"}, node="a") for i in range(9)]
    everything = TopologySpreadConstraint(1, "zone", hard=True, selector=chosen())
    assert rejections(PodTopologySpread(), pod_of("new", constraints=spread(everything)), view_of(NODES, pods)) == {}
    no_more = TopologySpreadConstraint(0, "zone", hard=True, selector=chosen())
    found = rejections(PodTopologySpread(), pod_of("new", constraints=spread(no_more)), view_of(NODES, pods))
    assert set(found) == {"a", "b"}


@pytest.mark.parametrize("number", [-(2**31), -1, 0, 2**31 - 1])
def test_absurd_numbers_do_no_harm(number: int) -> None:
    view = view_of(NODES, [pod_of("p", {"app": "web"}, node="a")])
    probe = pod_of("new", {"app": "web"}, constraints=spread(hard("zone", number), hard("rack", min_domains=number)))
    assert set(rejections(PodTopologySpread(), probe, view)) == {"a", "b"}
