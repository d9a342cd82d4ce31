from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest

from placement.plugins import FlowHead, Pick, Turn
from tests.scheduler.queue.queue_world import BEGIN, World, a_pod


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
