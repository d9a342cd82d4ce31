"""The trajectory of a history directory, as `replay --trajectory` and `demo` both run it."""

from __future__ import annotations

from rich.table import Table

from base.progress import Progress
from forecast.history import History
from forecast_scheduler.reports.table_format import percent, titled_table
from rebalancer.options import RebalanceOptions
from rebalancer.trajectory.options import TrajectoryOptions
from rebalancer.trajectory.trajectories import PLACEMENT_AND_MOVES, Trajectories, trajectories, trajectory_window
from scorer.replay.preparation import FitModel
from trainer.history.files import HistoryFiles


def play_history(
    files: HistoryFiles,
    history: History,
    fit: FitModel,
    *,
    days: int,
    seed: int,
    options: TrajectoryOptions,
    rebalance: RebalanceOptions,
    progress: Progress,
) -> Trajectories:
    """Play the last days of the history forward by every rule. fit: makes the models that the options ask for."""
    window = trajectory_window(history, days)
    pods = files.pod_usage(window.days[0], window.days[-1], progress=progress)
    return trajectories(
        history, pods, fit, days=days, seed=seed, options=options, rebalance=rebalance, progress=progress
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
