"""Pods that were placed in one cycle exchange nodes: what it gains, who takes part, and that the tables follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import numpy as np
import pytest

from advisor.exchanged_nodes import PlacedTogether
from advisor.pods_waiting_for_advice import GatedPods
from base.arrays import Ints
from cluster.predicted.placed_together import FilledNodes, Release, rearranged
from kube.decoding.decoding import Kind
from kube.objects.constraints import UNCONSTRAINED, LabelSelector, PodAffinityTerm, TopologySpreadConstraint
from kube.objects.objects import PodInfo
from placement.filters.catalogue import standard_filters
from placement.filters.filter import ClusterView
from placement.filters.scheduling_gates import SchedulingGates
from placement.gate_exemptions import ADVICE
from placement.index.index import INDEXED_KINDS, PlacementIndex
from placement.policies.policy import OnePolicyForAll, Policy
from placement.status import SUCCESS, Code, Status
from scheduler.binding.binding_plugins import BindingPlugins
from scheduler.cycle.cycle import SchedulingCycle
from scheduler.cycle.placing import UnitPlacer
from scheduler.profile import SchedulingProfile
from scheduler.queue.queued_pods import Popped, QueuedPodInfo
from scorer.scoring_policy import scoring_policy
from tests.scorer.live_cluster import node, pod_of
from tests.scorer.scorer_at import LiveScorer, shares, tables

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


@dataclass
class Reserving:
    """Implements Reserve. refuses: nodes by name of the pod."""

    refuses: Mapping[str, frozenset[str]] = field(default_factory=dict)
    name: str = "Reserving"
    held: dict[str, str] = field(default_factory=dict)

    def reserve(self, pod: PodInfo, node: str) -> Status:
        if node in self.refuses.get(pod.name, ()):
            return Status(Code.UNSCHEDULABLE, self.name, "not there")
        self.held[pod.uid] = node
        return SUCCESS

    def unreserve(self, pod: PodInfo, node: str) -> None:
        self.held.pop(pod.uid, None)


def waiting(numbers: Sequence[int], **fields: Any) -> list[PodInfo]:
    """Pods of these services, held by our gate, each of a controller of its own."""
    return [
        replace(pod_of(number, f"p{at}", cpu=0.5, memory=0.5), owner_uid=f"rs-{at}", gates=(ADVICE,), **fields)
        for at, number in enumerate(numbers)
    ]


RELEASE = waiting([0, 5, 5, 1, 2, 3, 3, 2, 0, 5, 4, 0])


class World:
    """Two small nodes and a large one, and a cycle over them that exchanges, or does not."""

    def __init__(
        self,
        pods: Sequence[PodInfo],
        *,
        exchanges: bool = True,
        reserving: Reserving | None = None,
        clock: Callable[[], float] = lambda: 0.0,
        **fields: Any,
    ) -> None:
        self.live = LiveScorer(sizes=(20.0, 20.0, 40.0), **fields)
        self.pods, self.reserving = list(pods), reserving or Reserving()
        scorer = self.live.scorer
        with scorer.tables.reading() as cluster:
            self.cluster = cluster
            self.view = ClusterView(cluster, PlacementIndex(cluster.state))
            self.gated = GatedPods(cluster)
        scorer.tables.attach(INDEXED_KINDS, self.view.index)
        scorer.tables.attach((), self.gated)
        for pod in pods:
            scorer.tables.put(Kind.PODS, pod)
        opened = SchedulingGates(ADVICE)
        profile = SchedulingProfile(
            "online",
            pods[0].scheduler_name,
            OnePolicyForAll(Policy(scoring_policy(scorer.options))),
            BindingPlugins(bind=(), reserve=(self.reserving,)),
            filters=tuple(opened if one.name == opened.name else one for one in standard_filters()),
            score_per_point=0.05,
        )
        self.profiles = {profile.scheduler_name: profile}
        self.cycle = SchedulingCycle(self.view, cluster, self.profiles, None, stopwatch=lambda: 0.0)
        self.together = PlacedTogether(self.view, cluster, self.profiles, stopwatch=clock)
        self.exchanges = exchanges

    def run(self) -> list[tuple[PodInfo, str]]:
        """Pods and their nodes; half of them are placed in a second cycle."""
        tables, until = self.live.scorer.tables, self.live.clock.now + 60
        placed = list[tuple[QueuedPodInfo, str]]()
        half = len(self.pods) // 2
        for pods in (self.pods[:half], self.pods[half:]):
            popped = Popped("some", False, tuple(QueuedPodInfo(pod, "some", 0.0) for pod in pods))
            with tables.changing() as cluster:
                placer = UnitPlacer(self.view, cluster, tables.level()[0], until=until, movable={})
                decisions = self.cycle.run(popped, placer)
                self.together.note(decisions.placed, placer)
            placed += decisions.placed
        before = {queued.pod.uid: node for queued, node in placed}
        moved: Mapping[str, str] = {}
        if self.exchanges:
            with tables.reading():
                question = self.together.question()
            answer = None if question is None else question()
            self.before_carried_out()
            with tables.changing():
                moved = {} if answer is None else self.together.carry_out(answer, until)
        return [(queued.pod, moved.get(queued.pod.uid, before[queued.pod.uid])) for queued, _ in placed]

    def before_carried_out(self) -> None:
        """Between the search and what comes of it."""

    def nodes(self) -> dict[str, str]:
        """Node by name of the pod, once placed."""
        return {pod.name: node for pod, node in self.run()}

    def highest(self) -> float:
        """The highest share of CPU that is predicted of any node."""
        load = tables(self.live).load
        return float(load.peaks(np.arange(load.n_nodes))[:, 0].max())


def test_each_pod_is_charged_and_reserved_where_it_is_advised_to_go() -> None:
    world = World(RELEASE)
    nodes = world.nodes()
    by_uid = {pod.uid: nodes[pod.name] for pod in RELEASE}
    state, names = world.cluster.state, world.view.state.names
    assert {uid: names[state.seat_of[uid].node] for uid in by_uid} == by_uid
    assert world.reserving.held == by_uid
    assert set(world.cluster.assumed.uids()) == set(by_uid)
    requested = np.zeros(len(names))
    for name in nodes.values():
        requested[state.row_of[name]] += 0.5
    np.testing.assert_allclose(state.requested[:, 0], requested)
    seated = World(RELEASE, exchanges=False)
    for pod in RELEASE:
        with seated.live.scorer.tables.changing() as cluster:
            cluster.assume(pod, nodes[pod.name], seated.live.clock.now + 60)
    for live in (world.live, seated.live):
        live.later(0.0)
    np.testing.assert_allclose(shares(world.live), shares(seated.live), rtol=1e-4, atol=1e-6)


OWN = LabelSelector(())
AWAY = PodAffinityTerm(OWN, HOSTNAME, frozenset({"elsewhere"}))
ZONES = TopologySpreadConstraint(5, ZONE, hard=False, selector=OWN)


@pytest.mark.parametrize(
    "fields",
    [
        {"constraints": replace(UNCONSTRAINED, anti_affinity=(AWAY,))},
        {"constraints": replace(UNCONSTRAINED, spread=(ZONES,))},
        {"annotations": {"forecast-scheduler.io/opt-out": "true"}},
    ],
)
def test_a_pod_whose_own_terms_count_keeps_its_node_and_so_do_pods_beside_it(fields: Mapping[str, Any]) -> None:
    with_one = [*RELEASE[:-1], replace(RELEASE[-1], **fields)]
    before, after = World(with_one, exchanges=False).nodes(), World(with_one).nodes()
    its_node = before[RELEASE[-1].name]
    assert {name for name, node in after.items() if node == its_node} == {
        name for name, node in before.items() if node == its_node
    }


def test_an_exchange_lowers_the_highest_peak_by_the_forecast_alone_within_zones() -> None:
    alone, together = World(RELEASE, exchanges=False), World(RELEASE)
    before, after = alone.nodes(), together.nodes()
    assert before.keys() == after.keys() == {pod.name for pod in RELEASE}
    assert before != after
    assert together.highest() < 0.9 * alone.highest()
    blind = World(RELEASE, without_model=True).nodes()
    assert blind == World(RELEASE, exchanges=False, without_model=True).nodes()

    def in_zones(world: World) -> World:
        for number, size in enumerate((20.0, 20.0, 40.0)):
            labelled = replace(node(f"node-{number}", size), labels={ZONE: f"zone-{number}"})
            world.live.scorer.tables.put(Kind.NODES, labelled)
        return world

    assert in_zones(World(RELEASE)).nodes() == in_zones(World(RELEASE, exchanges=False)).nodes()


def test_a_pod_that_a_plugin_refuses_at_its_new_node_stays() -> None:
    before, after = World(RELEASE, exchanges=False).nodes(), World(RELEASE).nodes()
    name = next(name for name in after if after[name] != before[name])
    world = World(RELEASE, reserving=Reserving({name: frozenset({after[name]})}))
    assert world.nodes() == {**after, name: before[name]}
    assert world.reserving.held == {pod.uid: {**after, name: before[name]}[pod.name] for pod in RELEASE}


def test_a_pod_that_has_gone_meanwhile_is_left_out() -> None:
    before, after = World(RELEASE, exchanges=False).nodes(), World(RELEASE).nodes()
    gone = next(pod for pod in RELEASE if after[pod.name] != before[pod.name])

    class Leaving(World):
        def before_carried_out(self) -> None:
            self.live.delete(gone)

    world = Leaving(RELEASE)
    assert world.nodes() == {**after, gone.name: before[gone.name]}
    assert gone.uid not in world.cluster.state.seat_of


def test_nothing_changes_if_a_node_has_lost_its_room_meanwhile() -> None:
    requests = [{"cpu": 0.5 + 0.01 * at, "memory": 0.5} for at in range(len(RELEASE))]
    pods = [replace(pod, requests=one) for pod, one in zip(RELEASE, requests, strict=True)]
    before = World(pods, exchanges=False).nodes()
    assert World(pods).nodes() != before

    class Filling(World):
        def before_carried_out(self) -> None:
            for number, size in enumerate((20.0, 20.0, 40.0)):
                self.live.put(pod_of(None, f"large-{number}", f"node-{number}", cpu=size - 0.5, memory=0.1))

    assert Filling(pods).nodes() == before


def test_a_search_that_takes_too_long_ends_where_it_is() -> None:
    """The watch waits for the lock meanwhile."""
    seconds = count(0.0, 0.2)
    assert World(RELEASE, clock=lambda: next(seconds)).nodes() == World(RELEASE, exchanges=False).nodes()


def test_of_many_nodes_those_of_the_pods_and_the_emptiest_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = list[int]()

    def noted(release: Release, nodes: FilledNodes, **options: Any) -> Ints:
        looked_at.append(len(nodes.free))
        return rearranged(release, nodes, **options)

    monkeypatch.setattr("advisor.exchanged_nodes.rearranged", noted)
    monkeypatch.setattr("advisor.exchanged_nodes.MOST_NODES", 1)
    pods = RELEASE[:2]
    before = World(pods, exchanges=False).nodes()
    assert set(World(pods).nodes()) == set(before)
    assert looked_at and looked_at[0] <= 1 + len(set(before.values()))
