"""`capacity`: how many nodes do your own pods need?"""

from __future__ import annotations

from typing import Annotated

import typer

from base.errors import InputError
from forecast_scheduler.commands.command_options import (
    ConfigOption,
    HistoryOption,
    JsonOption,
    ReportOption,
    SeedOption,
    VerboseOption,
    parse_moment,
)
from forecast_scheduler.commands.replay_command import AtOption, DaysOption
from forecast_scheduler.commands.shell import check_writable, open_shell, write_figures

TargetOption = Annotated[
    float | None,
    typer.Option(
        "--target",
        metavar="SHARE",
        min=0,
        max=0.99,
        help="Share of node half hours that may be hot. Default: 0.001, or the settings.",
    ),
]
GroupOption = Annotated[
    str | None,
    typer.Option("--group", metavar="NAME", help="Nodes of this group alone; the table names the groups."),
]
PriceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--price",
        metavar="GROUP=PRICE",
        help="Price of a node of a group for an hour, once for each group, before the settings. Each rule then "
        "has the cheapest of the recorded proportion and each group alone.",
    ),
]
ComingOption = Annotated[
    bool,
    typer.Option("--coming", help="The days after the history, as the model expects them, in place of recorded ones."),
]
LoseNodesOption = Annotated[
    int | None,
    typer.Option("--lose-nodes", metavar="N", min=1, help="Keep a reserve: N nodes fail in the busiest hour."),
]
LoseZoneOption = Annotated[
    int | None,
    typer.Option(
        "--lose-zone",
        metavar="ZONES",
        min=2,
        help="Keep a reserve: of so many zones of equal size, one fails in the busiest hour.",
    ),
]

PromiseOption = Annotated[
    str | None,
    typer.Option(
        "--promise",
        metavar="DIR-or-URL",
        help="Keep what the forecast saves with the models there: each nightly report holds it against what came.",
    ),
]


def capacity(
    history: HistoryOption = None,
    target: TargetOption = None,
    json: JsonOption = None,
    report: ReportOption = None,
    at: AtOption = None,
    days: DaysOption = None,
    coming: ComingOption = False,
    seed: SeedOption = None,
    group: GroupOption = None,
    price: PriceOption = None,
    lose_nodes: LoseNodesOption = None,
    lose_zone: LoseZoneOption = None,
    promise: PromiseOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Search the fewest nodes on which your own pods, placed by each rule, would have stayed under a hot share.

    All pods are placed anew on more or fewer nodes, and the real days are played back, as `replay` does. Nodes come
    from the shapes that were recorded.
    """
    shell = open_shell(config, verbose=verbose, json_file=json)
    check_writable(json)
    check_writable(report)
    directory, moment, given = shell.history(history), parse_moment(at), parse_prices(price or [])
    if lose_nodes is not None and lose_zone is not None:
        raise InputError("--lose-nodes and --lose-zone are two kinds of failure: choose one")
    if coming and moment is not None:
        raise InputError("--coming begins where the history ends: leave --at out")
    from autoscaling.capacity.coming_week import playable_coming_days
    from autoscaling.capacity.failure import NodeLoss
    from autoscaling.capacity.nodes_needed import capacity as search
    from forecast_scheduler.commands.fitted_history import fit_options, prepare_coming_week, prepare_history
    from forecast_scheduler.commands.history_directory import open_history, tell_what_was_cleaned
    from forecast_scheduler.commands.node_prices import read_price_sources
    from forecast_scheduler.reports.history_tables import capacity_lines, capacity_tables
    from scorer.replay.window import playable_days

    replay, hot = shell.settings.replay, shell.settings.hot_share
    options = shell.settings.capacity if target is None else shell.settings.capacity.replace(target=target)
    failure = None if lose_nodes is None and lose_zone is None else NodeLoss(lose_nodes or 0, lose_zone or 0)
    sources = read_price_sources(shell.settings.prices, given=given)
    with shell.progress() as progress:
        files = open_history(shell.settings, directory, progress)
        known = files.history(progress=progress)
        n_days = days or (playable_coming_days if coming else playable_days)(known, replay.days)
        fitting = fit_options(shell.settings)
        prepared = (
            prepare_coming_week(files, known, fitting, days=n_days, hot=hot, progress=progress)
            if coming
            else prepare_history(files, known, fitting, at=moment, days=n_days, hot=hot, progress=progress)
        )
        found = search(
            prepared,
            options,
            seed=replay.seed if seed is None else seed,
            group=group,
            prices=sources.price_groups(known, prepared.recording),
            cheapest=bool(given),
            failure=failure,
            progress=progress,
        )
    tell_what_was_cleaned(shell, files)
    figures = found.to_json()
    shell.show(capacity_tables(figures), capacity_lines(figures))
    write_figures(json, figures)
    if promise is not None:
        from datetime import UTC, datetime

        from base.object_store import open_store
        from forecast_scheduler.commands.promised_savings import promise_of
        from trainer.promised_saving import keep_promise

        kept = keep_promise(open_store(promise), promise_of(found, datetime.now(UTC)))
        shell.say(f"promised saving: {kept} at {promise}")
    if report is not None:
        from autoscaling.capacity.capacity_page import capacity_page

        shell.write_report(report, capacity_page(found, known.calendar.time_zone))


def parse_prices(texts: list[str]) -> dict[str, float]:
    """Prices of an hour by group, from GROUP=PRICE. Raises InputError."""
    prices: dict[str, float] = {}
    for text in texts:
        name, _, price = text.rpartition("=")
        try:
            prices[name.strip()] = float(price)
        except ValueError:
            prices[name.strip()] = -1.0
        if not name.strip() or not 0 <= prices[name.strip()] < float("inf"):
            raise InputError(
                f"--price {text!r} is no price: write GROUP=PRICE, for instance --price '8 cores, 32 GiB=0.4'"
            )
    return prices
