"""The report on decisions as one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from typing import Any

from base.html_report import html_report
from forecast_scheduler.reports.decisions_tables import (
    AGREEMENT_HEADER,
    PODS,
    agreement_rows,
    comparison_notes,
    figure_rows,
)


def decisions_page(figures: Mapping[str, Any]) -> str:
    """One HTML page from the figures that `--json` writes; it needs no other file."""
    values = decision_values(figures)
    return html_report("forecast_scheduler/reports/decisions.html.j2", title="Decisions", plotly="", **values)


def decision_values(figures: Mapping[str, Any]) -> dict[str, Any]:
    """What decision_sections.html.j2 shows, also as a part of another page."""
    decisions, placements = figures["decisions"], figures.get("placements")
    return {
        "decisions": {
            "count": f"{decisions['all']['decisions']:,}",
            "first": decisions["first"],
            "last": decisions["last"],
            "header": AGREEMENT_HEADER,
            "rows": agreement_rows(decisions),
        },
        "placements": None if placements is None else _placements(placements),
    }


def _placements(placements: Mapping[str, Any]) -> dict[str, Any]:
    first, last = placements["days"]
    days = zip(placements["real"]["daily_hot_share"], placements["shadow"]["daily_hot_share"], strict=True)
    begin = date.fromisoformat(first)
    header, rows = figure_rows(placements)
    return {
        "tiles": list(_tiles(placements["real"], placements["shadow"])),
        "first": first,
        "last": last,
        "header": header,
        "rows": rows,
        "by_day": [
            (f"{begin + timedelta(days=n):%a %d %b}", f"{was:.2%}", f"{now:.2%}") for n, (was, now) in enumerate(days)
        ],
        "notes": comparison_notes(placements)[-1],
        "pods": [(PODS[key], f"{count:,}") for key, count in placements["pods"].items()],
    }


def _tiles(real: Mapping[str, Any], shadow: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    yield "node half hours that are hot", f"{real['hot_share']:.2%}", f"{shadow['hot_share']:.2%}"
    for title, name, form in (
        ("spread of the nodes' CPU peaks", "peak_cv", "{:.3f}"),
        ("highest CPU peak", "max_peak", "{:.0%}"),
    ):
        if "cpu" in real[name] and "cpu" in shadow[name]:
            yield title, form.format(real[name]["cpu"]), form.format(shadow[name]["cpu"])
