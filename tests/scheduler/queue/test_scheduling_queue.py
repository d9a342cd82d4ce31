from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecast.errors import InputError
from kube.objects.objects import PodInfo
from placement.cluster_events import ClusterEvent, EventKind
from placement.plugins import FlowHead, Pick, Turn
from scheduler.queue.backoff import backoff_seconds
from scheduler.queue.lazy_heap import LazyHeap
from scheduler.queue.options import QueueOptions
from tests.scheduler.queue.queue_world import BEGIN, FIT, World, a_pod, node_added


def test_what_is_told_of_waiting_pods() -> None:
    world = World()
    world.put(a_pod("a", unit="u"))
    world.now += 7
    world.reject(FIT, message="0/3 nodes are available: 3 Insufficient cpu.")
    (waiting,) = world.queue.waiting()
    assert (waiting.uid, waiting.unit, waiting.part.value, waiting.attempts) == ("a", "u", "unschedulable", 1)
    assert (waiting.arrived, waiting.since) == (BEGIN, BEGIN + 7)
    assert waiting.rejected_by == {FIT}
    assert waiting.message == "0/3 nodes are available: 3 Insufficient cpu."
    assert world.queue.incoming() == {("PodAdd", "active"): 1, ("ScheduleAttemptFailure", "unschedulable"): 1}
    world.now -= 3_600  # a clock set back changes what it shows, not how long it was
    (waiting,) = world.queue.waiting()
    assert waiting.since == BEGIN + 7 - 3_600


def test_a_closed_queue_gives_nothing_more() -> None:
    world = World()
    world.put(a_pod("a"))
    world.queue.close()
    assert world.pop() is None
    assert world.queue.pop(most=1, wait_seconds=1_000) is None


def test_a_gate_that_raises_keeps_the_pod_out_until_it_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.waits = None  # type: ignore[assignment]
    world.put(a_pod("a", unit="u"), a_pod("b"))
    assert world.parts() == {"a": "gated", "b": "gated"}
    assert "TypeError" in world.queue.waiting()[0].message
    assert len(caplog.records) == 1
    world.waits = {}
    world.queue.wake_units(["u"])
    assert world.parts() == {"a": "active", "b": "gated"}


def test_a_plugin_that_raises_wakes_pods_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    def broken(pod: PodInfo, event: ClusterEvent) -> bool:
        raise KeyError("zone")

    world = World()
    world.fit.says = broken
    for name in ("a", "b"):
        world.put(a_pod(name))
        world.reject(FIT)
    world.after(20)
    world.queue.happened(node_added())
    assert world.parts() == {"a": "active", "b": "active"}
    assert len(caplog.records) == 1


def test_like_pods_of_a_unit_share_one_question() -> None:
    world = World()
    world.put(*(a_pod(f"x{i}", unit="u", zone="x") for i in range(50)))
    world.put(*(a_pod(f"y{i}", unit="u", zone="y") for i in range(50)))
    world.reject(FIT)
    world.after(20)
    world.queue.happened(node_added("y"))
    assert world.fit.asked == 2
    assert world.queue.lengths() == {"active": 50, "backoff": 0, "unschedulable": 50, "gated": 0}
    assert all(uid.startswith("y") for uid in world.popped())
    world.queue.happened(ClusterEvent(EventKind.POD_LEFT))
    assert world.fit.asked == 2  # it does not listen to that
    for uid in [f"x{i}" for i in range(50)]:
        world.queue.remove(uid)
    world.queue.happened(node_added("x"))
    assert world.fit.asked == 2  # nobody is left to ask about


def test_defaults_are_those_of_kube_scheduler() -> None:
    options = QueueOptions()
    assert (options.backoff.initial, options.backoff.longest, options.unschedulable_flush) == (1.0, 10.0, 300.0)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"backoff": {"initial": -1.0}}, "backoff.initial is -1.0"),
        ({"backoff": {"initial": float("nan")}}, "backoff.initial is nan"),
        ({"backoff": {"longest": 0.5}}, "longest must be at least initial"),
        ({"backoff": {"longest": float("inf")}}, "backoff.longest is inf"),
        ({"unschedulable_flush": 0.0}, "unschedulable_flush"),
        ({"most_events": 0}, "most_events"),
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=named):
        QueueOptions(**wrong)


@pytest.mark.parametrize(("attempts", "seconds"), [(0, 0), (1, 1), (2, 2), (4, 8), (5, 10), (10_000, 10)])
def test_backoff(attempts: int, seconds: float) -> None:
    assert backoff_seconds(attempts, initial=1.0, longest=10.0) == seconds


@given(st.lists(st.tuples(st.sampled_from(["push", "discard", "pop"]), st.integers(0, 20))))
def test_it_does_what_a_sorted_list_does(steps: list[tuple[str, int]]) -> None:
    heap: LazyHeap[str] = LazyHeap()
    model: dict[int, str] = {}
    for step, key in steps:
        if step == "push" and key not in model:
            model[key] = str(key)
            heap.push(key, str(key))
        elif step == "discard":
            model.pop(key, None)
            heap.discard(key)
        elif step == "pop":
            expected = [model.pop(first) for first in sorted(model)[: key % 4]]
            assert heap.pop(key % 4) == expected
        assert len(heap) == len(model)
        assert sorted(heap) == sorted(model.values())
        assert heap.smallest(key) == [model[first] for first in sorted(model)[:key]]
        assert heap.first() == (min(model.items()) if model else None)
        assert (key in heap) == (key in model)


