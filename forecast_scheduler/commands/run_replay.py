"""The replay and the trajectory of a history directory, as `replay` and `demo` both run them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
from rich.table import Table

from autoscaling.autoscale_settings import CapacityOptions
from autoscaling.capacity.node_cost import GroupPrices
from autoscaling.capacity.nodes_needed import capacity
from base.progress import Progress
from forecast.fit import FitOptions, fit
from forecast.history import History
from forecast.resources import assumed_line
from forecast_scheduler.commands.policy.followed_policies import read_policies
from forecast_scheduler.reports.history_tables import rules_table
from forecast_scheduler.reports.table_format import titled_table
from forecast_scheduler.settings.document import Settings
from forecast_scheduler.settings.feature_options import scorer_options
from kube.client.cluster_access import CURRENT_CLUSTER
from rebalancer.rebalance_settings import RebalanceOptions
from rebalancer.trajectory.trajectories import (
    PLACEMENT_AND_MOVES,
    Trajectories,
    TrajectoryOptions,
    trajectories,
    trajectory_window,
)
from scorer.load_scale import percent
from scorer.replay.by_scorer import ScorerSetup
from scorer.replay.preparation import FitModel, Prepared, doubled_replicas, forecast_with
from scorer.replay.replay import Replay, replay
from scorer.replay.window import replay_window
from trainer.history.files import HistoryFiles


def replay_history(
    files: HistoryFiles,
    history: History,
    *,
    at: datetime | None,
    days: int,
    seed: int,
    hot: float,
    progress: Progress,
    setup: ScorerSetup | None = None,
    options: FitOptions | None = None,
) -> Replay:
    """Play the days after `at` back; models are fitted on what lay before it.

    at    : None = the last 04:00 that fits
    hot   : share of its capacity above which a node is hot
    setup : of the rule `configured`; None = without that rule
    options : of the fits; None = the defaults
    """
    window = replay_window(history, at, days)
    pods = files.pod_usage(window.days[0], window.days[-1], progress=progress)
    forecaster = forecast_with(lambda before: fit(before, options or FitOptions(), progress=progress))
    return replay(history, pods, forecaster, at=at, days=days, seed=seed, setup=setup, hot=hot, progress=progress)


def capacity_of(played: Replay, options: CapacityOptions, prices: GroupPrices, progress: Progress) -> dict[str, Any]:
    """Figures of the fewest nodes for the rules that bound what placement can save; nothing is read or fitted anew."""
    prepared = Prepared(played.window, played.recording, played.forecasts, played.attributed)
    rules = ("native", "forecast", "oracle")
    return capacity(prepared, options, seed=played.seed, prices=prices, rules=rules, progress=progress).to_json()


def replay_doubled(files: HistoryFiles, history: History, played: Replay, *, progress: Progress) -> Replay | None:
    """The same replay, but two hours before it a third of the services with a fixed replica count got twice as many.

    The model is the one of `played`, which knows nothing of it. Returns None if there is no such service.
    """
    window, recording, forecast = played.window, played.recording, played.forecasts["forecast"]
    fixed = np.flatnonzero(~forecast.autoscaled & ~recording.ending & (recording.replicas_at_start() > 0))
    model = forecast.model
    if model is None or not len(fixed):
        return None
    pods = files.pod_usage(window.days[0], window.days[-1], progress=progress)
    chosen = np.random.default_rng(played.seed).permutation(fixed)[: -(-len(fixed) // 3)]
    changed = doubled_replicas(history, pods, window, chosen)
    return replay(
        *changed,
        forecast_with(lambda _: model),
        days=window.n_days,
        seed=played.seed,
        ladder=False,
        hot=recording.hot,
        progress=progress,
    )


def configured_setup(settings: Settings) -> ScorerSetup | None:
    """What the settings say of weights, scores, capacities and policies; None = no more than the defaults.

    A ConfigMap of policies needs an API server, which a replay does without: it is not read.
    """
    usual = Settings()
    ours = (settings.scorer.scores, settings.policies, scorer_options(settings).capacities)
    others = (usual.scorer.scores, usual.policies, scorer_options(usual).capacities)
    if ours == others:
        return None
    provider = None if settings.policies.file is None else read_policies(settings, CURRENT_CLUSTER)
    return ScorerSetup(scorer_options(settings), provider)


def replay_tables(played: Replay) -> list[Table]:
    """The rules, with the gap that the forecast closed, and the rungs of the degradation ladder."""
    report = played.to_json()
    assumed = assumed_line(report["assumed_capacities"])
    note = assumed and f"\n{assumed}"
    return [
        rules_table(
            report["rules"],
            title=f"The same pods, placed by each rule, over the days that followed{note}",
            gap_closed=report["gap_closed"],
            no_gap=report["no_gap"],
            by_regression=report["by_regression"],
        ),
        rules_table(
            report["degradation"],
            title=(
                "What remains of it as parts fail (degradation ladder, best rung first). A few hot half hours more\n"
                "or less are chance, since few are left: the spread shows what an old model loses."
            ),
            by_regression=report["by_regression"],
        ),
    ]


def doubled_table(played: Replay) -> Table:
    """The rules on the pods of `replay_doubled`."""
    title = "What last week cannot know: at 02:00 some services got twice the replicas"
    return rules_table(played.to_json()["rules"], title=title)


def play_history(
    files: HistoryFiles,
    history: History,
    fit: FitModel,
    *,
    days: int,
    seed: int,
    options: TrajectoryOptions,
    rebalance: RebalanceOptions,
    hot: float,
    progress: Progress,
) -> Trajectories:
    """Play the last days of the history forward by every rule. fit: makes the models that the options ask for.

    hot : share of its capacity above which a node is hot
    """
    window = trajectory_window(history, days)
    pods = files.pod_usage(window.days[0], window.days[-1], progress=progress)
    return trajectories(
        history, pods, fit, days=days, seed=seed, options=options, rebalance=rebalance, hot=hot, progress=progress
    )


def trajectory_table(played: Trajectories) -> Table:
    """Hot share of the first, third and last day of each rule, and what its moves cost."""
    n_days = played.window.n_days
    shown = sorted({0, min(2, n_days - 1), n_days - 1})
    title = (
        f"From the recorded placement on {played.window.days[0]}, {n_days} days played forward\n"
        "Gain: hot half hours prevented by a move. Returns: to a node that the pod had left. In peak: moves 17:00-23:00"
    )
    heads = (f">hot day {day + 1}" for day in shown)
    table = titled_table(title, "rule", *heads, ">moves a day", ">gain", ">returns", ">in peak", wrap_first=False)
    for rule, figures in played.to_json()["rules"].items():
        each = figures["prevented_per_move"]
        table.add_row(
            rule,
            *(percent(figures["hot_share_by_day"][day], digits=2) for day in shown),
            f"{figures['moves'] / n_days:.1f}",
            "–" if each is None else f"{each:.2f}",
            str(figures["returns"]),
            str(figures["peak_window_moves"]),
            style="bold" if rule == PLACEMENT_AND_MOVES else None,
        )
    return table
