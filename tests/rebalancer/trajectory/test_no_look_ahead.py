"""Whatever comes after a moment, only the clairvoyant acts by it before."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

from forecast.calendar import SLOTS_PER_DAY
from forecast.fit import fit
from forecast.history import History, PodUsage
from rebalancer.options import RebalanceOptions
from rebalancer.trajectory.options import TrajectoryOptions
from rebalancer.trajectory.trajectories import CLAIRVOYANT, RULES, Trajectories, trajectories
from scorer.replay.window import flat
from tests.scorer.replay.small_cluster import N_DAYS, by_day, curves, small_cluster

DAYS = 3
MOMENT = (N_DAYS - 1) * SLOTS_PER_DAY
"""Midnight of the last day."""


def another_last_day() -> tuple[History, PodUsage]:
    """The small cluster, whose services swap their curves on the last day and use three times as much."""
    cpu = curves()
    cpu[:, MOMENT:] = cpu[::-1, MOMENT:] * 3
    history, pods = small_cluster(cpu=cpu)
    requests = history.daily_requests.copy()
    requests[..., -1] *= 5
    replicas = flat(history.replicas).copy()
    replicas[:, MOMENT:] += 2
    return replace(history, daily_requests=requests, replicas=by_day(replicas)), pods


def play(cluster: tuple[History, PodUsage], forecast: Literal["model", "last_week"]) -> Trajectories:
    rebalance = RebalanceOptions()
    return trajectories(
        *cluster,
        fit,
        days=DAYS,
        options=TrajectoryOptions(release=0.2, forecast=forecast, fit_nights=2),
        rebalance=rebalance.replace(budget=rebalance.budget.replace(share=0.11)),
    )


@pytest.mark.parametrize("forecast", ["model", "last_week"])
def test_no_rule_but_the_clairvoyant_acts_by_what_comes_later(forecast: Literal["model", "last_week"]) -> None:
    as_it_was, otherwise = play(small_cluster(), forecast), play(another_last_day(), forecast)
    last_day = (DAYS - 1) * SLOTS_PER_DAY
    moved = False
    for rule in RULES:
        first, second = as_it_was.by_rule[rule], otherwise.by_rule[rule]
        before = [[move for move in one.moves if move.slot <= last_day] for one in (first, second)]
        if rule == CLAIRVOYANT:
            assert (
                before[0] != before[1]
                or (first.share[:, :, :last_day] != second.share[:, :, :last_day]).any()
                or first.moves != second.moves
            )
            continue
        assert before[0] == before[1], rule
        np.testing.assert_array_equal(first.share[:, :, :last_day], second.share[:, :, :last_day], err_msg=rule)
        moved = moved or bool(before[0])
    assert moved
