"""A cycle decides about a unit as a whole, and leaves nothing behind of what it takes back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from base.arrays import Ints
from kube.decoding.decoding import Kind
from kube.objects.constraints import PodVolume
from kube.objects.objects import PodInfo
from placement.filters.catalogue import standard_filters
from placement.filters.filter import ClusterView, Filter, PlainFilter, Rejection
from placement.filters.rejections import found
from placement.guarded_plugin import GuardedPlugin
from placement.index.index import INDEXED_KINDS, PlacementIndex
from placement.node_plugin import NodeArrays, NodePlugin
from placement.plugins import Nomination
from placement.policies.policy import OnePolicyForAll, Policy
from placement.scores.node_score import NodeScore
from placement.status import SUCCESS, Code, Status
from scheduler.binding.binding_plugins import BindingPlugins
from scheduler.cycle.cycle import SchedulingCycle
from scheduler.cycle.decisions import Decisions
from scheduler.cycle.placing import UnitPlacer
from scheduler.gangs.directory import GangDirectory
from scheduler.profile import SchedulingProfile
from scheduler.queue.queued_pods import Popped, QueuedPodInfo
from scorer.scorer import Scorer
from scorer.scoring_policy import scoring_policy
from tests.placement.small_cluster import node_of
from tests.scheduler.gangs.made_up import NOW, TRAIN, group, member


@dataclass
class Reserving:
    """Implements Reserve. refuses: names of pods."""

    refuses: frozenset[str] = frozenset()
    name: str = "Reserving"
    held: dict[str, str] = field(default_factory=dict)

    def reserve(self, pod: PodInfo, node: str) -> Status:
        if pod.name in self.refuses:
            return Status(Code.UNSCHEDULABLE, self.name, "not this one")
        self.held[pod.uid] = node
        return SUCCESS

    def unreserve(self, pod: PodInfo, node: str) -> None:
        self.held.pop(pod.uid, None)


@dataclass
class Evicting:
    """Implements PostFilter: finds room on a node as long as there are `nodes`."""

    nodes: list[str]
    name: str = "Evicting"
    asked: int = 0

    def post_filter(
        self, pod: PodInfo, view: ClusterView, filters: Sequence[Filter], rejections: Sequence[Rejection]
    ) -> Nomination | Status:
        self.asked += 1
        return Nomination(self.nodes.pop(), ()) if self.nodes else Status(Code.UNRESOLVABLE, self.name, "no use")


class World:
    """Nodes for two pods each, and a cycle over them."""

    def __init__(self, n_nodes: int, pods: Sequence[PodInfo], **plugins: Any) -> None:
        self.now = NOW
        self.pods = {pod.uid: pod for pod in pods}
        self.scorer = Scorer(clock=lambda: NOW)
        self.reserving = plugins.pop("reserving", Reserving())
        self.preempted: list[str] = []
        with self.scorer.tables.reading() as cluster:
            self.cluster = cluster
            self.view = ClusterView(cluster, PlacementIndex(cluster.state))
            self.gangs = GangDirectory(cluster.state, is_assumed=cluster.assumed.__contains__, clock=lambda: self.now)
            self.scorer.tables.attach(INDEXED_KINDS, self.view.index)
            self.scorer.tables.attach((), self.gangs)
        allocatable = {"cpu": 4.0, "memory": 2.0**33, "pods": 2.0}
        self.scorer.tables.replace(
            Kind.NODES, [replace(node_of(f"node-{i}"), allocatable=allocatable) for i in range(n_nodes)]
        )
        self.scorer.tables.replace(Kind.PODS, list(pods))
        policy = Policy(scoring_policy(self.scorer.options))
        self.profile = SchedulingProfile(
            "online",
            "forecast-scheduler",
            OnePolicyForAll(policy),
            BindingPlugins(bind=(), reserve=(self.reserving,)),
            filters=standard_filters(),
            **plugins,
        )
        self.cycle = SchedulingCycle(
            self.view, cluster, {"forecast-scheduler": self.profile}, self.gangs, preempt=self._preempt
        )

    def _preempt(self, seats: Sequence[tuple[PodInfo, Nomination]]) -> bool:
        self.preempted += [pod.name for pod, _ in seats]
        return True

    def run(self, *, gang: str = "", uids: Sequence[str] = ()) -> Decisions:
        pods = [self.pods[uid] for uid in uids or self.pods]
        popped = Popped(gang or "unit", bool(gang), tuple(QueuedPodInfo(pod, gang or "unit", NOW) for pod in pods))
        with self.scorer.tables.reading():
            level, _ = self.scorer.tables.level()
            return self.cycle.run(popped, UnitPlacer(self.view, self.cluster, level, NOW + 60))

    @property
    def assumed(self) -> set[str]:
        return set(self.cluster.assumed.uids())


def workers(count: int, *, of: str = "train", role: str = "") -> list[PodInfo]:
    return [member(f"{role or 'worker'}-{i}", role, of=of) for i in range(count)]


def test_pods_that_are_gone_bound_or_assumed_are_left_out() -> None:
    world = World(3, workers(4, of=""))
    world.run(uids=["worker-0"])
    world.scorer.tables.delete(Kind.PODS, world.pods["worker-1"])
    world.scorer.tables.put(Kind.PODS, replace(world.pods["worker-2"], node="node-2"))
    decisions = world.run()
    assert sorted(decisions.gone) == ["worker-0", "worker-1", "worker-2"]
    assert [queued.pod.uid for queued, _ in decisions.placed] == ["worker-3"]


def test_a_gang_that_does_not_fit_holds_nothing() -> None:
    world = World(2, workers(5))
    world.gangs.replace_groups([group(5)])
    before = world.cluster.state.requested.copy()
    decisions = world.run(gang=TRAIN)
    assert not decisions.placed
    assert not world.assumed
    assert not world.reserving.held
    np.testing.assert_array_equal(world.cluster.state.requested, before)
    (rejected,) = decisions.rejected
    assert len(rejected.pods) == 5
    assert rejected.message == (
        "PodGroup ml/train is placed as a whole or not at all: 4 of 5 members fit: "
        "0/2 nodes are available: 2 Too many pods"
    )


def test_the_minimum_of_each_role_comes_first() -> None:
    """Four places: without its order the many workers would take them all."""
    world = World(2, [*workers(5, role="worker"), *workers(1, role="leader")])
    world.gangs.replace_groups([group(2, {"leader": 1, "worker": 2})])
    decisions = world.run(gang=TRAIN)
    placed = [queued.pod.uid for queued, _ in decisions.placed]
    assert len(placed) == 4
    assert "leader-0" in placed


def test_a_gang_of_which_one_member_cannot_be_reserved_holds_nothing() -> None:
    world = World(2, workers(3), reserving=Reserving(frozenset({"pod-worker-1"})))
    world.gangs.replace_groups([group(3)])
    decisions = world.run(gang=TRAIN)
    assert not decisions.placed
    assert not world.assumed
    assert not world.reserving.held
    assert decisions.rejected[0].by == {"Reserving"}


def test_a_pod_that_cannot_be_reserved_gives_its_node_back() -> None:
    world = World(2, workers(2, of=""), reserving=Reserving(frozenset({"pod-worker-1"})))
    decisions = world.run()
    assert [queued.pod.uid for queued, _ in decisions.placed] == ["worker-0"]
    assert world.assumed == {"worker-0"}
    assert decisions.rejected[0].message == "not this one"


def test_room_is_made_for_one_pod_after_the_other_until_it_is_no_use() -> None:
    evicting = Evicting(["node-0", "node-0"])
    world = World(1, workers(7, of=""), post_filters=(evicting,))
    decisions = world.run()
    assert len(decisions.placed) == 2
    assert world.preempted == ["pod-worker-2", "pod-worker-3"]
    assert evicting.asked == 3  # what is no use for one is no use for others like it
    assert [len(rejected.pods) for rejected in decisions.rejected] == [1, 1, 3]
    assert decisions.rejected[-1].message == "0/1 nodes are available: 1 Too many pods. no use"
    assert decisions.rejected[-1].by == {"NodeResourcesFit", "Evicting"}


def test_a_plugin_that_raises_fails_the_pod_and_not_the_scheduler() -> None:
    class Broken:
        name = "Broken"

        def post_filter(self, *_: object) -> Nomination | Status:
            raise RuntimeError("broken")

    decisions = World(1, workers(3, of=""), post_filters=(Broken(),)).run()
    assert len(decisions.placed) == 2
    assert "plugin Broken failed" in decisions.rejected[0].message


class Last(NodeScore):
    """Scores the last node; says nothing of pods whose name does not end in 0."""

    name = "Last"

    def score(self, pod: PodInfo, view: ClusterView, rows: Ints) -> Ints:
        return np.where(rows == rows.max(), 100, 0)

    def skips(self, pod: PodInfo, view: ClusterView, rows: Ints) -> bool:
        return not pod.name.endswith("0")


class LastOfBatch(Last):
    """The same of every pod, and says that like pods do not matter to it."""

    def skips(self, pod: PodInfo, view: ClusterView, rows: Ints) -> bool:
        return False

    def ignores_like_pods(self, pod: PodInfo, view: ClusterView) -> bool:
        return True


def test_a_further_score_counts_for_the_pods_it_does_not_skip() -> None:
    decisions = World(4, workers(2, of=""), scores=((Last(), 1000),)).run()
    first, second = (node for _, node in decisions.placed)
    assert first == "node-3" != second


def test_a_further_score_that_ignores_like_pods_counts_in_batches_until_its_node_is_full() -> None:
    decisions = World(2, workers(5, of=""), scores=((LastOfBatch(), 1000),)).run()
    nodes = [node for _, node in decisions.placed]
    room = nodes.index("node-0")
    assert nodes == ["node-1"] * room + ["node-0"] * (len(nodes) - room)
    assert room


class AtMostOne(Filter):
    """No more than one pod a node. It states nothing of itself."""

    name = "AtMostOne"

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        return found(view.state.pod_count >= 1, view, "node(s) had a pod", preemptible=True)


def test_a_filter_that_states_nothing_of_itself_is_asked_about_each_of_many_like_pods() -> None:
    world = World(2, workers(3, of=""))
    world.profile.filters = (AtMostOne(), *world.profile.filters)
    decisions = world.run()
    assert sorted(node for _, node in decisions.placed) == ["node-0", "node-1"]
    (rejected,) = decisions.rejected
    assert rejected.message == "0/2 nodes are available: 2 node(s) had a pod"


def test_a_score_of_another_package_that_fails_fails_the_pod_by_name() -> None:
    class Broken(NodePlugin):
        name = "Broken"

        def score(self, pod: PodInfo, nodes: NodeArrays) -> Ints:
            raise ValueError("a mistake")

    score = GuardedPlugin(Broken(None)).score
    assert score is not None
    decisions = World(2, workers(1, of=""), scores=((score, 1),)).run()
    (rejected,) = decisions.rejected
    assert "plugin Broken failed in score: ValueError: a mistake" in rejected.message


class Raising(PlainFilter):
    """Raises for some pods."""

    name = "Raising"

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        if pod.labels.get("odd"):
            raise RuntimeError("too odd")
        return ()


def test_a_filter_that_raises_fails_the_pods_it_was_asked_about_and_no_others() -> None:
    odd = replace(member("odd", of=""), labels={"odd": "yes"})
    world = World(3, [*workers(2, of=""), odd, member("late", of="")])
    world.profile.filters = (Raising(), *world.profile.filters)
    decisions = world.run()
    assert {queued.pod.uid for queued, _ in decisions.placed} == {"worker-0", "worker-1", "late"}
    (rejected,) = decisions.rejected
    assert [queued.pod.uid for queued in rejected.pods] == ["odd"]
    assert not rejected.by
    assert "RuntimeError: too odd" in rejected.message


def test_a_gang_of_which_one_member_cannot_be_looked_at_holds_nothing() -> None:
    odd = replace(member("odd"), annotations={}, labels={**member("odd").labels, "odd": "yes"})
    world = World(3, [*workers(2), odd])
    world.gangs.replace_groups([group(3)])
    world.profile.filters = (Raising(), *world.profile.filters)
    decisions = world.run(gang=TRAIN)
    assert not decisions.placed
    assert not world.assumed
    assert not world.reserving.held
    assert len(decisions.rejected[0].pods) == 3


class InOrder(Reserving, PlainFilter):
    """Notes who is looked at and who is reserved, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        self.calls += [f"look at {pod.uid}"] if f"look at {pod.uid}" not in self.calls else []
        return ()

    def reserve(self, pod: PodInfo, node: str) -> Status:
        self.calls.append(f"reserve {pod.uid}")
        return super().reserve(pod, node)


@pytest.mark.parametrize("shared", [False, True])
def test_members_are_reserved_before_the_next_are_placed(shared: bool) -> None:
    """shared: both use one claim; else they are not alike, as members with a claim each are not."""
    one, two = workers(2)
    if shared:
        one, two = (replace(pod, volumes=(PodVolume(claim="data"),)) for pod in (one, two))
    else:
        two = replace(two, labels={**two.labels, "member": "two"})
    told = InOrder()
    world = World(1, [one, two], reserving=told)
    world.profile.filters = (told,)
    world.gangs.replace_groups([group(2)])
    assert len(world.run(gang=TRAIN).placed) == 2
    assert told.calls == [f"{what} worker-{i}" for i in range(2) for what in ("look at", "reserve")]
