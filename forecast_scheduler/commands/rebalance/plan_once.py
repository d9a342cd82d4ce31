"""A plan from one look at a cluster, for `rebalance --plan`, and that plan on the terminal. Nothing is written."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo
from typing import Final

from rich.table import Table

from base.errors import InputError
from forecast_scheduler.commands.rebalance.open_planning import open_planning
from forecast_scheduler.commands.scorer.scorer_setup import Inputs
from forecast_scheduler.reports.table_format import Column, table_of
from forecast_scheduler.settings.document import Settings
from rebalancer.plan_forms import PlanWindow, RebalanceAnswer
from rebalancer.plan_maker import MadePlan

_SHOWN: Final = 50
_REASONS: Final = 8


def plan_once(settings: Settings, inputs: Inputs) -> MadePlan:
    """Return the plan for tonight, as the cluster is now. Raises InputError where there is no forecast."""
    with open_planning(settings, inputs) as planning:
        made = planning.maker.for_tonight()
    if made is None:
        raise InputError("there is no forecast to plan by: run `forecast-scheduler train`, and pass its --models")
    return made


def plan_table(answer: RebalanceAnswer) -> Table:
    """One row for each move, in their order."""
    columns = (
        Column(">#", lambda row: row[0]),
        Column("pod", lambda row: f"{row[1].namespace}/{row[1].pod}"),
        Column("from", lambda row: row[1].source),
        Column("to", lambda row: row[1].target),
        Column(">gain", lambda row: f"{row[1].gain:.1f}"),
        Column("why", lambda row: row[1].reason + " (a second replica starts first)" * row[1].by_surge),
    )
    return table_of(f"{len(answer.moves)} moves", columns, enumerate(answer.moves[:_SHOWN], start=1))


def plan_lines(answer: RebalanceAnswer, zone: tzinfo) -> Iterator[str]:
    """What the table does not say. zone: of the cluster"""
    if len(answer.moves) > _SHOWN:
        yield f"and {len(answer.moves) - _SHOWN} more moves: --json FILE has all"
    until = f"{answer.until.astimezone(zone):%a %H:%M}"
    yield (
        f"hot node half hours until {until}: {answer.hot_before} expected, {answer.hot_after} after the moves; "
        f"{answer.at_risk_before} by the upper bound, {answer.at_risk_after} after them"
    )
    gain = answer.heat_before - answer.heat_after
    if not answer.moves:
        yield _why_nothing(answer)
    else:
        yield (
            f"heat {answer.heat_before:.1f} -> {answer.heat_after:.1f}, {gain:.1f} less; "
            f"no plan within the budget saves more than {answer.most_gain:.1f}"
        )
    windows = ", ".join(_words(one, zone) for one in answer.windows) or "none"
    yield f"windows for moves: {windows} ({answer.windows_because})"
    kept = sum(answer.kept.values())
    if kept:
        most = list(answer.kept.items())[:_REASONS]
        yield f"{kept} of {answer.n_pods} pods may not be moved: {'; '.join(f'{n}: {why}' for why, n in most)}"


def _why_nothing(answer: RebalanceAnswer) -> str:
    if answer.heat_before <= 0:
        return "no node is expected near its limits: there is nothing to mend"
    if answer.most_gain <= 0:
        return "no move within the budget helps: all pods of the nodes in question must stay"
    return (
        f"no move is worth its cost: all plans together gain at most {answer.most_gain:.1f} of "
        f"{answer.heat_before:.1f} node half hours of heat"
    )


def _words(window: PlanWindow, zone: tzinfo) -> str:
    return f"{window.begin.astimezone(zone):%a %H:%M} to {window.end.astimezone(zone):%H:%M}"
