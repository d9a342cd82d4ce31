"""Where pods go: filter, order of nodes, and who is woken, on real tables and through the placing of a cycle."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube.objects.constraints import HostPort, PodVolume
from kube.objects.objects import NodeInfo, PodInfo, Taint
from placement.cluster_events import ClusterEvent, EventKind, Hint
from placement.pod_groups.group_of_pod import GROUP_LABEL
from placement.virtual_node_settings import PROVIDER_TAINT, First, Provider
from profiles.job.circuit_breaker import StartFailure
from profiles.job.job_annotations import PLACE_ANNOTATION
from profiles.job.serverless.pod_takeback import TakebackOutcome
from profiles.job.serverless.serverless_parts import ServerlessCollector
from tests.profiles.job.serverless.providers_world import GIB, World, job_pod, provider_node, real_node


def pods(count: int, prefix: str = "p", **fields: Any) -> list[PodInfo]:
    return [job_pod(f"{prefix}-{i}", **fields) for i in range(count)]


def test_cluster_first_is_the_other_way_round() -> None:
    world = World([real_node(cpu=30.0), provider_node("v", "aci")], Provider(name="aci"), first=First.CLUSTER)
    assert Counter(world.place(pods(100))) == {"real": 30, "v": 70}


def test_never_is_never() -> None:
    world = World([real_node(cpu=30.0), provider_node("v", "aci")], Provider(name="aci"), first=First.NEVER)
    assert Counter(world.place(pods(100))) == {"real": 30}
    world = World([provider_node("v")], first=First.NEVER)  # without a taint
    assert world.place(pods(1, place="serverless")) == []


@pytest.mark.parametrize(
    ("provider", "room"),
    [
        (Provider(name="aci", most_cpu=10.0), 5),
        (Provider(name="aci", most_memory=12), 3),
        (Provider(name="aci", most_starting=4), 4),
        (Provider(name="aci", price_cpu_hour=0.1, price_memory_gib_hour=0.01, most_spend_per_hour=1.68), 7),
        (Provider(name="aci", most_pods=0), 0),
        (Provider(name="aci", most_cpu=0.3), 0),
        (Provider(name="aci", price_cpu_hour=0.1), 100),
    ],
)
def test_each_limit_is_kept(provider: Provider, room: int) -> None:
    """Pods of 2 cores and 4 GiB."""
    world = World([provider_node("v", "aci")], provider)
    assert len(world.place(pods(100, cpu=2.0, memory=4 * GIB))) == room
    (rest,) = {*world.reasons(job_pod("one-more", cpu=2.0, memory=4 * GIB)).values()} or {""}
    assert ("provider aci" in rest) == (room < 100)


def test_a_batch_goes_where_the_same_pods_go_one_by_one() -> None:
    def placed(*, one_by_one: bool) -> Counter[str]:
        nodes = [real_node(cpu=9.0), provider_node("a", "x"), provider_node("b", "y"), provider_node("c")]
        world = World(
            nodes,
            Provider(name="x", weight=2.0, most_pods=11),
            Provider(name="y", most_starting=9),
            Provider(name="other"),
        )
        return Counter(world.place(pods(60), one_by_one=one_by_one))

    assert placed(one_by_one=False) == placed(one_by_one=True)


def test_what_stays_stays_and_says_why() -> None:
    world = World([real_node(), provider_node("v", "aci")])
    for pod, word in (
        (job_pod("p", place="cluster"), "stay in the cluster"),
        (job_pod("p", volumes=(PodVolume(claim="c"),)), "volumes"),
        (job_pod("p", uses_host=True), "uses its node"),
        (job_pod("p", host_ports=(HostPort("0.0.0.0", "TCP", 1),)), "ports"),
    ):
        reasons = world.reasons(pod)
        assert reasons.keys() == {"v"} and word in reasons["v"]
    assert world.place([job_pod("q", place="cluster")]) == ["real"]


def test_place_serverless_is_virtual_nodes_only() -> None:
    world = World([real_node(), provider_node("v", "aci")], Provider(name="aci", most_pods=1))
    assert world.place(pods(3, place="serverless")) == ["v"]
    assert world.reasons(job_pod("p", place="serverless")).keys() == {"real", "v"}
    assert World([real_node()]).place([job_pod("p", place="serverless")]) == []
    reasons = world.reasons(job_pod("p", place="serverless", uses_host=True))
    assert len(set(reasons.values())) == 2, "it cannot go anywhere, and is told of both"


def test_a_gang_can_find_out_whether_a_provider_is_well_again() -> None:
    """With no other nodes: one pod at a time would never be the whole gang."""
    world = World([provider_node("v", "aci")], Provider(name="aci"))
    (first,) = pods(1, "first")
    world.place([first])
    world.rejected(first, "v")
    world.now += 30.0
    members = [replace(pod, labels={GROUP_LABEL: "g"}) for pod in pods(4, "member")]
    assert world.place(members[:2]) == ["v", "v"]
    assert world.place(members[2:]) == ["v", "v"]
    assert "one pod or gang at a time" in world.reasons(job_pod("p"))["v"]
    other = replace(job_pod("other"), labels={GROUP_LABEL: "other"})
    assert "one pod or gang at a time" in world.reasons(other)["v"]
    for pod in members:
        world.gone(pod)
    assert world.reasons(other) == world.reasons(job_pod("p")) == {}


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 40), st.sampled_from([0.1, 0.7, 2.0]), st.integers(0, 3)), max_size=8),
    st.integers(0, 60),
    st.floats(0.0, 30.0),
    st.integers(1, 30),
)
def test_no_quota_is_ever_passed(
    batches: list[tuple[int, float, int]], most_pods: int, most_cpu: float, most_starting: int
) -> None:
    provider = Provider(name="x", most_pods=most_pods, most_cpu=most_cpu, most_starting=most_starting)
    world = World([provider_node("a", "x"), provider_node("b", "x"), real_node(cpu=20.0)], provider)
    for number, (count, cpu, starts) in enumerate(batches):
        world.place(pods(count, f"batch-{number}", cpu=cpu))
        there = [pod for pod in world.view.state.pods.values() if pod.node in ("a", "b")]
        starting = [pod for pod in there if pod.started is None]
        assert len(there) <= most_pods and len(starting) <= most_starting
        assert sum(pod.requests["cpu"] for pod in there) <= most_cpu + 0.001
        assert world.use("x")[0] == len(there) and world.use("x")[3] == len(starting)
        for pod in starting[:starts]:
            world.started(pod, pod.node)


@pytest.mark.parametrize(
    ("event", "helps"),
    [
        (ClusterEvent(EventKind.NODE_ADDED, node=provider_node("w", "aci")), True),
        (ClusterEvent(EventKind.NODE_CHANGED, node=provider_node("v"), before=provider_node("v")), False),
        (ClusterEvent(EventKind.NODE_CHANGED, node=provider_node("v"), before=provider_node("v", ready=False)), True),
        (ClusterEvent(EventKind.POD_LEFT, pod=replace(job_pod("q"), node="v")), True),
        (ClusterEvent(EventKind.POD_LEFT, pod=replace(job_pod("q"), node="real")), False),
    ],
)
def test_pods_are_woken_by_what_helps_them(event: ClusterEvent, helps: bool) -> None:
    world = World([real_node(), provider_node("v", "aci")], Provider(name="aci", most_pods=1))
    assert event.kind in world.serverless.woken_by
    assert world.serverless.hint(job_pod("p"), event) is (Hint.QUEUE if helps else Hint.SKIP)
    if event.pod is not None:
        assert world.serverless.hint(job_pod("p", place="cluster"), event) is Hint.SKIP


def test_room_at_a_provider_wakes_those_who_may_take_it() -> None:
    world = World([provider_node("v", "aci")], Provider(name="aci", most_pods=1), Provider(name="other", most_pods=0))
    event = ClusterEvent(EventKind.FORECAST_CHANGED)
    assert world.serverless.hint(job_pod("p"), event) is Hint.QUEUE
    world.place(pods(1))
    assert world.serverless.hint(job_pod("p"), event) is Hint.SKIP


REQUESTS = {"cpu": 2.0, "memory": GIB}


def room(world: World, *, of: frozenset[str] | None = None) -> int:
    """of: names of the nodes that jobs may use; None = all."""
    return world.serverless.room_for(REQUESTS, world.cluster.state, lambda node: of is None or node.name in of)


def tainted(node: NodeInfo, key: str, effect: str) -> NodeInfo:
    return replace(node, taints=(*node.taints, Taint(key, "", effect)))


USABLE = provider_node("v", "p", cpu=60.0)


@pytest.mark.parametrize(
    ("node", "pods"),
    [
        (USABLE, 30),
        (tainted(USABLE, "whatever", "PreferNoSchedule"), 30),
        (replace(USABLE, ready=False), 0),
        (replace(USABLE, unschedulable=True), 0),
        (tainted(USABLE, "team", "NoSchedule"), 0),
        (tainted(USABLE, "team", "NoExecute"), 0),
        (tainted(USABLE, "virtual-kubelet.io/provider", "NoExecute"), 0),
        (real_node("v", cpu=60.0), 0),
    ],
)
def test_nodes_that_take_no_pods_have_no_room_for_them(node: NodeInfo, pods: int) -> None:
    assert room(World([real_node(), node], Provider(name="p"))) == pods


def test_a_provider_without_limits_has_the_room_of_its_nodes_and_one_with_limits_no_more() -> None:
    nodes = [USABLE, provider_node("w", "q", cpu=400.0), provider_node("x", cpu=10.0)]
    world = World(nodes, Provider(name="p"), Provider(name="q", most_pods=7))
    assert room(world) == 30 + 7 + 5
    world.put(*(bound := [replace(job_pod(f"on-{i}", cpu=3.0), node="v") for i in range(10)]))
    assert len(bound) == 10
    assert room(world) == 15 + 7 + 5
    with_card = REQUESTS | {"example.com/card": 1.0}
    assert world.serverless.room_for(with_card, world.cluster.state) == 0, "which no node has"


def test_none_where_providers_come_after_the_cluster_and_their_taint_counts_where_nobody_tolerates_it() -> None:
    assert room(World([USABLE], Provider(name="p"), first=First.CLUSTER)) == 0
    assert room(World([USABLE], Provider(name="p"), tolerate=False)) == 0
    assert room(World([real_node()], Provider(name="p"))) == 0


DOC = (Path(__file__).parents[4] / "docs" / "use" / "jobs.md").read_text()


def test_every_metric_is_listed() -> None:
    for family in ServerlessCollector(World([]).tables, None).collect():
        assert f"`{family.name}{'_total' if family.type == 'counter' else ''}`" in DOC
    for word in (*StartFailure, *TakebackOutcome, "taken_back_total"):
        assert (word if isinstance(word, str) else f"`{word.value}`") in DOC


def test_names_that_people_write_are_those_of_the_code() -> None:
    assert PLACE_ANNOTATION in DOC and PROVIDER_TAINT in DOC
