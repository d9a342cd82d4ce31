from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from autoscaling.capacity.hours import filled_nodes, hourly_nodes
from forecast.resources import CPU, MEMORY
from tests.autoscaling.capacity.tiny_prepared import N_SLOTS, by_day, steady


def test_nodes_are_filled_up_to_the_ceiling_less_their_own_load() -> None:
    recording = steady([4.0] * 3, n_nodes=2).recording
    base = np.zeros_like(recording.base)
    base[:, CPU] = 2.0  # leaves 6 of 10 cores up to 80 %
    pods = recording.load.sum(axis=0)
    assert filled_nodes(recording, pods, base) == pytest.approx(np.full(N_SLOTS, 2.0))
    pods[MEMORY] = 350.0  # of 100 a node, all of it
    assert filled_nodes(recording, pods, base) == pytest.approx(np.full(N_SLOTS, 3.5))


def test_the_ceiling_is_the_hot_share_of_the_recording() -> None:
    recording = replace(steady([4.0] * 3, n_nodes=2).recording, hot=0.6)
    filled = filled_nodes(recording, recording.load.sum(axis=0), np.zeros_like(recording.base))
    assert filled == pytest.approx(np.full(N_SLOTS, 2.0))  # 12 cores, 6 of 10 on each node


def test_the_busiest_hour_needs_what_the_window_needs_and_hours_are_local() -> None:
    curve = np.full((4, N_SLOTS), 1.0)
    curve[:, 32:34] = 4.0  # 16 hours after the placement at 04:00: 20:00
    prepared = by_day(curve, n_nodes=2)
    forecast = prepared.forecasts["forecast"]
    hourly = hourly_nodes(prepared.recording, forecast, 8, 3, 2)
    assert hourly.needed.argmax() == hourly.expected.argmax() == 20
    assert hourly.needed[20] == 2 and hourly.expected[20] == 3
    assert set(np.delete(hourly.needed, 20).tolist()) == {1}
    assert hourly.under == 0.0
    half = replace(forecast, mean=forecast.mean / 2)
    assert hourly_nodes(prepared.recording, half, 8, 3, 2).under == pytest.approx(2 / N_SLOTS)
