"""The loop and what becomes of its decisions: nothing is lost, held twice or given away, whatever bindings come to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from kube.decoding.decoding import Kind
from kube.objects.objects import PodInfo
from placement.cluster_events import ClusterEvent, EventKind
from placement.filters.catalogue import standard_filters
from placement.filters.filter import ClusterView, Filter, Rejection
from placement.index.index import INDEXED_KINDS, PlacementIndex
from placement.plugins import Nomination
from placement.policies.policy import OnePolicyForAll, Policy
from placement.status import Code, Status
from scheduler.binding.assumptions import Assumptions
from scheduler.binding.binding_cycles import Done
from scheduler.binding.binding_plugins import BindingPlugins
from scheduler.binding.outcome import BindingOutcome, Ending, Reserved
from scheduler.binding_results import BindingResults
from scheduler.cycle.cycle import SchedulingCycle
from scheduler.cycle.decisions import NodeChoice
from scheduler.cycle.placing import UnitPlacer
from scheduler.gangs.directory import GangDirectory
from scheduler.loop_settings import QueueOptions
from scheduler.profile import PodsToPlace, SchedulingProfile
from scheduler.queue.active import PrioritySort
from scheduler.queue.queued_pods import Part, QueuedPodInfo
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.queue_events import ClusterFollower
from scheduler.scheduler import LoopOptions, Scheduler, Together
from scheduler.scheduling_metrics import SchedulingMetrics
from scorer.scorer import Scorer
from scorer.scoring_policy import scoring_policy
from tests.placement.small_cluster import node_of
from tests.scheduler.gangs.made_up import NOW, member

BINDING, WATCH = 10.0, 60.0


class Bindings:
    """In place of BindingCycles: the test says how each ends."""

    def __init__(self) -> None:
        self.begun: list[tuple[Reserved, Done]] = []
        self.questions: list[tuple[Reserved, Done]] = []
        self.raises = False

    @property
    def unfinished(self) -> int:
        return len(self.begun) + len(self.questions)

    def start(self, reserved: Sequence[Reserved], done: Done) -> None:
        if self.raises:
            raise RuntimeError("no bindings")
        self.begun += [(one, done) for one in reserved]

    def ask(self, reserved: Reserved, done: Done) -> None:
        self.questions.append((reserved, done))

    def end(self, outcome: BindingOutcome, which: int = 0) -> Reserved:
        reserved, done = self.begun.pop(which)
        done(reserved, outcome)
        return reserved

    def answer(self, outcome: BindingOutcome) -> None:
        reserved, done = self.questions.pop(0)
        done(reserved, outcome)


class Told:
    def __init__(self) -> None:
        self.failures: list[tuple[str, str, str]] = []
        self.pauses: list[tuple[str, str, str]] = []
        self.bound: list[str] = []

    def failed(self, pod: PodInfo, message: str, *, reason: str = "Unschedulable") -> None:
        self.failures.append((pod.uid, reason, message))

    def paused(self, pod: PodInfo, message: str, *, by: str) -> None:
        self.pauses.append((pod.uid, by, message))

    def scheduled(self, pod: PodInfo, node: str) -> None:
        self.bound.append(pod.uid)

    def forget(self, uid: str) -> None:
        """Nothing was told."""


class World:
    """Nodes for two pods each, and all of a loop but its thread and its bindings."""

    def __init__(
        self,
        n_nodes: int = 1,
        *,
        filters: Sequence[Filter] = (),
        post_filters: Sequence[object] = (),
        options: LoopOptions | None = None,
        together: Together | None = None,
    ) -> None:
        self.recorded: dict[str, NodeChoice] = {}
        self.now, self.seconds, self.policies = NOW, 0.0, object()
        self.pauses: dict[str, Status] = {}
        self.bindings, self.told = Bindings(), Told()
        self.scorer = Scorer(clock=lambda: self.now)
        with self.scorer.tables.reading() as cluster:
            self.cluster = cluster
            view = ClusterView(cluster, PlacementIndex(cluster.state))
            self.gangs = gangs = GangDirectory(cluster.state, clock=lambda: self.now)
            self.queue = SchedulingQueue(
                sort=PrioritySort(),
                gate=lambda pod: self.pauses.get(pod.uid) or gangs.gate(pod),
                hints=lambda pod: {one.name: one for one in standard_filters()},
                units=gangs,
                options=QueueOptions(),
                clock=lambda: self.now,
            )
            self.follower = ClusterFollower(
                cluster, view.index, self.queue, PodsToPlace(frozenset({"forecast-scheduler"}))
            )
            profile = SchedulingProfile(
                "online",
                "forecast-scheduler",
                OnePolicyForAll(Policy(scoring_policy(self.scorer.options))),
                BindingPlugins(bind=()),
                filters=(*standard_filters(), *filters),
                post_filters=tuple(post_filters),  # type: ignore[arg-type]
            )
            assumptions = Assumptions(
                cluster,
                seconds=WATCH,
                binding_seconds=BINDING,
                ask=lambda reserved: self.settling.ask_about(reserved),
                clock=lambda: self.now,
            )
            self.metrics = metrics = SchedulingMetrics()
            self.settling = BindingResults(
                self.scorer,
                self.queue,
                self.follower,
                assumptions,
                self.bindings,  # type: ignore[arg-type]
                telling=self.told,
                metrics=metrics,
                clock=lambda: self.now,
            )
            self.loop = Scheduler(
                self.scorer,
                view,
                self.queue,
                self.follower,
                SchedulingCycle(view, cluster, {"forecast-scheduler": profile}, gangs, stopwatch=lambda: self.seconds),
                self.settling,
                telling=self.told,
                may_schedule=lambda: True,
                policies=lambda: self.policies,
                record=lambda cluster, placed, choices, seconds: self.recorded.update(choices),
                together=together,
                metrics=metrics,
                stopwatch=lambda: self.seconds,
                options=options or LoopOptions(),
                clock=lambda: self.now,
            )
            self.scorer.tables.attach((), view.index)
            self.scorer.tables.attach((), gangs)
            self.scorer.tables.attach((), self.settling)
            self.scorer.tables.attach(INDEXED_KINDS, self.follower)
        allocatable = {"cpu": 4.0, "memory": 2.0**33, "pods": 2.0}
        for number in range(n_nodes):
            self.scorer.tables.put(Kind.NODES, replace(node_of(f"node-{number}"), allocatable=allocatable))

    def arrive(self, *uids: str, **changes: Any) -> None:
        for uid in uids:
            self.scorer.tables.put(Kind.PODS, member(uid, **({"of": ""} | changes)))

    def seen_bound(self, reserved: Reserved) -> None:
        """The watch shows it."""
        self.scorer.tables.put(Kind.PODS, replace(self.cluster.state.pods[reserved.pod.uid], node=reserved.node))

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.scorer.tables.tick()
        self.loop.tick()

    def parts(self) -> dict[str, Part]:
        return {one.uid: one.part for one in self.queue.waiting()}

    def counted(self, name: str) -> float:
        """Sum of a metric's samples over its labels."""
        samples = (sample for one in self.metrics.collectors for metric in one.collect() for sample in metric.samples)
        return sum(sample.value for sample in samples if sample.name == name)

    @property
    def assumed(self) -> set[str]:
        return set(self.cluster.assumed.uids())