class Asked:
    """An order that a test sets by hand. heads: of the last question, by flow; counts: pods taken by flow."""

    def __init__(self, says: Callable[[Sequence[FlowHead]], Turn] = lambda heads: Turn(0)) -> None:
        self.says = says
        self.heads: dict[str, FlowHead] = {}
        self.counts: dict[str, int] = {}

    def next(self, heads: Sequence[FlowHead], now: float) -> Turn:
        self.heads = {head.flow: head for head in heads}
        assert len(self.heads) == len(heads)
        return self.says(heads)

    def taken(self, flow: str, n_pods: int) -> None:
        self.counts[flow] = self.counts.get(flow, 0) + n_pods


def of_flow(name: str, most: int | None = None, pick: Pick = Pick.FIRST) -> Callable[[Sequence[FlowHead]], Turn]:
    return lambda heads: Turn([head.flow for head in heads].index(name), most, pick)


def test_flows_are_told_by_their_first_unit_and_its_first_pod() -> None:
    order = Asked(of_flow("a", 1))
    world = World(flows=order)
    world.put(a_pod("a0", unit="u", flow="a", priority=1, due=BEGIN + 9))
    world.now += 1
    world.put(a_pod("a1", unit="v", flow="a", priority=3), a_pod("b0", unit="w", flow="b"))
    assert world.popped() == ["a1"]
    head = order.heads["a"]
    assert (head.first.key, head.first.priority, head.first.since, head.first.due) == ("v", 3, BEGIN + 1, math.inf)
    assert head.pod.uid == "a1"
    assert head.due is not None
    assert (head.due.key, head.due.due) == ("u", BEGIN + 9)
    assert head.waits_since == BEGIN
    assert order.heads["b"].due is None
    assert world.popped() == ["a0"]
    assert order.heads["a"].first.key == "u"


def test_pods_that_nobody_looked_at_are_given_back() -> None:
    order = Asked()
    world = World(flows=order)
    world.put(*(a_pod(f"a{n}", unit="u") for n in range(3)))
    first = world.pop()
    assert first is not None
    world.queue.returned(first.pods[1:])
    assert order.counts == {"": 1}
    world.popped()
    assert order.heads[""].waits_since == BEGIN  # they were not tried


@pytest.mark.parametrize(
    "says", [lambda heads: 1 / 0, lambda heads: Turn(99), of_flow("b", 1, Pick.DUE)], ids=["raises", "whom", "what"]
)
def test_a_mistaken_order_is_logged_once_and_priority_and_age_decide(
    says: Callable[[Sequence[FlowHead]], Turn], caplog: pytest.LogCaptureFixture
) -> None:
    world = World(flows=Asked(says))
    world.put(a_pod("a", flow="a"), a_pod("b", flow="b", priority=1), a_pod("c", flow="c", priority=1))
    assert list(world.all_popped()) == [["b"], ["c"], ["a"]]
    assert len([record for record in caplog.records if "order of flows raised" in record.message]) == 1


def test_what_comes_is_a_pod_of_each_unit_in_the_order_in_which_they_are_popped() -> None:
    world = World()
    for unit, priority in (("a", 1), ("b", 3), ("c", 2)):
        world.put(*(a_pod(f"{unit}{n}", unit=unit, priority=priority) for n in range(2)))
    assert [pod.name for pod in world.queue.coming(2)] == ["b0", "c0"]
    assert world.popped() == ["b0", "b1"]
    assert [pod.name for pod in world.queue.coming(9)] == ["c0", "a0"]


def test_what_comes_is_of_all_flows() -> None:
    world = World(flows=Asked(of_flow("b")))
    world.put(a_pod("a0", unit="u", flow="a"), a_pod("b0", unit="v", flow="b"))
    assert {pod.name for pod in world.queue.coming(9)} == {"a0", "b0"}
    world.popped()
    assert [pod.name for pod in world.queue.coming(9)] == ["a0"]


def _gang(*names: str, gang: str = "ns/g", zone: str = "") -> World:
    world = World()
    world.put(*(a_pod(name, gang=gang, zone=zone) for name in names))
    return world


def test_a_gang_told_to_wait_when_it_comes_back_goes_on_as_a_whole() -> None:
    world = _gang("a", "b")
    first = world.pop()
    assert first is not None
    world.waits = {"a": 30.0, "b": 30.5}  # not asked at one moment
    world.queue.rejected(first.pods, frozenset({FIT}), "8 of 16 members fit")
    assert world.parts() == {"a": "gated", "b": "gated"}
    world.after(29)
    assert world.parts() == {"a": "gated", "b": "gated"}
    world.after(1)
    assert world.popped() == ["a", "b"]


def test_a_pod_that_joins_a_group_in_flight_comes_back_into_it() -> None:
    world = _gang("a")
    world.reject(FIT)
    world.put(a_pod("b", unit="u"))
    first = world.pop()
    assert first is not None
    world.put(a_pod("b", gang="ns/g"))
    world.queue.rejected(first.pods, frozenset({FIT}), "no room")
    assert world.parts() == {"a": "backoff", "b": "backoff"}
    world.after(2)
    assert world.popped() == ["a", "b"]


def test_a_member_that_knows_of_the_group_tells_the_others() -> None:
    world = World()
    world.put(a_pod("single"))
    world.now += 1
    world.put(a_pod("g1", gang="ns/g"))
    world.since["ns/g"] = 5.0
    world.put(a_pod("g2", gang="ns/g"))
    assert list(world.all_popped()) == [["g1", "g2"], ["single"]]
