"""What `doctor` found, on the terminal, from the dictionary that `doctor --json` writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table

from forecast.resources import RESOURCES
from forecast_scheduler.reports.table_format import percent, printable, titled_table


def summary_lines(figures: Mapping[str, Any]) -> Iterator[str]:
    """What was looked at."""
    yield (
        f"{figures['days']} days ({figures['first_day']} to {figures['last_day']}, {figures['time_zone']}), "
        f"{figures['services']:,} services, {figures['nodes']:,} nodes: {len(figures['findings'])} findings"
    )


def findings_table(figures: Mapping[str, Any]) -> Table:
    """A row for each finding, with the share of the load that it touches."""
    names = [resource.name for resource in RESOURCES]
    table = titled_table(
        "Share of the load that each finding touches", "finding", ">services", ">nodes", wrap_first=False
    )
    for name in names:
        table.add_column(name, justify="right")
    for one in figures["findings"]:
        counts = [f"{count:,}" if count else "" for count in (one["services"], one["nodes"])]
        shares = one["load_share"]
        table.add_row(
            one["finding"], *counts, *("" if shares[name] == 0 else percent(shares[name], digits=1) for name in names)
        )
    return table


def finding_lines(figures: Mapping[str, Any]) -> Iterator[str]:
    """Each finding in words, with its largest examples and the way out."""
    for one in figures["findings"]:
        yield ""
        yield f"{one['finding']}: {printable(one['what'])}"
        for worst in one["worst"]:
            share = percent(worst["load_share"], digits=1)
            yield f"    {printable(worst['name'])}: {share} of {worst['resource']}, {worst['detail']}"
        yield f"    -> {one['what_to_do']}"
    yield ""
    if figures["not_found"]:
        yield f"looked for and not found: {', '.join(figures['not_found'])}"
    if figures["not_judged"]:
        named = ", ".join(f"{one['finding']} ({one['days_needed']} days)" for one in figures["not_judged"])
        yield f"not judged, the history is too short: {named}"
