"""All rules on the same recorded days, from the same placement, with the same releases, which are drawn by the seed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, time
from functools import partial
from typing import Any, Final

import numpy as np

from base.arrays import Floats, Ints
from base.progress import Progress, silent
from forecast.calendar import SLOTS_PER_DAY
from forecast.history import History, PodUsage
from rebalancer.rebalance_settings import PlanningOptions, RebalanceOptions
from rebalancer.trajectory.daily_outlook import (
    ByForecast,
    ByModels,
    ByTruth,
    PlacingByForecasts,
)
from rebalancer.trajectory.night_mover import NightMover
from rebalancer.trajectory.play import Mover, NoMover, Trajectory, play_days
from scorer.replay.curves import true_future, true_runs
from scorer.replay.preparation import FitModel, check_limits, ties
from scorer.replay.recording import Recording, attribute_usage, record
from scorer.replay.replay_rules import ByCurves, Native, ReplayRule
from scorer.replay.window import ReplayWindow, replay_window

CLAIRVOYANT = "clairvoyant"

PEAK_WINDOW: Final = (34, 46)
"""17:00 to 23:00, in half hours of the day: pods should not move then."""


def daily_releases(recording: Recording, n_days: int, share: float, seed: int) -> Mapping[int, Ints]:
    """Services that are released on each day of the trajectory.

    share : of the services that run on at the start, Jobs left out. Each is released once before any is again. Shares
            of a service add up: 1 % of 48 services are three or four in a week
    """
    there = np.flatnonzero((recording.replicas_at_start() > 0) & ~recording.ending)
    rng = np.random.default_rng((seed, 2))
    order, start = rng.permutation(there), rng.random()
    ends = np.floor(start + share * len(there) * np.arange(n_days + 1)).astype(np.int64)
    return {day: order[np.arange(ends[day], ends[day + 1]) % max(len(there), 1)] for day in range(n_days)}


UNTOUCHED, PLACEMENT, MOVES, PLACEMENT_AND_MOVES = "untouched", "placement", "moves", "placement_and_moves"

RULES: Final = (UNTOUCHED, PLACEMENT, MOVES, PLACEMENT_AND_MOVES, CLAIRVOYANT)

MakeMover = Callable[[Recording, int], Mover]
"""Makes a mover of other tools from a recording and a seed."""


@dataclass(frozen=True)
class TrajectoryOptions:
    """What is played. Plans follow the settings `rebalance`, with the planning of these options.

    release    : share of the services that is released each day at 04:00, in addition to the recorded releases: all
                 their pods are placed anew, in random order
    fit_nights : nights between two fits of a model; 1, as the trainer does
    planning   : fewer second thoughts than the rebalancer has, since many plans are made in a row
    """

    release: float = 0.0
    fit_nights: int = 1
    planning: PlanningOptions = field(default_factory=lambda: PlanningOptions(improvement_effort=10))


@dataclass(frozen=True, slots=True)
class Trajectories:
    """What came of every rule, in the order of RULES, then of other movers.

    budget : share of the pods that a plan may move in a night
    """

    window: ReplayWindow
    seed: int
    options: TrajectoryOptions
    budget: float
    recording: Recording
    by_rule: Mapping[str, Trajectory]

    def hot_half_hours(self, rule: str) -> Ints:
        """Hot node half hours of each local day: (n_days,)."""
        return np.asarray(self.by_rule[rule].hot.reshape(self.recording.n_nodes, -1, SLOTS_PER_DAY).sum(axis=(0, 2)))

    def moves_by_day(self, rule: str) -> Ints:
        """Pods moved on each local day: (n_days,)."""
        days = [move.slot // SLOTS_PER_DAY for move in self.by_rule[rule].moves]
        return np.bincount(np.array(days, dtype=np.int64), minlength=self.window.n_days)

    def hot_share_by_day(self, rule: str) -> Floats:
        """Share of all node half hours of each local day: (n_days,)."""
        return np.asarray(self.hot_half_hours(rule) / (self.recording.n_nodes * SLOTS_PER_DAY))

    def to_json(self) -> dict[str, Any]:
        """All figures; docs/use/rebalancer.md describes them."""
        recording = self.recording
        return {
            "rules": {name: self._figures(name) for name in self.by_rule},
            "window": self.window.to_json(),
            "seed": self.seed,
            "budget": self.budget,
            "release": self.options.release,
            "fit_nights": self.options.fit_nights,
            "pods_at_start": int((recording.birth == 0).sum()),
            "pods_born_later": int((recording.birth > 0).sum()),
            "nodes": recording.n_nodes,
        }

    def _figures(self, rule: str) -> dict[str, Any]:
        trajectory = self.by_rule[rule]
        hot, moves = int(self.hot_half_hours(rule).sum()), len(trajectory.moves)
        prevented = int(self.hot_half_hours(UNTOUCHED).sum()) - hot
        in_peak = [PEAK_WINDOW[0] <= move.slot % SLOTS_PER_DAY < PEAK_WINDOW[1] for move in trajectory.moves]
        return {
            "hot_share_by_day": self.hot_share_by_day(rule).tolist(),
            "moves_by_day": self.moves_by_day(rule).tolist(),
            "returns": sum(move.is_return for move in trajectory.moves),
            "peak_window_moves": sum(in_peak),
            "moves": moves,
            "hot_node_half_hours": hot,
            "prevented_node_half_hours": prevented,
            "prevented_per_move": prevented / moves if moves else None,
            "released_pods": trajectory.released,
            "unplaced": trajectory.unplaced,
        }


def trajectory_window(history: History, days: int) -> ReplayWindow:
    """The last `days` local days of the history, from midnight on. Raises InputError if it is too short."""
    if days >= history.n_days:
        return replay_window(history, None, days)  # says what is missing
    return replay_window(history, datetime.combine(history.days[-days], time()), days)


def trajectories(
    history: History,
    pod_usage: PodUsage,
    fit: FitModel,
    *,
    days: int = 7,
    seed: int = 0,
    options: TrajectoryOptions,
    rebalance: RebalanceOptions,
    rules: Collection[str] = RULES,
    others: Mapping[str, MakeMover] = {},
    hot: float,
    progress: Progress = silent,
) -> Trajectories:
    """Play the last days of the history forward by every rule.

    history   : all of it; what a rule may know is cut out here
    pod_usage : single pods, at least of the days of `trajectory_window(history, days)`
    rebalance : how plans are made; its mode does not count
    fit       : makes a model of a history; called for each day that the options ask a model for
    rules     : that are played, UNTOUCHED among them
    others    : movers that are played in addition, by name; kube-scheduler's defaults place what they evict
    hot       : share of its capacity above which a node is hot
    """
    window = trajectory_window(history, days)
    recording = record(history, pod_usage, window, hot)
    check_limits(recording)
    forecasts = ByModels(history, window, recording, fit, every=options.fit_nights)
    completed, by_regression = attribute_usage(history, window, forecasts.model(0))
    if by_regression:
        recording = record(completed, pod_usage, window, hot)
    releases = daily_releases(recording, days, options.release, seed)
    namespace = _namespaces(history)
    ours = _rules(recording, forecasts, namespace, seed, rebalance, options.planning)
    played = {name: made for name, made in ours.items() if name in rules}
    played |= {name: (lambda: Native(ties(seed)), partial(mover, recording, seed)) for name, mover in others.items()}
    by_rule = {
        name: play_days(recording, rule(), mover(), releases, seed=seed, progress=progress, stage=f"trajectory: {name}")
        for name, (rule, mover) in played.items()
    }
    return Trajectories(window, seed, options, rebalance.budget.share, recording, by_rule)


_Made = tuple[Callable[[], ReplayRule], Callable[[], Mover]]


def _rules(
    recording: Recording,
    forecasts: ByModels,
    namespace: Ints,
    seed: int,
    rebalance: RebalanceOptions,
    planning: PlanningOptions,
) -> Mapping[str, _Made]:
    """How each rule places and moves."""
    # Whatever scales, the truth knows when: pods to come count on all nodes that could take them.
    truth = true_future(recording, autoscaled=~recording.ending)

    def native() -> ReplayRule:
        return Native(ties(seed))

    def by_forecast() -> ReplayRule:
        return PlacingByForecasts(forecasts, recording)

    def by_truth() -> ReplayRule:
        return ByCurves(truth, recording.capacity, jobs=true_runs(recording))

    def planned() -> Mover:
        return NightMover(ByForecast(forecasts, recording), recording, namespace, rebalance, planning)

    def planned_by_truth() -> Mover:
        # The truth has no error to guard against.
        exact = replace(planning, guarded_margin=0.0)
        return NightMover(ByTruth(recording, truth), recording, namespace, rebalance, exact)

    return {
        UNTOUCHED: (native, NoMover),
        PLACEMENT: (by_forecast, NoMover),
        MOVES: (native, planned),
        PLACEMENT_AND_MOVES: (by_forecast, planned),
        CLAIRVOYANT: (by_truth, planned_by_truth),
    }


def _namespaces(history: History) -> Ints:
    """Number of the namespace of each service: (n_services,)."""
    names = [service.namespace for service in history.services]
    return np.unique(names, return_inverse=True)[1].astype(np.int64)
