"""Whatever comes after a moment, only the clairvoyant acts by it before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from forecast.calendar import SLOTS_PER_DAY
from forecast.fit import fit
from forecast.history import History, PodUsage
from forecast.hot_share import HOT_SHARE
from rebalancer.rebalance_settings import RebalanceOptions
from rebalancer.trajectory.play import NIGHT_SLOT
from rebalancer.trajectory.trajectories import (
    CLAIRVOYANT,
    MOVES,
    PLACEMENT_AND_MOVES,
    RULES,
    Trajectories,
    TrajectoryOptions,
    trajectories,
)
from scorer.replay.window import flat
from tests.scorer.replay.small_cluster import N_DAYS, by_day, curves, small_cluster

DAYS = 3
PLANNED = (MOVES, PLACEMENT_AND_MOVES)
UNTIL = (DAYS - 1) * SLOTS_PER_DAY + NIGHT_SLOT + 1
"""Slots of the trajectory that are the same: until 04:30 of the last day, the plan of its night included."""

MOMENT = (N_DAYS - DAYS) * SLOTS_PER_DAY + UNTIL
"""The same moment in the history."""


def another_end() -> tuple[History, PodUsage]:
    """The small cluster, whose services swap their curves at the moment and use three times as much from then on."""
    cpu = curves()
    cpu[:, MOMENT:] = cpu[::-1, MOMENT:] * 3
    history, pods = small_cluster(cpu=cpu)
    requests = history.daily_requests.copy()
    requests[..., -1] *= 5
    replicas = flat(history.replicas).copy()
    replicas[:, MOMENT:] += 2
    return replace(history, daily_requests=requests, replicas=by_day(replicas)), pods


def play(cluster: tuple[History, PodUsage]) -> Trajectories:
    rebalance = RebalanceOptions()
    return trajectories(
        *cluster,
        fit,
        days=DAYS,
        options=TrajectoryOptions(release=0.2, fit_nights=2),
        rebalance=rebalance.replace(budget=rebalance.budget.replace(share=0.11)),
        hot=HOT_SHARE,
    )


def test_no_rule_but_the_clairvoyant_acts_by_what_comes_later() -> None:
    as_it_was, otherwise = play(small_cluster()), play(another_end())
    for rule in RULES:
        first, second = as_it_was.by_rule[rule], otherwise.by_rule[rule]
        before = [[move for move in one.moves if move.slot < UNTIL] for one in (first, second)]
        same_load = np.array_equal(first.share[..., :UNTIL], second.share[..., :UNTIL], equal_nan=True)
        if rule == CLAIRVOYANT:
            assert before[0] != before[1] or not same_load, "the future is not different enough to be noticed"
            continue
        assert before[0] == before[1], rule
        assert same_load, rule
        if rule in PLANNED:
            assert any(move.slot == UNTIL - 1 for move in before[0]), f"{rule}: no plan moved in the last night"