BOUND, FAILED, UNKNOWN = (
    BindingOutcome(Ending.BOUND),
    BindingOutcome(Ending.FAILED, "refused"),
    BindingOutcome(Ending.UNKNOWN, "no answer"),
)


@dataclass
class Exchanging:
    """Implements Together: the pods of all cycles change nodes with one another, the first with the last."""

    world: World | None = None
    noted: list[tuple[PodInfo, str]] = field(default_factory=list)
    fails: str = ""

    def note(self, placed: Sequence[tuple[QueuedPodInfo, str]], placer: UnitPlacer) -> None:
        assert placer.movable is not None
        self.noted += [(queued.pod, node) for queued, node in placed]

    def question(self) -> Callable[[], object] | None:
        noted, self.noted = self.noted, []
        if self.fails == "question":
            raise ValueError("no question")
        return lambda: {pod.uid: node for (pod, _), (_, node) in zip(noted, reversed(noted), strict=True)}

    def carry_out(self, answer: object, until: float) -> Mapping[str, str]:
        assert isinstance(answer, dict) and self.world is not None
        nodes = {pod.uid: pod.node for pod in self.world.cluster.state.pods.values()}
        moved = {uid: node for uid, node in answer.items() if nodes[uid] != node}
        for uid, node in moved.items():
            self.world.cluster.assume(self.world.cluster.state.pods[uid], node, until)
            if self.fails == "carry_out":
                raise ValueError("one has moved")
        return moved


