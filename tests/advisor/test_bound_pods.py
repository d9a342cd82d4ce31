"""Where pods went that were advised on, said once, and why it is elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from advisor.followed_advice import BoundPods, CanaryOutcome, Following, Way
from cluster.tables.changes import Change
from kube.decoding.decoding import Kind
from kube.objects.objects import NodeInfo, PodInfo, PodPhase
from placement.decisions.decision import Binding
from placement.decisions.recorder import DecisionRecorder
from placement.filters.filter import ClusterView
from placement.filters.inter_pod_affinity import InterPodAffinity
from placement.filters.node_resources_fit import NodeResourcesFit
from placement.filters.node_unschedulable import NodeUnschedulable
from placement.index.index import INDEXED_KINDS, PlacementIndex
from scorer.scorer import Scorer
from testing.objects import pod_info
from testing.placement.views import node_named, pod_with
from tests.placement.decisions.made_up import AT, advice

WAITING = pod_info("a", requests={"cpu": 1.0}, created=AT)


class World:
    """Two nodes, and who is told of decisions."""

    def __init__(self, *pods: PodInfo) -> None:
        self.taken: list[Binding] = []
        self.recorder = DecisionRecorder([self], version="1.2.3", clock=lambda: AT)
        self.tables = Scorer(clock=lambda: AT).tables
        with self.tables.reading() as cluster:
            view = ClusterView(cluster, PlacementIndex(cluster.state))
            self.tables.attach(INDEXED_KINDS, view.index)
            filters = (NodeUnschedulable(), NodeResourcesFit(), InterPodAffinity())
            self.following = Following(lambda: "1.37")
            self.bound = BoundPods(cluster, view, self.recorder, lambda pod: filters, self.following)
            self.tables.attach((), self.bound)
        self.tables.replace(Kind.NODES, [node_named("n1"), node_named("n2")])
        self.see(*pods)

    def take(self, binding: Binding) -> None:
        self.taken.append(binding)

    def see(self, *objects: PodInfo | NodeInfo) -> None:
        for one in objects:
            self.tables.put(Kind.PODS if isinstance(one, PodInfo) else Kind.NODES, one)

    def advised(self, pod: PodInfo, points: Mapping[str, int] | None = None) -> None:
        self.recorder.advised(advice({"n1": 3, "n2": 1} if points is None else points, uid=pod.uid))

    def assume(self, *pods: PodInfo, node: str = "n1", at_once: bool = False) -> None:
        with self.tables.changing() as cluster:
            if at_once:
                cluster.assume_all(pods, [cluster.state.row_of[node]] * len(pods), AT + 60)
                return
            for pod in pods:
                cluster.assume(pod, node, AT + 60)

    def said(self) -> list[tuple[str, str, str]]:
        """UID, node and why it is not there, of each decision."""
        return [(one.advice.uid, one.node, one.elsewhere_because) for one in self.taken]

    def not_advised(self) -> int:
        """Pods that count as bound without advice of ours."""
        self.recorder.expire(AT + 60)
        return self.recorder.figures().not_advised


def on(node: str, pod: PodInfo = WAITING) -> PodInfo:
    return replace(pod, node=node)


@pytest.mark.parametrize(
    ("node", "others", "why"),
    [
        (node_named("n1", unschedulable=True), [], "NodeUnschedulable: node(s) were unschedulable"),
        (
            node_named("n1"),
            [pod_info("b", node="n1", requests={"cpu": 3.5})],
            "NodeResourcesFit: Insufficient cpu",
        ),
        # A full node elsewhere is no reason.
        (
            node_named("n2", unschedulable=True),
            [],
            "all filters that are known here pass: kube-scheduler decided otherwise",
        ),
    ],
)
def test_a_pod_that_is_elsewhere_with_the_reason_of_the_filter(node: NodeInfo, others: list[PodInfo], why: str) -> None:
    world = World(WAITING)
    world.advised(WAITING)
    world.see(node, *others, on("n2"))
    assert world.said() == [("a", "n2", why)]


def test_a_pod_does_not_keep_itself_away() -> None:
    """Failed before: a pod that wants no other of its kind in its zone was rejected because of itself."""
    spec = {
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
                ]
            }
        }
    }
    pod = pod_with(spec, labels={"app": "web"})
    other = replace(pod, uid="other", name="other", node="n1")
    world = World(pod)
    world.see(*(node_named(name, labels={"zone": "z"}) for name in ("n1", "n2")))
    world.advised(pod)
    world.see(on("n2", pod))
    ((_, _, why),) = world.said()
    assert why.startswith("all filters that are known here pass")
    world.see(other, replace(pod, uid="late", name="late"))
    world.advised(replace(pod, uid="late"))
    world.see(on("n2", replace(pod, uid="late", name="late")))
    _, (_, _, why) = world.said()
    assert why.startswith("InterPodAffinity: "), "others, this one before them among them, do"


def test_to_ask_why_changes_no_table() -> None:
    world = World(WAITING, pod_info("b", node="n1", requests={"cpu": 3.5}))
    world.advised(WAITING)
    heard: list[Sequence[Change]] = []
    with world.tables.reading() as cluster:
        cluster.listeners.append(heard.append)
    world.see(on("n2"))
    assert [len(changes) for changes in heard] == [1], "nothing but the binding is told of"
    with world.tables.reading() as cluster:
        state = cluster.state
        assert state.pods["a"] == on("n2") and state.names[state.seat_of["a"].node] == "n2"
        cpu = state.requested[:, state.kinds["cpu"]].tolist()
        assert [cpu[state.row_of[name]] for name in ("n1", "n2")] == [3.5, 1.0]


def test_a_pod_on_a_node_that_is_unknown_or_gone_is_reported_there() -> None:
    world = World(WAITING)
    world.advised(WAITING)
    world.see(on("n9"))
    assert [where for _, where, _ in world.said()] == ["n9"]
    with world.tables.reading() as cluster:
        assert cluster.state.names[cluster.state.seat_of["a"].node] == "n9"
    world = World(WAITING)
    world.advised(WAITING)
    world.tables.delete(Kind.NODES, node_named("n1"))
    world.see(on("n2"))
    assert world.said() == [("a", "n2", "node n1 is gone")]


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("changes", [{}, {"phase": PodPhase.RUNNING}, {"labels": {"new": "label"}}])
def test_an_assumed_pod_is_reported_when_the_watch_shows_it_there_and_once(
    at_once: bool, changes: Mapping[str, object]
) -> None:
    other = replace(WAITING, uid="b", name="b")
    world = World(WAITING, other)
    for pod in (WAITING, other):
        world.advised(pod)
    world.assume(WAITING, other, at_once=at_once)
    world.see(replace(WAITING, annotations={"new": "annotation"}))
    assert world.said() == [], "it still waits"
    world.see(replace(on("n1"), **changes))  # type: ignore[arg-type]
    assert world.said() == [("a", "n1", "")]
    world.see(replace(on("n1"), phase=PodPhase.RUNNING, started=AT), on("n1", other))
    assert world.said() == [("a", "n1", ""), ("b", "n1", "")]


def test_a_pod_is_counted_once_and_not_while_it_waits_or_was_taken_back() -> None:
    world = World(WAITING)
    world.see(on("n2"), replace(on("n2"), phase=PodPhase.RUNNING, labels={"new": "label"}))
    assert world.said() == [] and world.not_advised() == 1
    world = World(WAITING)
    world.advised(WAITING)
    world.see(replace(WAITING, gates=("a",)), WAITING)
    world.tables.delete(Kind.PODS, WAITING)
    assert world.said() == [] and world.not_advised() == 0
    world = World(WAITING)
    world.advised(WAITING)
    world.assume(WAITING)
    with world.tables.changing() as cluster:
        cluster.forget("a")
    assert world.said() == []
    world.see(on("n1"))
    assert world.said() == [("a", "n1", "")]


@pytest.mark.parametrize("at_once", [True, False])
def test_an_assumed_pod_that_went_elsewhere_or_was_bound_meanwhile_is_reported_once(at_once: bool) -> None:
    world = World(WAITING)
    world.advised(WAITING)
    world.assume(WAITING, at_once=at_once)
    world.see(node_named("n1", unschedulable=True), on("n2"))
    assert world.said() == [("a", "n2", "NodeUnschedulable: node(s) were unschedulable")]
    world.see(replace(on("n2"), labels={"new": "label"}))
    assert len(world.said()) == 1 and world.not_advised() == 0
    world = World(WAITING)
    world.advised(WAITING)
    world.assume(WAITING, at_once=at_once)
    world.tables.replace(Kind.PODS, [on("n1")])
    world.tables.replace(Kind.PODS, [replace(on("n1"), phase=PodPhase.RUNNING)])
    assert world.said() == [("a", "n1", "")] and world.not_advised() == 0


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("is_assumed", [True, False])
def test_what_becomes_of_a_pod_later_is_no_second_binding(is_assumed: bool, at_once: bool) -> None:
    """Failed before: each change of a running pod counted it as bound without advice."""
    world = World(WAITING)
    world.advised(WAITING)
    if is_assumed:
        world.assume(WAITING, at_once=at_once)
    world.see(on("n1"), replace(on("n1"), phase=PodPhase.RUNNING), replace(on("n1"), labels={"new": "label"}))
    world.tables.delete(Kind.PODS, WAITING)
    assert world.said() == [("a", "n1", "")] and world.not_advised() == 0


def test_after_tables_were_made_anew_pods_that_are_assumed_are_still_awaited() -> None:
    world = World(WAITING)
    world.advised(WAITING)
    with world.tables.reading() as cluster:
        listeners, cluster.listeners[:] = list(cluster.listeners), []  # as if this had not been followed
        world.assume(WAITING)
        cluster.listeners[:] = listeners
    world.bound.rebuild()
    world.see(on("n1"), replace(on("n1"), phase=PodPhase.RUNNING))
    assert world.said() == [("a", "n1", "")] and world.not_advised() == 0


@pytest.mark.parametrize(
    ("at", "others_cores", "outcome"),
    [("n2", 0.0, CanaryOutcome.FOLLOWED), ("n1", 0.0, CanaryOutcome.ELSEWHERE), ("n1", 64.0, CanaryOutcome.UNCLEAR)],
)
def test_where_a_canary_went_is_reported_and_whether_a_filter_kept_it_away(
    at: str, others_cores: float, outcome: CanaryOutcome
) -> None:
    world = World(WAITING, pod_info("other", uid="other", node="n2", requests={"cpu": others_cores}))
    assert world.following.way(WAITING.uid, advice({"n1": 3, "n2": 1}, uid=WAITING.uid)) is Way.CANARY
    world.following.nominated(WAITING.uid, WAITING.namespace, "n2", Way.CANARY)
    world.see(replace(WAITING, node=at))
    assert world.following.canaries == {outcome: 1}
