"""What a recording says of the pods at its start."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, time

import numpy as np

from forecast.hot_share import HOT_SHARE
from forecast.resources import CPU, DISK, MEMORY
from scorer.replay.recording import record
from scorer.replay.window import replay_window
from tests.scorer.replay.small_cluster import N_NODES, REPLICAS, small_cluster


def test_pods_are_on_the_nodes_that_they_were_recorded_on_or_on_none() -> None:
    history, pods = small_cluster()
    recording = record(history, pods, replay_window(history), hot=HOT_SHARE)
    n = sum(REPLICAS)
    np.testing.assert_array_equal(recording.first_node[:n], np.arange(n) % N_NODES)
    assert (recording.first_node[n:] == -1).all(), "pods that are born later are on no node yet"
    history, pods = small_cluster()
    sizes, allocatable = history.capacity.copy(), history.allocatable.copy()
    sizes[0] = allocatable[0] = np.nan
    recording = record(
        replace(history, capacity=sizes, allocatable=allocatable), pods, replay_window(history), hot=HOT_SHARE
    )
    n = sum(REPLICAS)
    expected = np.arange(n) % N_NODES - 1  # the rows of the others move up by one
    np.testing.assert_array_equal(recording.first_node[:n], expected)
    history, pods = small_cluster()
    recording = record(history, replace(pods, row=np.full(len(pods.row), -1)), replay_window(history), hot=HOT_SHARE)
    assert (recording.first_node == -1).all()


def test_a_recording_may_begin_with_the_first_half_hour_that_is_known_of_its_pods() -> None:
    history, pods = small_cluster()
    window = replay_window(history, datetime.combine(history.days[-3], time()), 2)
    later = slice(pods.days.index(window.days[0]), None)
    recording = record(
        history,
        replace(pods, days=pods.days[later], usage=pods.usage[:, :, later], present=pods.present[:, later]),
        window,
        hot=HOT_SHARE,
    )
    assert recording.n_slots == 96
    assert (recording.started[recording.birth == 0] == 0).all(), "how long they have run is not known"


def test_nodes_are_as_they_were_when_the_pods_were_placed() -> None:
    """Failed before: a replay of days before node 1 was rebuilt had it as it is now."""
    history, pods = small_cluster()
    window = replay_window(history)
    then = np.array(history.capacity_of_days)
    then[1, :, : window.first_day + 1] *= 2
    recording = record(replace(history, daily_capacity=then), pods, window, hot=HOT_SHARE)
    now = record(history, pods, window, hot=HOT_SHARE)
    factor = np.where(np.arange(N_NODES) == 1, 2.0, 1.0)[:, None]
    known = [CPU, MEMORY, DISK]  # the others are assumed by kind
    np.testing.assert_array_equal(recording.capacity[:, known], factor * now.capacity[:, known])
    np.testing.assert_array_equal(recording.allocatable, factor * now.allocatable)
