"""`replay`: what would have happened, had the pods been placed or moved otherwise?"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from base.errors import InputError
from forecast_scheduler.commands.command_options import (
    ConfigOption,
    EventsOption,
    HistoryOption,
    JsonOption,
    MovedOption,
    ReportOption,
    SeedOption,
    VerboseOption,
    parse_moment,
)
from forecast_scheduler.commands.shell import Shell, check_writable, open_shell, write_figures

AtOption = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="TIME",
        help="When the pods are placed: 2026-11-14T04:00, local time of the history unless it has an offset. "
        "Default: the last 04:00 that leaves enough days.",
    ),
]
DaysOption = Annotated[int | None, typer.Option("--days", metavar="N", min=1, max=14, help="Days to play back.")]

TrajectoryOption = Annotated[
    bool,
    typer.Option(
        "--trajectory",
        help="Start from the recorded placement; compare placing by the forecast, moves, and both.",
    ),
]
ReleaseOption = Annotated[
    float | None,
    typer.Option(
        "--release",
        metavar="SHARE",
        min=0,
        max=1,
        help="With --trajectory: services released each day, too.",
    ),
]
BudgetOption = Annotated[
    float | None,
    typer.Option(
        "--budget",
        metavar="SHARE",
        min=0,
        max=1,
        help="With --trajectory: pods that a plan may move per night.",
    ),
]
CapacityOption = Annotated[
    bool,
    typer.Option(
        "--capacity",
        help="Search the fewest nodes, too, by requests, by the forecast and by the true future (see `capacity`).",
    ),
]


def replay(
    history: HistoryOption = None,
    events: EventsOption = None,
    moved: MovedOption = None,
    json: JsonOption = None,
    report: ReportOption = None,
    at: AtOption = None,
    days: DaysOption = None,
    seed: SeedOption = None,
    trajectory: TrajectoryOption = False,
    release: ReleaseOption = None,
    budget: BudgetOption = None,
    capacity: CapacityOption = False,
    config: ConfigOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Place your own pods anew by each rule, play the real days back, and count the nodes that run hot.

    The forecast is trained only on what lay before the placement. If --config changes scores, capacities or policies,
    one more rule, `configured`, places by them. With --trajectory, pods stay where they were recorded until they are
    released, or moved by a rule.
    """
    shell = open_shell(config, verbose=verbose, json_file=json).with_files(events=events, moved=moved)
    check_writable(json)
    check_writable(report)
    directory = shell.history(history)
    moment = parse_moment(at)
    defaults = shell.settings.replay
    seed = seed if seed is not None else defaults.seed
    if not trajectory:
        for name, value in (("--release", release), ("--budget", budget)):
            if value is not None:
                raise InputError(f"{name} is of trajectories: add --trajectory, or leave it out")
        _place_anew(shell, directory, moment, days, seed, capacity, json, report)
        return
    if capacity:
        raise InputError(
            "--capacity does not go with --trajectory, which moves pods on the recorded nodes: leave it out"
        )
    if moment is not None:
        raise InputError("--at does not go with --trajectory, which plays the last whole days: leave it out")
    _play_forward(shell, directory, days, seed, release, budget, json, report)


def _place_anew(
    shell: Shell,
    directory: Path,
    moment: datetime | None,
    days: int | None,
    seed: int,
    capacity: bool,
    json: Path | None,
    report: Path | None,
) -> None:
    from forecast_scheduler.commands.fitted_history import fit_options
    from forecast_scheduler.commands.history_directory import open_history, tell_what_was_cleaned
    from forecast_scheduler.commands.node_prices import read_price_sources
    from forecast_scheduler.commands.run_replay import (
        capacity_of,
        configured_setup,
        replay_history,
        replay_tables,
    )
    from forecast_scheduler.reports.history_tables import nodes_table, window_lines
    from forecast_scheduler.reports.money import NODES_STAY, capacity_money_lines, money_lines
    from scorer.replay.window import playable_days

    sources = read_price_sources(shell.settings.prices)
    with shell.progress() as progress:
        files = open_history(shell.settings, directory, progress)
        known = files.history(progress=progress)
        played = replay_history(
            files,
            known,
            at=moment,
            days=days or playable_days(known, shell.settings.replay.days),
            seed=seed,
            hot=shell.settings.hot_share,
            setup=configured_setup(shell.settings),
            options=fit_options(shell.settings),
            progress=progress,
        )
        prices = sources.price_groups(known, played.recording)
        needed = capacity_of(played, shell.settings.capacity, prices, progress) if capacity else None
    tell_what_was_cleaned(shell, files)
    shell.show(replay_tables(played))
    if needed is not None:
        shell.show(nodes_table(needed), capacity_money_lines(needed))
    else:
        shell.show(money_lines(prices.recorded.to_json(), NODES_STAY))
    shell.show(window_lines(played.window.to_json()))
    figures = {**played.to_json(), "money": prices.recorded.to_json()}
    write_figures(json, figures if needed is None else {**figures, "capacity": needed})
    if report is not None:
        from scorer.replay.replay_page import replay_page

        shell.write_report(report, replay_page(played, known))


def _play_forward(
    shell: Shell,
    directory: Path,
    days: int | None,
    seed: int,
    release: float | None,
    budget: float | None,
    json: Path | None,
    report: Path | None,
) -> None:
    from forecast.fit import fit
    from forecast_scheduler.commands.fitted_history import fit_options
    from forecast_scheduler.commands.history_directory import open_history, tell_what_was_cleaned
    from forecast_scheduler.commands.run_replay import play_history, trajectory_table
    from forecast_scheduler.reports.history_tables import window_lines
    from rebalancer.trajectory.trajectories import TrajectoryOptions
    from scorer.replay.window import playable_days

    rebalance = shell.settings.rebalance
    if budget is not None:
        rebalance = rebalance.replace(budget=rebalance.budget.replace(share=budget))
    with shell.progress() as progress:
        files = open_history(shell.settings, directory, progress)
        known = files.history(progress=progress)
        played = play_history(
            files,
            known,
            lambda before: fit(before, fit_options(shell.settings), progress=progress),
            days=days or playable_days(known, shell.settings.replay.days),
            seed=seed,
            options=TrajectoryOptions(release=release or 0.0),
            rebalance=rebalance,
            hot=shell.settings.hot_share,
            progress=progress,
        )
    tell_what_was_cleaned(shell, files)
    shell.show(trajectory_table(played))
    shell.show(window_lines(played.window.to_json()))
    write_figures(json, played.to_json())
    if report is not None:
        from rebalancer.trajectory.trajectory_page import trajectory_page

        shell.write_report(report, trajectory_page(played, known))
