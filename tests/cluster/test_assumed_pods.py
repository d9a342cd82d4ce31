"""A pod is reckoned with before its binding is seen, wherever that turns out to be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from cluster.assumed_pods import AssumedPods
from cluster.tables.changes import Change, PodChange
from forecast.resources import CPU
from kube.decoding.decoding import Kind
from kube.objects.objects import PodInfo
from testing.settable_clock import SettableClock
from tests.scorer.live_cluster import pod_of
from tests.scorer.scorer_at import LiveScorer, shares

WAITING = pod_of(3, "waiting", cpu=2.0)


def assumed_on(node: str, *, known: bool = True) -> LiveScorer:
    tested = LiveScorer()
    if known:
        tested.put(WAITING)
    assert tested.scorer.charge_provisionally(WAITING, node, 2.0)
    return tested


def requested(tested: LiveScorer) -> list[float]:
    return list(tested.scorer.tables._cluster.state.requested[:, 0].tolist())


@pytest.mark.parametrize("known", [True, False])
def test_what_is_not_bound_in_time_is_taken_back(known: bool) -> None:
    tested = assumed_on("node-1", known=known)
    tested.later(1.9)
    assert requested(tested) == [0, 2.0, 0, 0]
    tested.later(0.2)
    assert requested(tested) == [0, 0, 0, 0]
    assert (WAITING.uid in tested.scorer.tables._cluster.state.pods) is known
    assert tested.scorer.self_check().sound


@pytest.mark.parametrize("node", ["node-1", "node-2"])
def test_the_binding_ends_the_assumption_wherever_the_pod_went(node: str) -> None:
    tested = assumed_on("node-1")
    tested.put(replace(WAITING, node=node))
    tested.later(10)
    assert requested(tested) == [2.0 if f"node-{row}" == node else 0 for row in range(4)]
    assert not tested.scorer.tables._cluster.assumed
    assert tested.scorer.self_check().sound


def test_an_assumption_outlives_news_of_a_pod_that_waits_and_ends_when_it_is_asked_about() -> None:
    tested = assumed_on("node-1")
    tested.put(replace(WAITING, priority=7))
    assert requested(tested) == [0, 2.0, 0, 0]
    tested.later(3)
    assert tested.scorer.tables._cluster.state.pods[WAITING.uid] == replace(WAITING, priority=7)
    tested = assumed_on("node-1")
    tested.scorer.score(WAITING)
    assert requested(tested) == [0, 0, 0, 0]
    tested.scorer.charge_provisionally(WAITING, "node-3", 2.0)
    assert requested(tested) == [0, 0, 0, 2.0]


def test_an_assumed_pod_counts_once_and_a_bound_one_is_not_assumed() -> None:
    tested, bound = assumed_on("node-1"), LiveScorer()
    bound.put(replace(WAITING, node="node-1"))
    assert requested(tested) == requested(bound) == [0, 2.0, 0, 0]
    np.testing.assert_array_equal(shares(tested), shares(bound))
    charged = [one.scorer.virtual_available().charged[:, CPU].tolist() for one in (tested, bound)]
    assert charged[0] == charged[1]
    assert charged[0][1] > 0
    assert tested.scorer.self_check().sound
    tested = LiveScorer()
    tested.put(replace(WAITING, node="node-0"))
    tested.scorer.charge_provisionally(WAITING, "node-1", 2.0)
    assert requested(tested) == [2.0, 0, 0, 0]
    assert not tested.scorer.charge_provisionally(WAITING, "no-such-node", 2.0)


@pytest.mark.parametrize("jump", [3600.0, -3600.0, 86_400.0, -1.7e9, 2.3e9])
def test_a_charge_lasts_its_seconds_however_the_clock_jumps(jump: float) -> None:
    """Failed before: a jump either way ended it."""
    steady = SettableClock(500.0)
    tested = LiveScorer(steady=steady)
    tested.put(WAITING)
    tested.scorer.charge_provisionally(WAITING, "node-1", 60.0)
    steady.now += 59.0
    tested.clock.now += jump
    tested.scorer.tables.tick()
    assert requested(tested) == [0, 2.0, 0, 0]
    steady.now += 1.1
    tested.scorer.tables.tick()
    assert requested(tested) == [0, 0, 0, 0]


def test_those_who_follow_are_told_of_a_binding_even_where_nothing_else_changes() -> None:
    tested = LiveScorer()
    heard: list[Change] = []
    tested.put(WAITING)
    tested.scorer.charge_provisionally(WAITING, "node-1", 2.0)
    with tested.scorer.tables.reading() as cluster:
        cluster.listeners.append(heard.extend)
    tested.put(replace(WAITING, node="node-1"))
    assert [one.pod.node for one in heard if isinstance(one, PodChange)] == ["node-1"]
    tested.put(replace(WAITING, node="node-1"))
    assert len(heard) == 1


@pytest.mark.parametrize("how", ["one", "many", "kept", "seen"])
def test_what_was_assumed_before_the_clock_was_set_back_is_over(how: str) -> None:
    tested = AssumedPods()
    if how == "many":
        tested.assume_all(WAITING, [WAITING], ["n"], 160.0, now=100.0)
    else:
        tested.assume(WAITING, None, "n", 160.0, now=100.0 if how != "kept" else 0.0)
    if how == "kept":
        tested.keep(WAITING.uid, 160.0, now=100.0)
    if how == "seen":
        tested.seen(replace(WAITING, priority=3))
    assert tested.over(100.0) == []
    assert tested.over(99.9) == [WAITING.uid]


def test_a_list_of_pods_keeps_what_is_assumed_and_awaited_volumes_keep_it_longer() -> None:
    tested = assumed_on("node-1")
    other = pod_of(2, "other", cpu=1.0)
    tested.put(other)
    tested.scorer.charge_provisionally(other, "node-2", 2.0)
    tested.scorer.tables.replace(Kind.PODS, [WAITING])
    assert requested(tested) == [0, 2.0, 0, 0]
    tested.scorer.tables.replace(Kind.PODS, [replace(WAITING, node="node-1")])
    assert not tested.scorer.tables._cluster.assumed
    tested.later(10)
    assert requested(tested) == [0, 2.0, 0, 0]
    assert tested.scorer.self_check().sound
    tested = assumed_on("node-1")
    with tested.scorer.tables.reading() as cluster:
        cluster.keep(WAITING.uid, cluster.now + 660)
    tested.later(1)
    assert requested(tested) == [0, 2.0, 0, 0]
    tested.later(658)
    assert requested(tested) == [0, 2.0, 0, 0]
    tested.later(2)
    assert requested(tested) == [0, 0, 0, 0]


def test_a_charge_ends_by_itself_and_what_was_decided_about_is_asked_about() -> None:
    tested, other, decided = assumed_on("node-1"), pod_of(2, "other", cpu=1.0), replace(WAITING, uid="d", name="d")
    asked: list[str] = []
    for pod in (other, decided):
        tested.put(pod)
    tested.scorer.charge_provisionally(decided, "node-1", 2.0)
    with tested.scorer.tables.changing() as cluster:
        cluster.on_overdue.append(asked.extend)
        for pod in (other, decided):  # the second is no guess any more
            cluster.assume(pod, "node-2", cluster.now + 1.0)
    tested.later(3)
    assert requested(tested) == [0, 0, 3.0, 0] and sorted(asked) == ["d", other.uid]


def test_a_new_pod_may_be_assumed_at_once_and_all_who_follow_hear_of_it_in_order() -> None:
    tested = LiveScorer()
    heard: list[tuple[str, str]] = []

    def listener(changes: Sequence[Change]) -> None:
        heard.extend((one.pod.uid, one.pod.node) for one in changes if isinstance(one, PodChange))

    def came(pod: PodInfo) -> None:
        cluster.charge(pod, "node-3", cluster.now + 5.0)

    with tested.scorer.tables.reading() as cluster:
        cluster.listeners.append(listener)
        cluster.on_new_pod.append(came)
    tested.put(WAITING)
    tested.put(replace(WAITING, priority=7))
    assert requested(tested) == [0, 0, 0, 2.0]
    assert heard == [(WAITING.uid, ""), (WAITING.uid, "node-3"), (WAITING.uid, "node-3")]
    assert tested.scorer.self_check().sound