def holding(together: int = 9, n_nodes: int = 2, **fields: Any) -> World:
    exchanging = Exchanging(**fields)
    exchanging.world = World(n_nodes, options=LoopOptions(together=together), together=exchanging)
    return exchanging.world


def test_pods_of_several_cycles_are_bound_where_they_go_once_nothing_more_waits() -> None:
    world = holding()
    world.arrive("a", "b", "c")
    for _ in range(3):
        assert world.loop.round()
        assert not world.bindings.begun and not world.recorded
    first = {uid: pod.node for uid, pod in world.cluster.state.pods.items()}
    assert first["a"] != first["b"]
    world.arrive("d")
    assert world.loop.round() and not world.bindings.begun
    before = {uid: pod.node for uid, pod in world.cluster.state.pods.items()}
    assert world.loop.round(), "there was something to bind"
    bound = {one.pod.uid: one.node for one, _ in world.bindings.begun}
    assert bound == {uid: before[other] for uid, other in zip("abcd", "dcba", strict=True)}
    assert bound == {uid: pod.node for uid, pod in world.cluster.state.pods.items()}
    names = world.cluster.state.names
    assert {uid: names[choice.row] for uid, choice in world.recorded.items()} == bound
    for uid, choice in world.recorded.items():
        if bound[uid] != before[uid] and choice.runner_up is not None:
            assert choice.total is None and names[choice.runner_up[0]] == before[uid]


def test_a_pod_of_a_burst_is_held_back_for_half_a_second_at_most() -> None:
    world = holding(together=99, n_nodes=40)
    world.arrive(*(f"p-{i}" for i in range(80)))
    for _ in range(49):
        world.loop.round()
        world.seconds += 0.01
        assert not world.bindings.begun
    world.seconds += 0.02
    world.loop.round()
    assert len(world.bindings.begun) == 50


def test_pods_that_come_one_by_one_are_not_held_back_for_each_other() -> None:
    world = holding()
    world.arrive("a", "b", "c")
    world.loop.round()
    assert not world.bindings.begun
    world.now += 0.06
    world.loop.round()
    assert {one.pod.uid for one, _ in world.bindings.begun} == {"a", "b"}


@pytest.mark.parametrize("fails", ["question", "carry_out"])
def test_after_a_failure_pods_are_bound_where_the_tables_have_them(fails: str) -> None:
    world = holding(fails=fails)
    world.arrive("a", "b")
    for _ in range(3):
        world.loop.round()
    assert {one.pod.uid: one.node for one, _ in world.bindings.begun} == {
        uid: pod.node for uid, pod in world.cluster.state.pods.items()
    }
    assert len(world.bindings.begun) == 2


def test_a_failed_binding_gives_exactly_its_room_back_and_the_pod_comes_again() -> None:
    world = World()
    world.arrive("a", "b")
    world.loop.round()
    world.loop.round()
    world.bindings.end(FAILED)
    assert world.assumed == {"b"}
    assert world.parts()["a"] is Part.BACKOFF
    assert world.told.failures == [("a", "SchedulerError", "refused")]
    world.pass_time(1.5)
    assert world.loop.round()
    assert world.assumed == {"a", "b"}


@pytest.mark.parametrize("outcome", [replace(FAILED, is_gone=True), replace(FAILED, is_elsewhere=True, node="other")])
def test_a_pod_that_is_gone_or_elsewhere_is_not_tried_again(outcome: BindingOutcome) -> None:
    world = World()
    world.arrive("a")
    world.loop.round()
    world.scorer.tables.delete(Kind.PODS, world.cluster.state.pods["a"])
    world.bindings.end(outcome)
    assert world.assumed == set()
    assert world.parts() == {}


