"""The figures of trajectories as the benchmark counts them, and the sample on nodes of other sizes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.clusters import read_cluster
from benchmarks.clusters.replicated import NodeSizes
from benchmarks.clusters.resized import on_nodes_of
from benchmarks.trajectories import SAMPLE, Cell, cell_of, judge, per_prevented_hour, removed
from rebalancer.trajectory.trajectories import CLAIRVOYANT, LOW_NODE_LOAD, PLACEMENT_AND_MOVES, RULES, UNTOUCHED
from tests.rebalancer.trajectory.played import played


@pytest.fixture(scope="module")
def cell() -> Cell:
    return cell_of("small", played(days=5))


def test_a_cell_counts_the_days_after_three_nights(cell: Cell) -> None:
    assert set(cell.hot) == set(RULES)
    assert cell.hot[UNTOUCHED] <= sum(cell.by_day[UNTOUCHED]) * 6 * 48
    assert cell.hot[UNTOUCHED] == round(sum(cell.by_day[UNTOUCHED][3:]) * 6 * 48)
    assert cell.prevented[UNTOUCHED] == 0
    assert 0 < cell.moved <= 2 / 19


def test_removed_is_a_share_of_what_the_clairvoyant_removes(cell: Cell) -> None:
    made = [
        replace(cell, hot={**cell.hot, UNTOUCHED: 100, PLACEMENT_AND_MOVES: ours, CLAIRVOYANT: 20}) for ours in (20, 60)
    ]
    assert [removed([one]) for one in made] == [1.0, 0.5]
    assert removed(made) == 0.75
    assert np.isnan(removed([replace(cell, hot=dict.fromkeys(RULES, 0))]))


def test_moves_are_compared_by_prevented_hour(cell: Cell) -> None:
    made = replace(cell, moves={**cell.moves, LOW_NODE_LOAD: 30}, prevented={**cell.prevented, LOW_NODE_LOAD: 20})
    assert per_prevented_hour([made], LOW_NODE_LOAD) == 3.0
    assert per_prevented_hour([replace(made, prevented={LOW_NODE_LOAD: -4})], LOW_NODE_LOAD) == float("inf")


def test_a_missed_aim_is_named(cell: Cell, capsys: pytest.CaptureFixture[str]) -> None:
    good = replace(
        cell,
        hot={**cell.hot, UNTOUCHED: 100, PLACEMENT_AND_MOVES: 21, CLAIRVOYANT: 20},
        moved=0.01,
        moves={**cell.moves, PLACEMENT_AND_MOVES: 10, LOW_NODE_LOAD: 100},
        prevented={**cell.prevented, PLACEMENT_AND_MOVES: 50, LOW_NODE_LOAD: 50},
        returns=0,
    )
    assert judge([good])
    capsys.readouterr()
    assert not judge([replace(good, returns=1)])
    assert "MISSED  returns: 1" in capsys.readouterr().out


def test_other_nodes_have_the_same_capacity_in_all_and_the_same_pods() -> None:
    cluster = read_cluster(SAMPLE)
    equal = on_nodes_of(cluster, NodeSizes.EQUAL, np.random.default_rng(0))
    np.testing.assert_allclose(equal.capacity.sum(axis=0), cluster.capacity.sum(axis=0))
    assert np.ptp(equal.capacity, axis=0).max() == pytest.approx(0, abs=1e-3)
    assert (equal.node_of >= 0).all()
    assert np.isfinite(equal.base).any()
    assert equal.usage is cluster.usage
