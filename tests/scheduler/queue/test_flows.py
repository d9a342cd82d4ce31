from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest

from placement.plugins import FlowHead, Pick, Turn
from tests.scheduler.queue.queue_world import BEGIN, FIT, World, a_pod, node_added


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


def test_the_order_says_which_flow_goes_and_with_how_many_pods() -> None:
    order = Asked(of_flow("b", 2))
    world = World(flows=order)
    world.put(*(a_pod(f"a{n}", unit="a", flow="a", priority=9) for n in range(3)))
    world.put(*(a_pod(f"b{n}", unit="b", flow="b") for n in range(3)))
    assert world.popped() == ["b0", "b1"]
    assert world.popped(most=1) == ["b2"]
    order.says = of_flow("a")
    assert world.popped() == ["a0", "a1", "a2"]
    assert order.counts == {"a": 3, "b": 3}
    assert world.popped() == []


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


def test_without_an_order_all_flows_are_one() -> None:
    world = World()
    world.put(a_pod("a", flow="x"), a_pod("b", flow="y", priority=1, due=BEGIN), a_pod("c", flow="x", priority=2))
    assert list(world.all_popped()) == [["c"], ["b"], ["a"]]


def test_the_unit_that_has_to_start_first_can_be_picked() -> None:
    order = Asked(of_flow("", 1, Pick.DUE))
    world = World(flows=order)
    world.put(a_pod("whenever"), a_pod("late", due=30), a_pod("soon", due=20), a_pod("high", due=40, priority=1))
    assert [world.popped(), world.popped(), world.popped()] == [["high"], ["soon"], ["late"]]
    assert world.popped() == ["whenever"]  # no unit has a due time: as if it had raised


def test_those_that_wait_longest_can_be_picked_past_those_that_were_tried_since() -> None:
    order = Asked(of_flow("", 2))
    world = World(flows=order)
    world.put(*(a_pod(f"a{n}", unit="u") for n in range(5)))
    world.after(1)
    assert world.reject(FIT) == ["a0", "a1"]
    world.after(2)
    world.queue.happened(node_added())
    assert world.parts()["a0"] == "active"
    order.says = of_flow("", 2, Pick.LONGEST)
    assert world.popped() == ["a2", "a3"]
    assert order.heads[""].waits_since == BEGIN
    assert world.popped() == ["a4", "a0"]
    assert world.popped() == ["a1"]
    assert order.heads[""].waits_since == BEGIN + 1


def test_a_pod_that_was_tried_waits_since_then() -> None:
    order = Asked()
    world = World(flows=order)
    world.put(a_pod("a"))
    world.after(10)
    world.reject(FIT)
    assert order.heads[""].waits_since == BEGIN
    world.after(200)
    world.queue.happened(node_added())
    world.after(50)
    popped = world.pop()
    assert popped is not None and order.heads[""].waits_since == BEGIN + 10
    world.queue.failed(popped.pods)
    world.after(100)
    world.popped()
    assert order.heads[""].waits_since == BEGIN + 260


def test_flows_tell_how_many_pods_are_active_to_within_a_factor_of_two() -> None:
    order = Asked(of_flow("", 1))
    world = World(flows=order)
    for n_there in range(1, 40):
        world.put(a_pod(f"a{n_there}", unit="u"), a_pod(f"b{n_there}", unit="u"))
        world.popped()
        assert (n_there + 1) / 2 < order.heads[""].n_pods <= n_there + 1


def test_how_long_a_pod_waits_counts_from_when_it_was_let_in() -> None:
    order = Asked()
    world = World(flows=order, gated={"a": "not yet"})
    world.put(a_pod("a"))
    world.after(500)
    world.gated.clear()
    world.queue.wake_units(["pod:a"])
    world.popped()
    assert order.heads[""].waits_since == BEGIN + 500


def test_a_gang_is_popped_whole_whatever_the_turn_says() -> None:
    order = Asked(of_flow("f", 1))
    world = World(flows=order)
    world.put(*(a_pod(f"a{n}", gang="ns/g", flow="f", due=90 - n) for n in range(3)))
    assert world.popped() == ["a0", "a1", "a2"]
    assert order.heads["f"].first.due == 88  # the first that one of its pods has
    assert order.counts == {"f": 3}


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


def test_a_pod_that_changes_its_flow_goes_there_with_its_unit() -> None:
    order = Asked()
    world = World(flows=order)
    world.put(a_pod("a", unit="u", flow="x"))
    world.put(a_pod("a", unit="u", flow="y"))
    assert world.popped() == ["a"]
    assert set(order.heads) == {"y"}


def test_a_due_time_that_changes_is_followed() -> None:
    order = Asked(of_flow("", 1, Pick.DUE))
    world = World(flows=order)
    world.put(a_pod("a", due=10), a_pod("b", due=20), a_pod("c", due=15))
    world.put(a_pod("a", due=30))
    world.put(a_pod("c"))
    assert [world.popped(), world.popped(), world.popped()] == [["b"], ["a"], ["c"]]


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
