"""The self-check: sound tables pass, and whichever table is corrupted, it says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from cluster.predicted.predicted_cluster import PredictedCluster
from cluster.tracking import TrackedCluster
from tests.scorer.live_cluster import at, pod_of
from tests.scorer.scorer_at import LiveScorer

PODS = [pod_of(i % 4, f"p{i}", f"node-{i % 3}", started=at(0)) for i in range(8)] + [pod_of(None, "bare", "node-1")]


def predicted(cluster: TrackedCluster) -> PredictedCluster:
    assert cluster.predicted is not None
    return cluster.predicted


def place_elsewhere(cluster: TrackedCluster) -> None:
    placed = predicted(cluster).placed
    placed["uid-p0"] = replace(placed["uid-p0"], node=2)


def spoil_profile(cluster: TrackedCluster) -> None:
    pods = predicted(cluster).placed
    wrong = next(pod.profile for pod in pods.values() if pod.profile != pods["uid-p0"].profile)
    before = pods["uid-p0"]
    predicted(cluster)._count(before, -1)
    pods["uid-p0"] = replace(before, profile=wrong)
    predicted(cluster)._count(pods["uid-p0"], +1)


def spoil_replicas(cluster: TrackedCluster) -> None:
    predicted(cluster)._replicas[0] += 1


def spoil_unknown_pods(cluster: TrackedCluster) -> None:
    predicted(cluster).unknown_pods += 1


def spoil_seat(cluster: TrackedCluster) -> None:
    seat = cluster.state.seat_of["uid-p0"]
    cluster.state.seat_of["uid-p0"] = replace(seat, weight=0.0)


def add(table: np.ndarray, at: tuple[int, ...] | int, amount: float) -> None:
    table[at] += amount


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda c: add(predicted(c).load._tables.share, (1, 0, 40), 0.01), "load: node node-1 is off by 0.0100"),
        (lambda c: add(predicted(c).load._tables.share, (1, 0, 40), np.nan), "load: node node-1 is off by nan"),
        (lambda c: predicted(c).remove("uid-p0"), "pod uid-p0 sits on row 0 with weight 1, and is counted on no node"),
        (lambda c: predicted(c).load.add(0, 0), "predicted load: node node-0 is off by"),
        (lambda c: predicted(c).placed.update(ghost=predicted(c).placed["uid-p0"]), "pod ghost sits on no node"),
        (place_elsewhere, "pod uid-p0 sits on row 0 with weight 1, and is counted on row 2"),
        (lambda c: add(predicted(c)._pods_today, (0, 0), 1.0), "usage now of node node-0"),
        (lambda c: add(c._capacity.amount, 0, 240.0), "node node-0: its capacity"),
        (spoil_profile, "1 pods are counted with the curve of another service"),
        (spoil_replicas, "its curve is for"),
        (lambda c: c.charges.charge("nobody", 0, np.ones(5), None, c.now), "pod nobody is charged"),
        (lambda c: add(predicted(c)._qos_memory, (2, 1), 1.0), "memory by QoS class of node node-2"),
        (spoil_unknown_pods, "2 pods of unknown services are counted, there are 1"),
        (lambda c: add(c.charges._total, (1, 0), 1.0), "virtual requests: sums differ"),
        (lambda c: add(c.state._columns._requested, (0, 0), 1.0), "node-0"),
        (spoil_seat, "uid-p0"),
    ],
)
def test_a_corrupted_table_is_found(spoil: Callable[[TrackedCluster], None], said: str) -> None:
    tested = LiveScorer(pods=PODS)
    assert tested.scorer.self_check().drift == ()
    spoil(tested.scorer.tables._cluster)
    checked = tested.scorer.self_check()
    assert not checked.sound
    assert any(said in drift for drift in checked.drift), checked.drift
    assert tested.scorer.status().last_check == checked


def test_many_drifts_are_summed_up_and_the_last_digits_are_none() -> None:
    tested = LiveScorer(pods=PODS)
    cluster = predicted(tested.scorer.tables._cluster)
    for uid in list(cluster.placed):
        cluster.remove(uid)
    drift = tested.scorer.self_check().drift
    assert len(drift) == 6
    assert drift[-1] == "predicted load: 4 more pods are counted elsewhere than they sit"
    tested = LiveScorer(pods=PODS)
    for pod in PODS:
        tested.delete(pod)
    emptied = predicted(tested.scorer.tables._cluster)
    emptied._pods_today[0] += 1e-9
    emptied._qos_memory[0] += 1e-9
    assert tested.scorer.self_check().drift == ()
    emptied._pods_today[0, 0] += 0.1  # a tenth of a core
    assert [one.partition(" of ")[0] for one in tested.scorer.self_check().drift] == ["predicted load: usage now"]