def test_an_outcome_that_is_not_known_holds_the_room_until_it_is() -> None:
    world = World()
    world.arrive("a")
    world.loop.round()
    world.bindings.end(UNKNOWN)
    for pause in (BINDING, BINDING, 2 * BINDING, 4 * BINDING, WATCH, WATCH):
        world.pass_time(pause - 1)  # a request that was given up may still be carried out
        assert world.assumed == {"a"}
        assert not world.bindings.questions
        world.pass_time(1)
        assert len(world.bindings.questions) == 1
        world.bindings.answer(UNKNOWN)
        assert world.assumed == {"a"}
    world.pass_time(WATCH)
    world.bindings.answer(FAILED)
    assert world.assumed == set()
    assert world.parts()["a"] is Part.BACKOFF


@pytest.mark.parametrize("shown", ["after the outcome", "before the outcome", "while asked"])
def test_a_pod_without_an_answer_that_the_watch_shows_on_its_node_is_reported_as_bound(shown: str) -> None:
    world = World()
    world.arrive("a")
    world.loop.round()
    reserved = world.bindings.begun[0][0]
    world.now += 3
    if shown == "before the outcome":
        world.seen_bound(reserved)
        world.bindings.end(UNKNOWN)
    else:
        world.bindings.end(UNKNOWN)
        if shown == "while asked":
            world.pass_time(BINDING)
        world.seen_bound(reserved)
    while world.bindings.questions:
        world.bindings.answer(BOUND)
    world.pass_time(2 * WATCH + BINDING)
    assert world.told.bound == ["a"], "one event"
    assert world.counted("forecast_pod_scheduling_seconds_count") == 1
    assert world.counted("forecast_pod_scheduling_seconds_sum") == (3 + BINDING if shown == "while asked" else 3)
    assert world.counted("forecast_schedule_attempts_total") == 1
    assert not world.settling.knows("a") and world.assumed == set() and world.parts() == {}


def test_a_pod_that_the_watch_shows_while_an_answer_about_it_is_read_is_reported_as_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    world.arrive("a")
    world.loop.round()
    reserved = world.bindings.end(UNKNOWN)
    world.pass_time(BINDING)
    reading = world.scorer.tables.reading

    def shown_first() -> object:
        monkeypatch.setattr(world.scorer.tables, "reading", reading)
        world.seen_bound(reserved)
        return reading()

    monkeypatch.setattr(world.scorer.tables, "reading", shown_first)
    world.bindings.answer(BOUND)
    assert world.told.bound == ["a"] and not world.settling.knows("a")


def test_nobody_asks_about_a_pod_whose_binding_is_under_way_and_only_once_about_another() -> None:
    world = World()
    world.arrive("waits-long", "lost")
    world.loop.round()
    world.loop.round()
    lost = 0 if world.bindings.begun[0][0].pod.uid == "lost" else 1
    world.bindings.end(UNKNOWN, lost)
    for _ in range(6):
        world.pass_time(WATCH + 2 * BINDING + 1)
    assert [reserved.pod.uid for reserved, _ in world.bindings.questions] == ["lost"]
    assert world.assumed == {"waits-long", "lost"}


def test_an_old_answer_does_not_touch_a_newer_placement() -> None:
    world = World(2)
    world.arrive("a")
    world.loop.round()
    first = world.bindings.end(UNKNOWN)
    world.pass_time(WATCH + 1)
    ((asked, done),) = world.bindings.questions
    assert asked.node == first.node
    # The watch shows that it is not bound and had to be made anew: it is placed again, elsewhere.
    world.settling.give_back([first.pod])
    world.scorer.tables.put(Kind.NODES, replace(node_of(first.node), unschedulable=True))
    world.queue.remove("a")
    with world.scorer.tables.reading():
        world.queue.put(world.cluster.state.pods["a"])
    assert world.loop.round()
    assert world.bindings.begun[0][0].node != first.node
    done(asked, FAILED)
    assert world.assumed == {"a"}
    assert world.cluster.state.pod_count.sum() == 1


def test_bindings_that_cannot_be_started_lose_nothing() -> None:
    world = World()
    world.arrive("a")
    world.bindings.raises = True
    world.loop.round()
    assert world.assumed == set()
    assert world.parts()["a"] is Part.BACKOFF
    world.bindings.raises = False
    world.pass_time(1.5)
    assert world.loop.round()
    assert len(world.bindings.begun) == 1


