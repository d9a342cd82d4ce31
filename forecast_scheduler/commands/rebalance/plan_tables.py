"""A plan of moves on the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo
from typing import Final

from rich.table import Table

from forecast_scheduler.reports.table_format import plain, titled_table
from rebalancer.answers import PlanWindow, RebalanceAnswer

_SHOWN: Final = 50
_REASONS: Final = 8


def plan_table(answer: RebalanceAnswer) -> Table:
    """One row for each move, in their order."""
    table = titled_table(f"{len(answer.moves)} moves", ">#", "pod", "from", "to", ">gain", "why")
    for number, move in enumerate(answer.moves[:_SHOWN], start=1):
        how = " (a second replica starts first)" if move.by_surge else ""
        table.add_row(
            str(number),
            plain(f"{move.namespace}/{move.pod}"),
            plain(move.source),
            plain(move.target),
            f"{move.gain:.1f}",
            plain(f"{move.reason}{how}"),
        )
    return table


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
