"""Rules that place the pods of a half hour together: the same pods, the same load, and tables that agree with both."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from base.arrays import Ints
from benchmarks.replay_together import ByCurvesTogether, TogetherCluster
from forecast.hot_share import HOT_SHARE
from scorer.replay.preparation import Prepared, by_curves, prepare
from scorer.replay.replay_rules import ReplayedPod, ReplayState
from scorer.replay.running_cluster import Playback, play
from tests.scorer.replay.simple_forecast import simple_forecast
from tests.scorer.replay.small_cluster import small_cluster


@pytest.fixture(scope="module")
def prepared() -> Prepared:
    return prepare(*small_cluster(), simple_forecast, hot=HOT_SHARE)


def together(prepared: Prepared, most: int = 1_000) -> ByCurvesTogether:
    return ByCurvesTogether(prepared.forecasts["forecast"], prepared.recording.capacity, most=most)


def expected_cost(prepared: Prepared, playback: Playback) -> float:
    """Of the nodes as the pods of the first half hour make them: the search lowers it."""
    recording, forecast = prepared.recording, prepared.forecasts["forecast"]
    load = forecast.base.copy()
    for pod in np.flatnonzero(recording.birth == 0).tolist():
        load[playback.node[pod]] += forecast.curves[recording.service[pod], :, 0]
    size = recording.capacity / np.nan_to_num(recording.capacity).mean(axis=0)
    power = (load / recording.capacity[:, :, None]) ** 6
    weights = np.array([1.0, 0.25, 1.0, 1.0, 1.0])
    return float(np.nansum(power.sum(axis=2) * size**0.5 * weights))


@pytest.mark.parametrize("seed", range(4))
def test_pods_change_places_only_if_the_expected_peaks_are_lower_then(prepared: Prepared, seed: int) -> None:
    recording = prepared.recording
    alone = play(recording, by_curves(recording, prepared.forecasts["forecast"]), seed=seed)
    at_once = play(recording, together(prepared), seed=seed, running=TogetherCluster)
    assert (at_once.node >= 0).all()
    np.testing.assert_allclose(at_once.node_load(recording).sum(axis=0), alone.node_load(recording).sum(axis=0), 1e-5)
    changed = (alone.node != at_once.node)[recording.birth == 0].any()
    assert changed
    assert expected_cost(prepared, at_once) < expected_cost(prepared, alone)


def test_only_pods_of_the_release_move_and_those_of_each_batch_once(prepared: Prepared) -> None:
    recording = prepared.recording
    alone = play(recording, by_curves(recording, prepared.forecasts["forecast"]), seed=0)
    order: dict[int, Ints] = {}

    def noted(pods: Ints) -> Ints:
        order[len(order)] = pods
        return pods

    some = play(recording, together(prepared, most=8), seed=0, order=noted, running=TogetherCluster)
    moved = np.flatnonzero((some.node != alone.node) & (recording.birth == 0))
    assert len(moved) > 0 and set(moved.tolist()) <= set(order[0][-8:].tolist())
    recording, sizes = prepared.recording, list[int]()

    class Noting(ByCurvesTogether):
        def rearrange(self, pods: Sequence[ReplayedPod], nodes: Ints, state: ReplayState) -> Ints:
            sizes.append(len(pods))
            return super().rearrange(pods, nodes, state)

    rule = Noting(prepared.forecasts["forecast"], recording.capacity, batch=5, spreads=True)
    cluster = TogetherCluster(recording, rule)
    born = cluster.born(0)
    cluster.place(born, 0)
    assert sizes == [5] * (len(born) // 5) + [len(born) % 5] * (len(born) % 5 > 0)
    assert len(sizes) > 1
