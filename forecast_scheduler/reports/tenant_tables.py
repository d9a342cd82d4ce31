"""Tenants as tables for the terminal, from the same dictionary that `--json` writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from rich.table import Table
from rich.text import Text

from forecast_scheduler.reports.table_format import UNKNOWN, titled_table
from tenants.words import in_short

Tenants = Mapping[str, Any]

_COLUMNS = ("used", "waiting", "borrowed", "lent", "owed", "may_borrow")
_HOURS_OF_TABLE = 8


def tenant_tables(found: Tenants, hours: int) -> Iterator[Table]:
    """What tenants have now; with `hours`, what they are expected to need and lend by hour."""
    if found["tenants"]:
        yield _now(found["tenants"])
    if hours and found["from_hour"]:
        first = datetime.fromisoformat(found["from_hour"])
        for start in range(0, hours, _HOURS_OF_TABLE):
            yield _by_hour(found["tenants"], first, range(start, min(start + _HOURS_OF_TABLE, hours)))


def tenant_lines(found: Tenants) -> Iterator[str]:
    """What no table says."""
    if not found["tenants"]:
        yield "there is no such tenant: no ElasticQuota is installed, or none is meant"
    elif not found["from_hour"]:
        yield "there is no forecast: all that is idle is lent"
    yield from found["problems"]


def _now(tenants: Sequence[Tenants]) -> Table:
    table = titled_table(
        "Tenants",
        "tenant",
        "part of",
        ">pods",
        ">wait",
        "resource",
        ">min",
        ">max",
        *(f">{name.replace('_', ' ')}" for name in _COLUMNS),
        wrap_first=False,
    )
    for one in tenants:
        for at, it in enumerate(one["resources"]):
            named = (Text(one["tenant"]), Text(one["parent"] or ""), str(one["pods"]), str(one["waiting_pods"]))
            table.add_row(
                *(named if not at else ("", "", "", "")),
                Text(it["resource"]),
                in_short(it["resource"], it["min"]),
                UNKNOWN if it["max"] is None else in_short(it["resource"], it["max"]),
                *(in_short(it["resource"], it[name]) for name in _COLUMNS),
            )
    return table


def _by_hour(tenants: Sequence[Tenants], first: datetime, hours: range) -> Table:
    columns = (f">{first + timedelta(hours=hour):%H:%M}" for hour in hours)
    table = titled_table("Expected need (lent)", "tenant", "resource", ">min", *columns, wrap_first=False)
    for one in tenants:
        for at, it in enumerate(one["resources"]):
            name = it["resource"]
            cells = [
                f"{in_short(name, it['expected'][hour])} ({in_short(name, it['will_lend'][hour])})"
                for hour in hours
                if hour < len(it["expected"])
            ]
            table.add_row(Text("" if at else one["tenant"]), Text(name), in_short(name, it["min"]), *cells)
    return table
