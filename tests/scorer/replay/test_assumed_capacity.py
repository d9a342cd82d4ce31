"""A replay of a cluster whose disk capacity nobody configured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from base.arrays import Floats32
from forecast.assumed_capacity import assumed_capacities
from forecast.history import History
from forecast.hot_share import HOT_SHARE
from forecast.resources import CPU, DISK, MEMORY
from scorer.replay.recording import Recording, record
from scorer.replay.replay_figures import figures_of
from scorer.replay.window import replay_window
from tests.scorer.replay.small_cluster import small_cluster


def recorded(usage: Floats32 | None = None) -> tuple[History, Recording]:
    """Six nodes of one kind, without a disk capacity. usage: of the nodes, in place of what they used."""
    history, pods = small_cluster()
    capacity = history.capacity.copy()
    capacity[:, CPU], capacity[:, DISK] = 8.8, np.nan
    history = replace(history, capacity=capacity, node_usage=history.node_usage if usage is None else usage)
    return history, record(history, pods, replay_window(history, None, 7), hot=HOT_SHARE)


def test_rules_weigh_an_assumed_capacity_learned_before_the_window() -> None:
    history, recording = recorded()
    known = history.before(replay_window(history, None, 7).first_day)
    np.testing.assert_allclose(recording.capacity[:, DISK], assumed_capacities(known)[:, DISK])
    assert recording.assumed_names() == ["disk", "network", "log"]
    assert recording.assumed[:, DISK].all() and not recording.assumed[:, [CPU, MEMORY]].any()
    assert np.isnan(recording.known_capacity[:, DISK]).all()
    later = history.node_usage.copy()
    later[:, DISK, replay_window(history, None, 7).first_day :] *= 100
    np.testing.assert_array_equal(recorded(later)[1].capacity, recording.capacity)


@pytest.mark.parametrize("assumed", [True, False])
def test_an_assumed_capacity_makes_no_node_hot_and_its_spread_is_reported(assumed: bool) -> None:
    share = np.full((4, 5, 96), 0.1)
    share[0, DISK] = 3.0
    mask = np.zeros((4, 5), dtype=bool)
    mask[:, DISK] = assumed
    figures = figures_of(share, 0, {}, 0.8, mask)
    assert figures.hot_share == (0.0 if assumed else 0.25)
    assert figures.max_peak["disk"] == 3.0 and figures.peak_cv["disk"] > 0
