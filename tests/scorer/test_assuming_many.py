"""Pods that are alike are assumed at once, and nothing tells that from assuming them one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admission.templates.shaped_pods import ShapedPods, shaped_pods
from kube.objects.objects import PodInfo
from kube.tables.changes import Change, PodsSeated
from placement.index.index import INDEXED_KINDS, PlacementIndex
from scorer.live.charges import Charges
from scorer.predicted.cluster import PredictedCluster
from tests.scorer.assumed_at_once import SHAPES, Batch, batches, follow_ups, happen, heard_by, prepared
from tests.scorer.live_cluster import at, pod_of
from tests.scorer.scorer_at import LiveScorer
from tests.scorer.whole_tables import differences, tables_of, values


class Followed:
    """A cluster before the batch, with all tables that follow it and what they are told."""

    def __init__(self, batch: Batch) -> None:
        self.index: PlacementIndex
        self.shaped: ShapedPods
        self.tested = prepared(batch, self.attach)
        self.heard = heard_by(self.tested)

    def attach(self, tested: LiveScorer) -> None:
        self.shaped = shaped_pods(tested.scorer)
        with tested.scorer.tables.reading() as cluster:
            self.index = PlacementIndex(cluster.state)
            tested.scorer.tables.attach(INDEXED_KINDS, self.index)

    def assume(self, batch: Batch, *, together: bool, until: float) -> None:
        with self.tested.scorer.tables.reading() as cluster:
            if together:
                cluster.assume_all(batch.pods, batch.rows, until)
            else:
                for pod, row in zip(batch.pods, batch.rows, strict=True):
                    cluster.assume(pod, cluster.state.names[row], until)

    def everything(self) -> list[Any]:
        with self.tested.scorer.tables.reading() as cluster:
            return [tables_of(cluster), values(self.index), values(self.shaped), list(self.heard)]


def assert_same(both: Sequence[Followed]) -> None:
    one, other = both
    assert differences(one.everything(), other.everything()) == []


@settings(max_examples=400 if settings.get_current_profile_name() == "long" else 12, deadline=None)
@given(st.data())
def test_at_once_is_the_same_as_one_by_one(data: st.DataObject) -> None:
    batch = data.draw(batches())
    both = [Followed(batch), Followed(batch)]
    assert_same(both)
    for one, together in zip(both, (True, False), strict=True):
        one.assume(batch, together=together, until=at(17) + 60)
    assert_same(both)
    steps = data.draw(follow_ups(batch))
    for one in both:
        happen(one.tested, batch, steps)
    assert_same(both)
    assert both[0].tested.scorer.self_check().drift == ()


def alike(n: int, shape: PodInfo = SHAPES[0]) -> list[PodInfo]:
    return [replace(shape, uid=f"u{i}", name=f"p{i}", created=at(17) + i) for i in range(n)]


def assumed(pods: Sequence[PodInfo], rows: Sequence[int]) -> tuple[LiveScorer, list[Change]]:
    tested, heard = LiveScorer(pods=pods), list[Change]()
    with tested.scorer.tables.reading() as cluster:
        cluster.listeners.append(heard.extend)
        cluster.assume_all(pods, rows, at(17) + 60)
    return tested, heard


@pytest.mark.parametrize("shape", SHAPES)
def test_all_kinds_of_pods_are_told_of_at_once(shape: PodInfo) -> None:
    _, heard = assumed(alike(5, shape), [0, 1, 1, 2, 0])
    many = [change for change in heard if isinstance(change, PodsSeated)]
    if shape.started is not None:
        assert not many, "it ran already: it is charged by its age"
    elif shape.owner.kind in ("", "Job"):
        # No profile for what it requests before the first of them has a place.
        assert [[seat.node for seat in one.seats] for one in many] == [[1, 1, 2, 0]]
    else:
        assert sum(len(one.pods) for one in many) >= 4


def test_a_batch_is_told_in_the_order_of_its_seats() -> None:
    pods = [pod_of(3, "there", "node-3"), *alike(4)]  # its profile is there
    _, heard = assumed(pods, [3, 2, 0, 2, 1])
    (many,) = heard
    assert isinstance(many, PodsSeated)
    assert [pod.name for pod in many.pods] == ["p0", "p1", "p2", "p3"]
    assert [(one.pod.node, one.before, one.after) for one in many.each] == [
        (f"node-{seat.node}", None, seat) for seat in many.seats
    ]
    assert [seat.node for seat in many.seats] == [2, 0, 2, 1]


def test_nothing_is_done_pod_by_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    pods = [pod_of(3, "there", "node-3"), *alike(20)]
    tested = LiveScorer(pods=pods)

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("pod by pod")

    monkeypatch.setattr(PredictedCluster, "place", fail)
    monkeypatch.setattr(Charges, "charge", fail)
    with tested.scorer.tables.reading() as cluster:
        cluster.assume_all(pods[1:], [i % 4 for i in range(20)], at(17) + 60)
        assert cluster.state.pod_count.tolist() == [5, 5, 5, 6]


def test_whoever_wants_to_is_asked_before_an_assumption_ends() -> None:
    tested, _ = assumed(alike(3), [0, 1, 2])
    asked: list[list[str]] = []
    with tested.scorer.tables.reading() as cluster:
        cluster.on_overdue = lambda uids: asked.append(list(uids))
    tested.later(59)
    assert asked == []
    tested.later(2)
    tested.later(1)
    assert asked == [["u0", "u1", "u2"]] * 2, "with every tick"
    with tested.scorer.tables.reading() as cluster:
        assert len(cluster.assumed) == 3, "nothing is forgotten by itself"
        cluster.keep("u1", at(17) + 600)
        cluster.forget_all(["u0", "u2", "nobody"])
        assert cluster.state.pod_count.tolist() == [0, 1, 0, 0]
    tested.later(1)
    assert len(asked) == 2
