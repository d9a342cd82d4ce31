"""Figures as tables for the terminal. They are read from the same dictionaries that `--json` writes, so both agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from forecast_scheduler.reports.table_format import number, percent, titled_table
from scorer.replay.remarks import no_gap_remarks, regression_remark

OURS = "forecast-scheduler"
UNITS: Mapping[str, tuple[float, str]] = {
    "cpu": (1.0, "cores"),
    "memory": (2.0**20, "MiB"),
    "disk": (1e6, "MB/s"),
    "network": (1e6, "MB/s"),
    "log": (1e3, "kB/s"),
}


@dataclass(frozen=True, slots=True)
class ServicePeak:
    """One service's peak of one day, usage of one pod in base units: what was forecast, and what came."""

    service: str
    resource: str
    expected: float
    bound: float
    actual: float


def peaks_table(peaks: Sequence[ServicePeak], *, day: str) -> Table:
    """Forecast and actual peaks side by side."""
    title = f"Peak of one pod on {day}: forecast the midnight before, and what came"
    table = titled_table(title, "service", "resource", ">expected", ">95 % bound", ">actual", ">error")
    for peak in peaks:
        scale, unit = UNITS.get(peak.resource, (1.0, ""))
        table.add_row(
            peak.service,
            f"{peak.resource} ({unit})",
            *(f"{value / scale:.3g}" for value in (peak.expected, peak.bound, peak.actual)),
            f"{peak.expected / peak.actual - 1:+.0%}" if peak.actual else "–",
        )
    return table


def baselines_table(report: Mapping[str, Any]) -> Table:
    """Losses of every forecaster, one column per resource: loss50 / loss95, lower is better; ours first."""
    resources: Mapping[str, Mapping[str, Any]] = report["resources"]
    table = titled_table("Pinball loss of tomorrow's peak, quantiles 0.5 / 0.95 (lower is better)")
    table.add_column("forecaster")
    for resource in resources:
        table.add_column(resource, justify="right", no_wrap=True)
    rows = {OURS: {name: figures[OURS] for name, figures in resources.items()}}
    for name, figures in resources.items():
        for baseline, score in figures["baselines"].items():
            rows.setdefault(baseline, {})[name] = score
    for forecaster, scores in rows.items():
        cells = [_losses(scores.get(name)) for name in resources]
        table.add_row(forecaster, *cells, style="bold" if forecaster == OURS else None)
    coverage = [percent(figures[OURS].get("coverage95"), digits=1) for figures in resources.values()]
    table.add_section()
    table.add_row("peaks under our 95 % bound", *coverage)
    nodes = report.get("node_coverage95", {})
    table.add_row(
        "same, daily peaks of nodes", *(percent(nodes.get(name, {}).get("coverage"), digits=1) for name in resources)
    )
    return table


def rules_table(
    rules: Mapping[str, Mapping[str, Any]],
    *,
    title: str,
    gap_closed: Mapping[str, Any] | None = None,
    no_gap: Mapping[str, Any] | None = None,
    by_regression: Mapping[str, Mapping[str, Any]] | None = None,
) -> Table:
    """Figures of each placement rule, one row each; in the last row, the share of the gap to the oracle that is closed.

    no_gap        : reasons why a figure has none
    by_regression : resources that nodes are measured for and pods are not (scorer.replay.attribution)
    """
    marked = by_regression or {}
    notes = [regression_remark(name, figures) for name, figures in marked.items()]
    # Memory cannot make a node hot, so no rule evens out its peaks.
    resources = list(
        dict.fromkeys(name for figures in rules.values() for name in figures["peak_cv"] if name != "memory")
    )
    spreads = (f">{name}{'*' if name in marked else ''} CV" for name in resources)
    whole_title = "\n".join([title, "CV = spread of the nodes' daily peaks", *notes])
    table = titled_table(whole_title, "rule", ">hot node-slots", *spreads, ">p99 cpu peak", wrap_first=False)
    for rule, figures in rules.items():
        table.add_row(
            rule,
            percent(figures["hot_share"], digits=2),
            *(number(figures["peak_cv"].get(name)) for name in resources),
            percent(figures["p99_peak"].get("cpu")),
            style="bold" if rule == "forecast" else None,
        )
    if gap_closed:
        closed = gap_closed["peak_cv"]
        table.add_section()
        table.add_row(
            "gap closed, oracle = 100 %",
            percent(gap_closed["hot_share"]),
            *(percent(closed.get(name)) for name in resources),
            "",
        )
    if no_gap:
        table.caption = "\n".join(no_gap_remarks(no_gap, resources)) or None
        table.caption_justify = "left"
    return table


def _losses(score: Mapping[str, float] | None) -> str:
    return f"{score['loss50']:.3f} / {score['loss95']:.3f}" if score else "–"
