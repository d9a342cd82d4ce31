"""Advice meets binding: whatever the order, within bounds, and cheaply."""

from __future__ import annotations

import pytest

from placement.decisions.decision import Advice, Binding, decision_of
from placement.decisions.recorder import DecisionRecorder
from testing.settable_clock import SettableClock
from tests.placement.decisions.made_up import AT, advice, pod


class Taken:
    """A sink that remembers."""

    def __init__(self) -> None:
        self.bindings: list[Binding] = []

    def take(self, binding: Binding) -> None:
        self.bindings.append(binding)


@pytest.fixture
def taken() -> Taken:
    return Taken()


@pytest.fixture
def clock() -> SettableClock[float]:
    return SettableClock(AT)


def recorder(taken: Taken, clock: SettableClock[float], **limits: float) -> DecisionRecorder:
    return DecisionRecorder([taken], version="1.2.3", clock=clock, **limits)  # type: ignore[arg-type]


def test_a_pod_advised_on_and_bound_is_a_decision_once(taken: Taken, clock: SettableClock[float]) -> None:
    records = recorder(taken, clock)
    records.advised(advice({"n1": 3, "n2": 1}))
    assert records.bound(pod(node="")) is None
    assert taken.bindings == []
    clock.now += 2
    told = records.bound(pod(node="n2"))
    (only,) = taken.bindings
    assert told is only.advice
    assert records.bound(pod(node="n2")) is None
    assert (only.node, only.at, only.advice.n_nodes, only.version) == ("n2", AT + 2, 2, "1.2.3")
    assert only.advice.best == "n1"
    figures = records.figures()
    assert (figures.advised, figures.as_advised, figures.elsewhere, figures.pending) == (1, 0, 1, 0)


def test_why_a_pod_is_elsewhere_is_asked_only_where_it_is(taken: Taken, clock: SettableClock[float]) -> None:
    records, asked = recorder(taken, clock), list[str | None]()

    def why(given: Advice) -> str:
        asked.append(given.best)
        return "NodePorts: taken"

    for uid, node in (("there", "n1"), ("elsewhere", "n2")):
        records.advised(advice({"n1": 3, "n2": 1}, uid=uid))
        records.bound(pod(uid, node), why)
    records.bound(pod("without", "n2"), why)
    assert asked == ["n1"]
    assert [(one.advice.uid, one.elsewhere_because) for one in taken.bindings] == [
        ("there", ""),
        ("elsewhere", "NodePorts: taken"),
    ]


def test_the_watch_may_be_quicker_than_a_late_answer(taken: Taken, clock: SettableClock[float]) -> None:
    records = recorder(taken, clock)
    records.bound(pod(node="n2"))
    clock.now += 1
    records.advised(advice({"n1": 3}, is_late=True))
    assert [(one.node, one.at) for one in taken.bindings] == [("n2", AT)]
    records.expire(AT + 1e6)
    assert (records.figures().not_advised, records.figures().expired) == (0, 0)


def test_many_pods_without_advice_stay_bounded(taken: Taken, clock: SettableClock[float]) -> None:
    records = recorder(taken, clock)
    for number in range(2_500):
        records.bound(pod(f"uid-{number}"))
    assert records.figures().not_advised == 1_500  # the others may still be heard of
    records.advised(advice({"n1": 1}, uid="uid-0"))
    assert taken.bindings == []
    records.advised(advice({"n1": 1}, uid="uid-2499"))
    assert len(taken.bindings) == 1


def test_advice_that_is_never_followed_expires(taken: Taken, clock: SettableClock[float]) -> None:
    records = recorder(taken, clock)
    records.advised(advice({"n1": 1}, uid="old"))
    clock.now += 400
    records.advised(advice({"n1": 1}, uid="young"))
    clock.now += 300
    records.expire(clock.now)
    assert (records.figures().expired, records.figures().pending) == (1, 1)
    records.bound(pod("old", created=clock.now))
    records.bound(pod("young"))
    assert [one.advice.uid for one in taken.bindings] == ["young"]


def test_the_oldest_are_dropped_when_too_many_wait(taken: Taken, clock: SettableClock[float]) -> None:
    records = recorder(taken, clock, max_pending=10)
    for number in range(25):
        records.advised(advice({"n1": 1}, uid=f"uid-{number}"))
    assert (records.figures().dropped, records.figures().pending) == (15, 10)
    records.bound(pod("uid-14"))
    records.bound(pod("uid-15"))
    assert [one.advice.uid for one in taken.bindings] == ["uid-15"]


def test_the_oldest_lose_their_lists_when_these_grow_too_large(taken: Taken, clock: SettableClock[float]) -> None:
    points = {f"n{number}": number for number in range(100)}
    records = recorder(taken, clock, max_pending_nodes=250)
    for number in range(5):
        records.advised(advice(points, uid=f"uid-{number}"))
    for number in range(5):
        records.bound(pod(f"uid-{number}", node="n50"))
    assert [len(one.advice.points) for one in taken.bindings] == [2, 2, 2, 100, 100]
    assert [decision_of(one).rank for one in taken.bindings] == [None, None, None, 50, 50]
    assert {one.advice.n_nodes for one in taken.bindings} == {100}
    # What was bound no longer counts: as much may wait as before.
    for number in range(2):
        records.advised(advice(points, uid=f"later-{number}"))
        records.bound(pod(f"later-{number}", node="n50"))
    assert [len(one.advice.points) for one in taken.bindings[5:]] == [100, 100]
