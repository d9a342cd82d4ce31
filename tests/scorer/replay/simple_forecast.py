"""A forecast without a fit: the last two weeks as they were, their mean, and flat errors. Enough to test the replay."""

from __future__ import annotations

import numpy as np

from base.arrays import Floats
from forecast.calendar import SLOTS_PER_DAY
from forecast.history import History
from forecast.resources import RESOURCES
from forecast.scenarios import dilate
from scorer.replay.curves import CurveForecast, NodeBound
from scorer.replay.window import ReplayWindow, flat


def simple_forecast(history: History, window: ReplayWindow, current_replicas: Floats) -> CurveForecast:
    """Everything from the days of `history` alone, whatever `window` says lies behind it."""
    weeks = []
    for age in (1, 2, 3):
        first = (history.n_days - 7 * age) * SLOTS_PER_DAY
        week = flat(history.usage_per_pod)[..., max(first, 0) : max(first, 0) + 7 * SLOTS_PER_DAY]
        replicas = flat(history.replicas)[..., max(first, 0) : max(first, 0) + 7 * SLOTS_PER_DAY]
        weeks.append(np.roll(np.nan_to_num(week).astype(np.float64), -window.first_slot, axis=-1))
        if age == 1:
            expected = np.roll(np.nan_to_num(replicas).astype(np.float64), -window.first_slot, axis=-1)
    curves = np.tile(np.stack(weeks, axis=2), -(-window.n_days // 7))[..., : window.n_slots]
    mean = curves.mean(axis=2)
    n_nodes = len(history.nodes)
    base = flat(history.node_usage) - np.nan_to_num(flat(history.node_pod_usage))
    level = np.nan_to_num(base.astype(np.float64)).mean(axis=2, keepdims=True)
    swing = np.nanmax(history.replicas, axis=(1, 2)) - np.nanmin(history.replicas, axis=(1, 2))
    return CurveForecast(
        mean=mean,
        curves=dilate(curves),
        curve_weights=np.array([0.5, 0.3, 0.2]),
        replicas=np.tile(expected, -(-window.n_days // 7))[:, : window.n_slots],
        autoscaled=swing >= 2,
        base=np.repeat(np.maximum(level, 0.0), window.n_slots, axis=2),
        run_seconds=np.full(len(mean), np.nan),
        bound=NodeBound(
            own_variance=(0.1 * mean) ** 2,
            shared_variance=(0.2 * mean) ** 2,
            base_variance=np.zeros((n_nodes, len(RESOURCES), window.n_slots)),
            cluster_std=np.full(len(RESOURCES), 0.02),
            z=np.full((n_nodes, len(RESOURCES)), 2.0),
        ),
    )
