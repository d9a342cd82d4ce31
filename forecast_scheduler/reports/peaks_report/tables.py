"""The peaks for the terminal, from the same dictionary that `--json` writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from rich.table import Table

from forecast.resources import RESOURCES
from forecast_scheduler.reports.table_format import percent, titled_table
from trainer.amounts import amount

_ROWS = 10


def hottest_table(peaks: Mapping[str, Any]) -> Table:
    """The nodes that come closest to a capacity on the coming day."""
    units = {resource.name: resource.unit for resource in RESOURCES}
    columns = ("node", "resource", "at", ">peak", ">0.95 bound", ">of capacity", ">bound")
    table = titled_table(f"Hottest nodes on {peaks['coming']['day']}", *columns)
    for node in peaks["coming"]["hottest"][:_ROWS]:
        amounts = (amount(node[name], units[node["resource"]]) for name in ("expected", "bound"))
        shares = (percent(node[name]) for name in ("share", "bound_share"))
        table.add_row(node["node"], node["resource"], node["at"], *amounts, *shares)
    return table


def peak_notes(peaks: Mapping[str, Any]) -> list[str]:
    """What past forecasts were, and how they did."""
    origins = Counter(day["origin"] for day in peaks["days"])
    lines = [f"past {len(peaks['days'])} days: " + ", ".join(f"{n} {origin}" for origin, n in origins.items())]
    judged = [day for day in peaks["days"] if "coverage" in day]
    for resource in RESOURCES:
        days = [day for day in judged if resource.name in day["coverage"]]
        n = sum(day["node_days"][resource.name] for day in days)
        if not n:
            continue
        held = sum(day["coverage"][resource.name] * day["node_days"][resource.name] for day in days) / n
        errors = [day["error"][resource.name] for day in days if resource.name in day["error"]]
        error = f", error {100 * sum(errors) / len(errors):.1f} % of capacity" if errors else ""
        lines.append(f"{resource.name}: {100 * held:.1f} % of {n:,} node-days within the 0.95 bound{error}")
    return lines
