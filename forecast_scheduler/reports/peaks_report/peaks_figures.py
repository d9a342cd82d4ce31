"""The figures of the page as plain values, for `--json`, for the page itself, and as tables for the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from rich.table import Table

from base.arrays import AnyFloats
from forecast.resources import RESOURCES
from forecast_scheduler.reports.peaks_report.day_figures import HotNode
from forecast_scheduler.reports.peaks_report.peaks_view import PeaksView
from forecast_scheduler.reports.table_format import titled_table
from scorer.load_scale import percent
from trainer.amounts import amount

_LISTED = 1000
"""Nodes of the coming day that are listed, the hottest first."""

_ROWS = 10


def figures_json(view: PeaksView) -> dict[str, Any]:
    """Everything but the curves. NaN stays NaN: `write_figures` makes it null."""
    history = view.history
    return {
        "history": {
            "first_day": history.days[0].isoformat(),
            "last_day": history.days[-1].isoformat(),
            "nodes": len(history.nodes),
            "services": len(history.services),
            "time_zone": history.calendar.time_zone,
        },
        "coming": {
            "day": view.coming.isoformat(),
            "model": view.model.version,
            "lead_days": view.model.lead_days,
            "nodes_predicted": len(view.hottest),
            "hottest": [_hot(view, node) for node in view.hottest[:_LISTED]],
        },
        "days": [_day(view, index) for index in range(len(view.days))],
        "service_days": [score.to_json() for score in view.service_scores],
        "nodes_by_day": [
            {
                "day": day.isoformat(),
                "hot_share": float(view.spread.hot[index]),
                "peak_cv": _by_resource(view.spread.variation[:, index]),
            }
            for index, day in enumerate(history.days)
        ],
        "adopted": None if view.adopted is None else view.adopted.isoformat(),
        "adoption": _adoption(view),
        "drawn": {
            "nodes": len(view.nodes.chosen),
            "services": len(view.services.chosen),
            "nodes_left_out": len(history.nodes) - len(view.nodes.chosen),
            "services_left_out": len(history.services) - len(view.services.chosen),
        },
    }


def _hot(view: PeaksView, node: HotNode) -> dict[str, Any]:
    return {
        "node": view.history.nodes[node.node],
        "resource": RESOURCES[node.resource].name,
        "at": node.at.isoformat("minutes"),
        "expected": node.expected,
        "bound": node.bound,
        "capacity": node.capacity,
        "share": node.share,
        "bound_share": node.bound / node.capacity,
    }


def _day(view: PeaksView, index: int) -> dict[str, Any]:
    forecast, score = view.forecasts[index], view.scores.get(view.days[index])
    facts: dict[str, Any] = {
        "day": forecast.day.isoformat(),
        "origin": forecast.origin.value,
        "version": forecast.version,
        "lead_days": forecast.lead_days,
    }
    if score is not None:
        facts |= {
            "error": _by_resource(score.error),
            "bias": _by_resource(score.bias),
            "coverage": _by_resource(score.coverage),
            "node_days": {r.name: int(n) for r, n in zip(RESOURCES, score.n_nodes, strict=True) if n},
            "left_out": score.left_out,
        }
    return facts


def _adoption(view: PeaksView) -> dict[str, Any] | None:
    """Means of the days before the adoption and of those after it, the day itself left out; None = not known."""
    if view.adopted is None:
        return None
    days = np.array(view.history.days)
    means = {}
    for name, chosen in (("before", days < view.adopted), ("after", days > view.adopted)):
        variation, hot = view.spread.variation[:, chosen], view.spread.hot[chosen]
        means[name] = {
            "days": int(chosen.sum()),
            "hot_share": float(hot[np.isfinite(hot)].mean()) if np.isfinite(hot).any() else float("nan"),
            "peak_cv": {
                r.name: float(row[np.isfinite(row)].mean())
                for r, row in zip(RESOURCES, variation, strict=True)
                if np.isfinite(row).any()
            },
        }
    return means


def _by_resource(values: AnyFloats) -> dict[str, float]:
    """Those that are known."""
    return {r.name: float(value) for r, value in zip(RESOURCES, values, strict=True) if np.isfinite(value)}


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
