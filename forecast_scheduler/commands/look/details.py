"""Tables that a screen has no room for: what `look --html`, `-o csv` and `-o markdown` have beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from rich.table import Table

from forecast_scheduler.commands.look.screen import head, help_rows, lines_table, nodes_table, not_known_rows
from forecast_scheduler.commands.rebalance.plan_once import plan_table
from forecast_scheduler.reports.history_tables import nodes_table as capacity_table
from forecast_scheduler.reports.request_tables import request_table
from forecast_scheduler.reports.table_format import Column, table_of
from rebalancer.plan_forms import RebalanceAnswer

_FINDINGS = (Column("finding"), Column("what"), Column("what to do", "what_to_do"))


def detail_tables(figures: Mapping[str, Any]) -> Iterator[Table]:
    """Yield the moves, services and rules behind the figures of a look, as their own commands show them."""
    if (moves := figures["moves"]) is not None and moves["moves"]:
        yield plan_table(msgspec.convert(moves, RebalanceAnswer))
    if figures["requests"] is not None:
        yield request_table(figures["requests"])
    if figures["capacity"] is not None:
        yield capacity_table(figures["capacity"])


def in_full(figures: Mapping[str, Any]) -> Iterator[Table | str]:
    """Yield all that was found, for other programs: no row is left out for want of room."""
    yield from head(figures)
    for section, title in (("tonight", "Tonight"), ("week", "The week")):
        if figures[section] is not None:
            yield nodes_table(title, figures[section]["nodes"], figures)
    yield lines_table("What would help", help_rows(figures))
    yield from detail_tables(figures)
    yield from (f"{name}: {why}" for name, why in not_known_rows(figures))
    if figures["doctor"] is not None:
        yield table_of("What is uncertain", _FINDINGS, figures["doctor"]["findings"])
    yield from figures["remarks"]
    for one in figures["next"]:
        yield f"{one['why']}: {one['command']}"
