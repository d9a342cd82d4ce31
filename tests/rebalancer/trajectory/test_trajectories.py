"""Every rule on the small cluster: what holds whatever the figures are."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest

from base.errors import InputError, NotEnoughHistory
from forecast.calendar import SLOTS_PER_DAY
from rebalancer.cooldown import CooldownOptions
from rebalancer.trajectory.play import NIGHT_SLOT
from rebalancer.trajectory.trajectories import (
    CLAIRVOYANT,
    MOVES,
    PLACEMENT,
    PLACEMENT_AND_MOVES,
    RULES,
    UNTOUCHED,
    Trajectories,
    trajectory_window,
)
from scorer.replay.replay_figures import hot_node_slots, shares
from scorer.replay.window import flat
from tests.rebalancer.trajectory.played import played
from tests.scorer.replay.small_cluster import N_DAYS, N_NODES, small_cluster

PLANNED = (MOVES, PLACEMENT_AND_MOVES, CLAIRVOYANT)


@pytest.fixture(scope="module")
def seven_days() -> Trajectories:
    return played(release=0.1)


def test_every_rule_has_its_figures_by_local_day(seven_days: Trajectories) -> None:
    report = json.loads(json.dumps(seven_days.to_json(), allow_nan=False))
    assert tuple(report["rules"]) == RULES
    for rule, figures in report["rules"].items():
        assert len(figures["hot_share_by_day"]) == len(figures["moves_by_day"]) == 7
        assert all(0 <= share <= 1 for share in figures["hot_share_by_day"])
        assert sum(figures["moves_by_day"]) == figures["moves"]
        hot = sum(figures["hot_share_by_day"]) * N_NODES * SLOTS_PER_DAY
        assert figures["hot_node_half_hours"] == pytest.approx(hot)
        assert figures["released_pods"] == report["rules"][UNTOUCHED]["released_pods"] > 0, rule
    assert (report["window"]["first_day"], report["window"]["days"]) == ("2026-01-29", 7)


def test_the_first_day_of_untouched_is_as_hot_as_it_was_recorded() -> None:
    history, pods = small_cluster()
    with pytest.raises((InputError, NotEnoughHistory), match="days"):
        trajectory_window(history, N_DAYS)
    report = played((history, pods), days=1, rules=[UNTOUCHED]).by_rule[UNTOUCHED]
    window = trajectory_window(history, 1)
    used = flat(history.node_usage)[..., window.history_slot :]
    recorded = hot_node_slots(shares(used, history.capacity), 0.8)
    # Until the autoscaled pods of the evening are placed, which need not go where they were recorded.
    assert recorded[:, :36].any()
    np.testing.assert_array_equal(report.hot[:, :36], recorded[:, :36])


def test_plans_are_made_at_night_within_the_budget_and_bring_heat_down(seven_days: Trajectories) -> None:
    report = seven_days.to_json()["rules"]
    for rule in PLANNED:
        trajectory = seven_days.by_rule[rule]
        assert trajectory.moves, rule
        assert all(move.slot % SLOTS_PER_DAY == NIGHT_SLOT for move in trajectory.moves)
        assert max(report[rule]["moves_by_day"]) <= 2
        assert report[rule]["peak_window_moves"] == report[rule]["returns"] == 0
    assert report[MOVES]["hot_node_half_hours"] < report[UNTOUCHED]["hot_node_half_hours"]
    assert report[PLACEMENT_AND_MOVES]["hot_node_half_hours"] < report[PLACEMENT]["hot_node_half_hours"]


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
def test_no_plan_moves_a_pod_that_rests_or_returns_one(seed: int) -> None:
    result = played(seed=seed, days=14, rules=[UNTOUCHED, MOVES])
    nights = defaultdict(list)
    for move in result.by_rule[MOVES].moves:
        nights[move.pod].append(move)
    rest = CooldownOptions().nights
    for moves in nights.values():
        for count, (before, after) in enumerate(pairwise(moves)):
            assert (after.slot - before.slot) // SLOTS_PER_DAY > rest * 2**count
        for count, move in enumerate(moves):
            assert move.target not in {before.source for before in moves[: count + 1]}, "it came back"


def test_the_same_seed_plays_the_same_and_another_releases_others() -> None:
    rules = [UNTOUCHED, PLACEMENT_AND_MOVES]
    first, again, other = (played(seed=seed, days=3, release=0.3, rules=rules) for seed in (1, 1, 2))
    assert first.to_json() == again.to_json()
    assert not np.array_equal(first.by_rule[UNTOUCHED].share, other.by_rule[UNTOUCHED].share, equal_nan=True)
