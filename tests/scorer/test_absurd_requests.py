"""Pods that request or declare more than any machine has count as what their node has, and are reported."""

from __future__ import annotations

import json
import logging

import numpy as np
import pytest

from cluster.predicted.pod_bounds import VIRTUAL_REQUEST_ANNOTATION
from forecast.resources import CPU, MEMORY
from kube.decoding.decoding import Kind
from kube.objects.objects import PodInfo
from tests.scorer.live_cluster import at, node, pod_of
from tests.scorer.scorer_at import LiveScorer, tables

SIZES = (10.0, 20.0, 30.0, 40.0)
ABSURD = {
    "1e18 cores": {"cpu": 1e18},
    "a petabyte": {"memory": 1e15},
    "the largest int64": {"cpu": 2.0**63 - 1, "memory": 2.0**63 - 1},
    "1e30 of both": {"cpu": 1e30, "memory": 1e30},
}


def _pod(name: str, on: str = "", *, cpu: float = 0.5, memory: float = 0.5) -> PodInfo:
    return pod_of(None, name, on, cpu=cpu, memory=memory, started=at(10) if on else None)


def _highest(tested: LiveScorer, row: int) -> np.ndarray:
    """(n_resources,) of what the pods on a node are predicted to use over the horizon."""
    predicted = tables(tested)
    pods = predicted.load.pods_on(row)
    keys = [predicted.keys[profile] for profile in pods]
    curves = predicted.profiles.mean_of(keys, np.ones(len(keys)), predicted.horizon.days)
    cost = predicted.profiles.model.per_pod_cost.max(axis=(1, 2))
    return np.asarray((curves.max(axis=2) - cost).max(axis=0))


def _sound(tested: LiveScorer) -> None:
    check = tested.scorer.self_check()
    assert check.sound, check.drift


@pytest.mark.parametrize("requests", ABSURD.values(), ids=ABSURD)
def test_a_pod_uses_no_more_than_its_node_has(requests: dict[str, float]) -> None:
    tested = LiveScorer(pods=[_pod(f"a{i}", f"node-{i}", **requests) for i in range(4)], sizes=SIZES)
    for row, size in enumerate(SIZES):
        used = _highest(tested, row)
        assert (used[[CPU, MEMORY]] <= size + 1e-4).all() and np.isfinite(used).all(), (row, used)
    charged = tested.scorer.tables._cluster.charges.total(4)
    assert (charged[:, [CPU, MEMORY]] <= np.array(SIZES)[:, None]).all()
    _sound(tested)


@pytest.mark.parametrize("order", ["pods first", "nodes first", "resized", "node lost and back"])
def test_the_order_of_events_makes_no_difference(order: str) -> None:
    absurd = _pod("absurd", "node-1", cpu=1e18)
    tested = LiveScorer(pods=[absurd], sizes=SIZES)
    expected = _highest(tested, 1)
    if order == "pods first":
        tested = LiveScorer(pods=[], sizes=())
        tested.put(absurd)
        tested.scorer.tables.replace(Kind.NODES, [node(f"node-{i}", size) for i, size in enumerate(SIZES)])
    elif order == "resized":
        tested = LiveScorer(pods=[absurd], sizes=(10.0, 40.0, 30.0, 40.0))
        tested.scorer.tables.put(Kind.NODES, node("node-1", 20.0))
    elif order == "node lost and back":
        tested.scorer.tables.delete(Kind.NODES, node("node-1", 20.0))
        _sound(tested)
        tested.scorer.tables.put(Kind.NODES, node("node-1", 20.0))
    row = tested.scorer.tables._cluster.state.row_of["node-1"]
    np.testing.assert_allclose(_highest(tested, row), expected)
    _sound(tested)


def test_a_pod_that_waits_and_one_on_an_absent_node_may_use_the_largest_node() -> None:
    tested = LiveScorer(pods=[_pod("lost", "gone", cpu=1e18), _pod("waits", cpu=1e18)], sizes=SIZES)
    cluster = tested.scorer.tables._cluster
    for pod in cluster.state.pods.values():
        assert cluster.expected_use(pod).amount[CPU] == 40.0
        assert tables(tested).keys[cluster.profile(pod)].cpu_cores == 40.0
    _sound(tested)


def test_what_is_declared_is_bounded_like_requests() -> None:
    said = {VIRTUAL_REQUEST_ANNOTATION: json.dumps({"cpu": "1e18", "memory": "1e18"})}
    unknown, known = pod_of(None, "u", "node-0", annotations=said), pod_of(5, "k", "node-1", annotations=said)
    tested = LiveScorer(pods=[unknown, known], sizes=SIZES)
    assert (_highest(tested, 0)[[CPU, MEMORY]] <= 10.0 + 1e-4).all()
    of_known = tables(tested).keys[tables(tested).placed[known.uid].profile]
    assert of_known.declared == ((CPU, 20.0), (MEMORY, 20.0))  # above it, what was measured is believed
    assert tested.scorer.tables._cluster.expected_use(known).amount[CPU] == 20.0
    _sound(tested)


def test_honest_pods_are_predicted_as_if_the_absurd_one_were_not_there() -> None:
    honest = [pod_of(i % 5, f"h{i}", f"node-{i % 4}", started=at(0)) for i in range(12)]
    without, tested = LiveScorer(pods=honest), LiveScorer(pods=[*honest, _pod("absurd", "node-3", cpu=1e18)])
    for row in range(3):
        np.testing.assert_allclose(_highest(tested, row), _highest(without, row))
    before, after = without.scorer.node_figures().peak, tested.scorer.node_figures().peak
    np.testing.assert_allclose(after[:3], before[:3])
    assert np.nan_to_num(after[3, [CPU, MEMORY]]).max() < 5 * 40.0


def test_they_are_counted_and_named_once(caplog: pytest.LogCaptureFixture) -> None:
    absurd = _pod("absurd", "node-0", cpu=1e18)
    with caplog.at_level(logging.WARNING):
        tested = LiveScorer(pods=[absurd, _pod("honest", "node-0")])
        tested.later(60.0)
    [line] = [one for one in caplog.records if "request or declare more" in one.getMessage()]
    assert vars(line)["pods"] == f"{absurd.namespace}/absurd"
    assert tested.scorer.status().pods_beyond_nodes == 1
    tested.delete(absurd)
    assert tested.scorer.status().pods_beyond_nodes == 0