def test_a_cycle_that_raises_loses_nothing_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.arrive("a")
    with monkeypatch.context() as broken:
        broken.setattr(SchedulingCycle, "run", lambda *_: 1 / 0)
        world.loop.round()
    assert world.parts()["a"] is Part.BACKOFF
    assert world.told.failures[0][1] == "SchedulerError"
    world.pass_time(1.5)
    assert world.loop.round()
    assert world.assumed == {"a"}


def test_room_that_comes_free_while_a_pod_is_bound_is_told() -> None:
    world = World()
    world.arrive("a", "b", "c")
    for _ in range(3):
        world.loop.round()
    assert world.parts()["c"] is Part.UNSCHEDULABLE
    assert world.told.failures == [("c", "Unschedulable", "0/1 nodes are available: 1 Too many pods")]
    world.scorer.tables.delete(Kind.PODS, world.cluster.state.pods["a"])
    assert world.parts()["c"] in (Part.BACKOFF, Part.ACTIVE)


class Slow:
    """Implements PostFilter: every pod takes its time."""

    name = "Slow"

    def __init__(self) -> None:
        self.world: World

    def post_filter(
        self, pod: PodInfo, view: ClusterView, filters: Sequence[Filter], rejections: Sequence[Rejection]
    ) -> Nomination | Status:
        self.world.seconds += 0.06
        return Status(Code.UNSCHEDULABLE, self.name, "not yet")


def test_a_unit_that_takes_long_is_left_for_what_is_more_important() -> None:
    slow = Slow()
    world = World(0, post_filters=(slow,))
    slow.world = world
    world.arrive(*(f"low-{i}" for i in range(10)), owner="set")
    world.loop.round()
    assert set(world.parts().values()) == {Part.ACTIVE, Part.UNSCHEDULABLE}
    left = [uid for uid, part in world.parts().items() if part is Part.ACTIVE]
    assert all(one.attempts == 0 for one in world.queue.waiting() if one.uid in left)
    world.arrive("high", priority=1000)
    popped = world.queue.pop(most=1, wait_seconds=0)
    assert popped is not None
    assert popped.pods[0].pod.uid == "high"


def test_pods_that_wait_by_choice_are_told_once_and_not_that_they_are_unschedulable() -> None:
    world = World()
    for start in ("02:40", "02:45", "02:50"):
        world.pauses["a"] = Status(Code.WAIT, "Valley", f"starts {start}", 10_000.0)
        world.arrive("a", priority=len(world.pauses["a"].reason))
        with world.scorer.tables.reading():
            event = ClusterEvent(EventKind.UNSCHEDULED_POD_CHANGED, pod=world.cluster.state.pods["a"])
            world.queue.happened(event)
        world.pass_time(40)
    assert world.queue.waiting()[0].message == "starts 02:50"
    assert world.told.pauses == [("a", "Valley", "starts 02:40")]
    assert world.told.failures == []
    # Whom nobody wants is forgotten, and whom the gate shuts out for good is told why.
    world.pauses["a"] = Status(Code.UNRESOLVABLE, "Valley", "no more")
    world.queue.wake_units([world.queue.waiting()[0].unit])
    world.pass_time(40)
    assert world.told.failures == [("a", "Unschedulable", "no more")]
    assert world.loop._paused == set()


def test_what_comes_soon_after_another_pod_waits_for_more_to_come(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(2, options=LoopOptions(gather=30.0))
    rests: list[float] = []

    def wait(seconds: float) -> bool:
        rests.append(seconds)
        world.arrive("b", "c", owner_uid="of-one-controller")
        return False

    monkeypatch.setattr(world.loop._stopping, "wait", wait)
    world.arrive("a")
    assert world.loop.round() and rests == []  # nothing was placed lately
    assert world.loop.round()
    assert len(rests) == 1 and 0 < rests[0] <= 30
    assert world.assumed == {"a", "b", "c"}  # one cycle for both
    world.arrive("d")
    assert world.loop.round() and len(rests) == 1  # what waits already is not made to wait


def test_a_pod_lost_by_a_mistake_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.arrive("a")
    with monkeypatch.context() as broken:
        broken.setattr(Scheduler, "_act", lambda *_: None)
        world.loop.round()
    world.settling.give_back([world.cluster.state.pods["a"]])
    world.pass_time(61)
    world.pass_time(20)
    assert world.loop.round()
    assert [reserved.pod.uid for reserved, _ in world.bindings.begun] == ["a"]
