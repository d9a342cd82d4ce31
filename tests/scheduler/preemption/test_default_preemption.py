"""Who may preempt, who may be preempted, and which node is emptied: case by case."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kube.objects.objects import PodInfo
from placement.cluster_events import ClusterEvent, EventKind, Hint
from placement.plugins import Nomination
from placement.status import Code, Status
from scheduler.loop_settings import PreemptionOptions
from testing.constants import with_constants
from tests.scheduler.preemption.made_up import NOW, World, node, pod


def status(answer: Nomination | Status) -> Status:
    assert isinstance(answer, Status)
    return answer


# Which node, by what upstream compares, one thing after the other


# Who goes


# Newly started pods are protected


@pytest.mark.parametrize(
    ("sitting", "protected"),
    [
        (pod("p", "a", cpu=4, started=None, created=NOW - 10), True),  # not started yet: counted from its creation
        (pod("p", "a", cpu=4, started=None, created=NOW - 100), False),
        (pod("p", "a", cpu=4, started=NOW + 10), True),  # by the clock of a node that is ahead
        (pod("p", "a", cpu=4, started=NOW + 1e6), False),  # by no clock at all
    ],
)
def test_who_is_young(sitting: PodInfo, protected: bool) -> None:
    assert (World([node("a")], [sitting]).preempts(pod("x", priority=1)) is None) is protected


def test_nobody_is_protected_from_critical_pods_nor_when_switched_off() -> None:
    young = [pod("p", "a", cpu=4, started=NOW)]
    assert World([node("a")], young).preempts(pod("x", priority=2_000_000_000)) == ("a", ["p"])
    options = with_constants(PreemptionOptions(), protect_started=0)
    assert World([node("a")], young, options=options).preempts(pod("x", priority=1)) == ("a", ["p"])


# Eligibility


def test_a_nominated_pod_waits_for_the_victims_of_others_on_its_node_before_they_are_seen_to_go() -> None:
    there = [pod(name, "a", cpu=1, started=float(started)) for started, name in enumerate("stuvpq")]
    world = World([node("a", cpu=6), node("b", cpu=2)], [*there, pod("r", "b", cpu=2, priority=1)])
    x, y = (pod(name, cpu=2, priority=2) for name in "xy")
    world.nominated.nominate(x, "a", ["p", "q"])
    world.nominated.nominate(y, "a", ["u", "v", "p", "q"])
    world.delete("p")
    world.delete("q")
    assert world.feasible(x) == set()  # the room of y is kept, too
    assert status(world.asked(x)).reason == (
        "preemption: not eligible due to a victim that has not left the nominated node yet."
    )
    world.nominated.clear("y")
    assert world.feasible(x) == {"a"}


def test_after_a_restart_the_status_of_the_pod_and_terminating_pods_are_enough() -> None:
    world = World([node("a"), node("b")], [pod("p", "a", cpu=4, terminating=True), pod("q", "b", cpu=4)])
    x = pod("x", cpu=4, priority=1, nominated_node="a")
    assert status(world.asked(x)).reason == "preemption: not eligible due to a terminating pod on the nominated node."
    world.nominated.adopt([x])
    assert status(world.asked(x)).code is Code.UNSCHEDULABLE
    # A terminating pod of the same priority is nobody's victim.
    world.put(pod("p", "a", cpu=4, priority=1, terminating=True))
    assert world.preempts(x) == ("b", ["q"])


def test_a_nominated_node_that_can_never_take_the_pod_is_given_up() -> None:
    world = World([node("a", cpu=1), node("b")], [pod("p", "a", terminating=True), pod("q", "b", cpu=4)])
    assert world.preempts(pod("x", cpu=2, priority=1, nominated_node="a")) == ("b", ["q"])
    assert world.preempts(pod("x", cpu=2, priority=1, nominated_node="gone")) == ("b", ["q"])


# Hints


def test_a_nominated_pod_is_woken_by_pods_that_leave_its_node() -> None:
    world = World([node("a"), node("b")], [])
    x = pod("x")

    def left(name: str) -> ClusterEvent:
        return ClusterEvent(EventKind.POD_LEFT, pod=pod("p", name))

    assert world.preemption.hint(x, left("b")) is Hint.QUEUE
    world.nominated.nominate(x, "a")
    assert world.preemption.hint(x, left("a")) is Hint.QUEUE
    assert world.preemption.hint(x, left("b")) is Hint.SKIP
    assert world.preemption.hint(x, ClusterEvent(EventKind.POD_LEFT)) is Hint.QUEUE
    assert world.preemption.hint(x, ClusterEvent(EventKind.POD_BOUND)) is Hint.SKIP
    assert world.nominated.hint(x, left("b")) is Hint.QUEUE
    assert world.nominated.hint(x, ClusterEvent(EventKind.FORECAST_CHANGED)) is Hint.SKIP


# Odd input


def test_pods_that_request_made_up_things_do_no_harm() -> None:
    strange = replace(pod("s", "a"), requests={f"example.com/r{i}": 1e30 for i in range(40)}, priority=-(2**31))
    world = World([node("a")], [strange, pod("p", "a", cpu=4)])
    assert world.preempts(pod("x", cpu=1, priority=1)) == ("a", ["p"])
    wants = replace(pod("x", priority=2**31 - 1), requests={"cpu": 1.0, "example.com/r3": 1.0})
    assert world.preempts(wants) is None  # no node has any
    for i in range(40):
        world.sitting.units(f"example.com/r{i}")
    assert world.preempts(pod("x", cpu=1, priority=1)) == ("a", ["p"])
