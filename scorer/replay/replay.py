"""A replay from beginning to end: every rule on the same pods, in the same order, over the same days.

Who may know what (a test changes the future and sees that only the oracle's placements change):

    native, live     requests; usage up to the half hour before
    last_week        the seven days before the placement
    forecast         a model fitted on the whole local days before the day of the placement
    configured       the same model, with the user's weights, capacities and policies; left out unless asked for
    oracle           what really came
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from base.arrays import Floats
from base.progress import Progress, silent
from forecast.history import History, PodUsage
from scorer.replay.by_scorer import ByScorer, ScorerSetup
from scorer.replay.curves import CurveForecast
from scorer.replay.preparation import Forecaster, Prepared, by_curves, forecast_from, named_rule, prepare, ties
from scorer.replay.recording import Attribution, Recording
from scorer.replay.replay_figures import RuleFigures, bound_coverage, figures_of, gap_closed, no_gap, shares
from scorer.replay.replay_rules import ReplayRule, RequestsAvoidingFull
from scorer.replay.running_cluster import Playback, play
from scorer.replay.window import ReplayWindow

RULES: Final = ("native", "live", "last_week", "forecast", "oracle")

CONFIGURED: Final = "configured"
"""Name of the rule that places as the user has set the scorer up; its figures stand before those of the oracle."""

STALE_DAYS = (7, 14)

LADDER = (
    "forecast",
    "without_live_correction",
    *(f"model_{age}_days_old" for age in STALE_DAYS),
    "requests_avoiding_full_nodes",
    "neutral",
)
"""Rungs of the degradation ladder, best first. Neutral: our score says nothing, so kube-scheduler's decide: native."""

_LEAST_DAYS_TO_FIT = 7


@dataclass(frozen=True, slots=True)
class Replay:
    """Figures and placements of every rule.

    figures   : rule -> figures, in the order of RULES, and CONFIGURED if it was asked for
    ladder    : rung of the degradation ladder -> figures; rungs the history is too short for are absent
    playbacks : rule or rung -> which node each pod of `recording` went to
    forecasts : rule -> curves it placed by
    attributed: resource -> what moves by regression, of resources that some pods are not measured for
    """

    window: ReplayWindow
    seed: int
    recording: Recording
    figures: dict[str, RuleFigures]
    ladder: dict[str, RuleFigures]
    playbacks: dict[str, Playback]
    forecasts: dict[str, CurveForecast]
    attributed: Mapping[str, Attribution]

    def gap_closed(self) -> dict[str, Any]:
        """How far the forecast came on the way from native to the true future (report.gap_closed)."""
        return gap_closed(self.figures["native"], self.figures["forecast"], self.figures["oracle"])

    def no_gap(self) -> dict[str, Any]:
        """Why a figure has no gap to close (report.no_gap)."""
        return no_gap(self.figures["native"], self.figures["forecast"], self.figures["oracle"])

    def node_shares(self, rule: str) -> Floats:
        """What the nodes would have used, as share of capacity: (n_nodes, n_resources, n_slots), NaN = no limit."""
        return shares(self.playbacks[rule].node_load(self.recording), self.recording.capacity)

    def to_json(self) -> dict[str, Any]:
        return {
            "rules": {name: figures.to_json() for name, figures in self.figures.items()},
            "gap_closed": self.gap_closed(),
            "no_gap": self.no_gap(),
            "by_regression": {name: figures.to_json() for name, figures in self.attributed.items()},
            "degradation": {name: figures.to_json() for name, figures in self.ladder.items()},
            "window": self.window.to_json(),
            "assumed_capacities": self.recording.assumed_names(),
            "seed": self.seed,
            "pods_at_start": int((self.recording.birth == 0).sum()),
            "pods_born_later": int((self.recording.birth > 0).sum()),
            "nodes": self.recording.n_nodes,
        }


def replay(
    history: History,
    pod_usage: PodUsage,
    forecaster: Forecaster,
    *,
    at: datetime | None = None,
    days: int = 7,
    seed: int = 0,
    ladder: bool = True,
    setup: ScorerSetup | None = None,
    hot: float,
    progress: Progress = silent,
) -> Replay:
    """Place the pods by every rule and play the days back.

    history   : all of it; what a rule may know is cut out here
    pod_usage : single pods, at least of the days of `replay_window(history, at, days)`
    forecaster: `forecast_with(fit)`; called once for each age of model
    at, days  : see replay_window
    ladder    : whether to measure the degradation ladder too (as many placements again)
    setup     : of the rule `configured`; None, or a forecast without a model = the rule is left out
    hot       : share of its capacity above which a node is hot
    """
    prepared = prepare(history, pod_usage, forecaster, at=at, days=days, hot=hot)
    window, recording, forecasts = prepared.window, prepared.recording, prepared.forecasts
    fresh = forecasts["forecast"]
    run = _Run(recording, seed, progress)
    figures = {name: run.named(name, forecasts) for name in RULES if name != "oracle"}
    if setup is not None and fresh.model is not None:
        rule = ByScorer(setup, fresh.model, history, window, recording)
        figures[CONFIGURED] = run.figures(CONFIGURED, rule)
    figures["oracle"] = run.named("oracle", forecasts)
    rungs = {"forecast": figures["forecast"]}
    if ladder:
        rungs["without_live_correction"] = run.figures(
            "without_live_correction", by_curves(recording, fresh, live_correction=False), fresh
        )
        for age in STALE_DAYS:
            if window.first_day - age >= _LEAST_DAYS_TO_FIT:
                stale = forecast_from(history, window, recording, forecaster, age=age)
                name = f"model_{age}_days_old"
                rungs[name] = run.figures(name, by_curves(recording, stale), stale)
        rungs["requests_avoiding_full_nodes"] = run.figures(
            "requests_avoiding_full_nodes", RequestsAvoidingFull(ties(seed))
        )
        rungs["neutral"] = figures["native"]
    return Replay(window, seed, recording, figures, rungs, run.playbacks, dict(forecasts), prepared.attributed)


def figures_of_rules(
    prepared: Prepared, rules: Sequence[str], *, seed: int = 0, progress: Progress = silent
) -> dict[str, RuleFigures]:
    """Figures of some of RULES on what has been prepared, by rule: those that `replay` has of them."""
    run = _Run(prepared.recording, seed, progress)
    return {name: run.named(name, prepared.forecasts) for name in rules}


class _Run:
    """Plays rules on one recording and keeps where the pods went."""

    def __init__(self, recording: Recording, seed: int, progress: Progress) -> None:
        self._recording, self._seed, self._progress = recording, seed, progress
        self.playbacks: dict[str, Playback] = {}

    def named(self, name: str, forecasts: Mapping[str, CurveForecast]) -> RuleFigures:
        """Figures of one of RULES."""
        rule = named_rule(name, self._recording, forecasts, self._seed)
        return self.figures(name, rule, forecasts.get(name))

    def figures(self, name: str, rule: ReplayRule, forecast: CurveForecast | None = None) -> RuleFigures:
        playback = play(self._recording, rule, seed=self._seed, progress=self._progress, stage=f"replay: {name}")
        self.playbacks[name] = playback
        share = shares(playback.node_load(self._recording), self._recording.capacity)
        coverage = {} if forecast is None else bound_coverage(self._recording, playback, forecast)
        return figures_of(share, playback.unplaced, coverage, self._recording.hot, self._recording.assumed)
