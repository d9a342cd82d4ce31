"""The peaks page as one HTML file that needs nothing else: plotly's script is inside, curves are drawn by peaks.js. It
says what its figures rest on.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

import numpy as np
from markupsafe import Markup

from base.arrays import AnyFloats
from base.html_report import html_report
from forecast.resources import CPU, RESOURCES
from forecast_scheduler.reports.decisions_report import decision_values
from forecast_scheduler.reports.peaks_report.origins import Origin
from forecast_scheduler.reports.peaks_report.peaks_figures import figures_json
from forecast_scheduler.reports.peaks_report.peaks_view import DrawnCurves, PeaksView
from scorer.load_scale import percent

_ORIGINS = {
    Origin.ISSUED: "made from the days before, and published before the day was over: what was acted upon",
    Origin.LATER: "made from the days before, but published after the day: no component acted upon it",
    Origin.REHEARSED: "fitted for this page on what lay before the first such day, since no model is kept that knows "
    "only that; up to a week ahead, so nightly forecasts are better",
    Origin.NONE: "every model that is kept learned from the day: what it says of it would be no forecast",
}

_WORDS = """
Past days of a node are predicted for the pods that really ran there, so that the forecast of load is judged and not
where pods went; the coming day is predicted for the pods of the last half hour.

Past days of a service are predicted for the pods it had when the day began; where their number follows the load, for
the number expected.

Error: mean distance of a node's half hours from what was expected, as share of capacity. Coverage: node-days whose
highest half hour stayed at or below the bound. Loss: see forecast/backtest.py. Hot: CPU, disk, network or log
above {hot} of capacity.
"""

_HEADER = ("day", "forecast", "made from what lay before", "version")

_HOTTEST = 12
"""Nodes in the table; the figures of `--json` hold more."""

MISSING = 0xFFFF
"""Stands for NaN; the highest value is one less."""


def basis_values(view: PeaksView, figures: Mapping[str, Any]) -> dict[str, Any]:
    """What the page says of it. figures: of `figures_json`"""
    rows = [
        (
            f"{forecast.day:%a %d %b}",
            forecast.origin.value,
            "–" if forecast.cut_off is None else f"{forecast.cut_off:%a %d %b}",
            forecast.version or "–",
        )
        for forecast in reversed(view.forecasts)
    ]
    return {"basis_notes": _notes(view, figures), "basis_header": _HEADER, "basis_rows": rows}


def _notes(view: PeaksView, figures: Mapping[str, Any]) -> list[str]:
    used = {forecast.origin for forecast in view.forecasts}
    notes = [f"Forecast “{origin.value}”: {text}." for origin, text in _ORIGINS.items() if origin in used]
    notes += [" ".join(words.split()) for words in _WORDS.format(hot=percent(view.hot)).split("\n\n")]
    left_out = sum(score.left_out for score in view.scores.values())
    if left_out:
        notes.append(f"{left_out:,} node-days with pods of services that the model did not know are not judged.")
    drawn = figures["drawn"]
    for kind, by in (("nodes", "peak as share of capacity"), ("services", "share of the cluster's load")):
        if drawn[f"{kind}_left_out"]:
            notes.append(
                f"Curves of {drawn[kind]:,} {kind} are here, those with the highest {by}; those of "
                f"{drawn[f'{kind}_left_out']:,} are left out (--top). All other figures are over all of them."
            )
    return notes


def packed(curves: AnyFloats) -> dict[str, Any] | None:
    """{"step": unit of one count, "counts": little-endian 16 bit in base64}; None where nothing is known.

    Two bytes a value: in base64 a third of what the digits would take.

    curves : any shape, base units; below 0 counts as 0. Rounded to a 65,534th of the highest value.
    """
    known = np.isfinite(curves)
    if not known.any():
        return None
    highest = float(np.asarray(curves, dtype=np.float64)[known].max())
    step = max(highest, 1e-12) / (MISSING - 1)
    counts = np.where(known, np.rint(np.maximum(np.nan_to_num(curves), 0.0) / step), MISSING)
    return {"step": step, "counts": base64.b64encode(counts.astype("<u2").tobytes()).decode("ascii")}


def peaks_page(view: PeaksView, decisions: Mapping[str, Any] | None = None) -> str:
    """The whole page. decisions: the figures of a decision log, None = there is no log."""
    figures = figures_json(view)
    return html_report(
        "forecast_scheduler/reports/peaks_report/page.html.j2",
        title="Predicted against actual peaks",
        plots=True,
        subtitle=_subtitle(view),
        tiles=list(_tiles(view, figures)),
        footer=_footer(view),
        data=_data(view, figures),
        decision_log=None if decisions is None else decision_values(decisions),
        **{name: Markup(_resource(f"peaks.{name}")) for name in ("css", "html", "js")},
        **basis_values(view, figures),
    )


def _resource(name: str) -> str:
    return files("forecast_scheduler.reports.peaks_report").joinpath(name).read_text(encoding="utf-8")


def _subtitle(view: PeaksView) -> str:
    history = view.history
    return (
        f"{len(history.services):,} services on {len(history.nodes):,} nodes, {history.n_days} days until "
        f"{history.days[-1]:%a %d %b %Y}. The model in use knows what lay before {view.model.cut_off:%a %d %b %Y}."
    )


def _footer(view: PeaksView) -> str:
    zone, made = view.history.calendar.time_zone, view.made
    return f"Times are those of {zone}. Made {made:%Y-%m-%d %H:%M} UTC. Everything is in this file; it fetches nothing."


def _tiles(view: PeaksView, figures: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Title, value and what the value is of."""
    coming = f"{view.coming:%a %d %b}"
    if view.hottest:
        first = view.hottest[0]
        hot = sum(node.share > view.hot for node in view.hottest)
        where = f"{view.history.nodes[first.node]}, {RESOURCES[first.resource].name} at {first.at:%H:%M}"
        yield f"hottest node on {coming}", percent(first.share), where
        yield f"nodes above {percent(view.hot)} on {coming}", f"{hot:,}", f"of {len(view.hottest):,}"
    scores = list(view.scores.values())
    errors = np.array([score.error[CPU] for score in scores])
    if np.isfinite(errors).any():
        days = int(np.isfinite(errors).sum())
        error = percent(float(np.nanmean(errors)), digits=1)
        yield "CPU of nodes forecast wrong by", error, f"of capacity, {days} days"
    n = sum(int(score.n_nodes.sum()) for score in scores)
    if n:
        held = sum(float(np.nansum(score.coverage * score.n_nodes)) for score in scores)
        yield "node peaks within the 0.95 bound", percent(held / n, digits=1), "all resources; aim: 95 %"
    adoption = figures["adoption"]
    if adoption and adoption["before"]["days"] and adoption["after"]["days"]:
        was, now = (adoption[name]["peak_cv"].get("cpu", float("nan")) for name in ("before", "after"))
        yield "spread of the nodes' CPU peaks", f"{was:.3f} → {now:.3f}", f"since {view.adopted:%a %d %b}"
    else:
        spread = view.spread.variation[CPU, -7:]
        if np.isfinite(spread).any():
            yield "spread of the nodes' CPU peaks", f"{np.nanmean(spread):.3f}", "last seven days"


def _data(view: PeaksView, figures: Mapping[str, Any]) -> dict[str, Any]:
    history = view.history
    limits = [[_number(value) for value in row] for row in history.capacity[view.nodes.chosen]]
    nodes = _entities(view.nodes, [history.nodes[row] for row in view.nodes.chosen], limits)
    if history.daily_capacity is not None:
        then = history.capacity_of_days[view.nodes.chosen][:, :, -len(view.days) :]
        for node, now, by_day in zip(nodes, limits, then, strict=True):
            node["capacity_days"] = [
                [*map(_number, of_days.tolist()), last] for of_days, last in zip(by_day, now, strict=True)
            ]
    return {
        "resources": [[resource.name, resource.unit] for resource in RESOURCES],
        "days": [*(day.isoformat() for day in view.days), view.coming.isoformat()],
        "origins": [forecast.origin.value for forecast in view.forecasts],
        "node": nodes,
        "service": _entities(view.services, [str(history.services[row]) for row in view.services.chosen], None),
        "hottest": [_without_nan(node) for node in figures["coming"]["hottest"][:_HOTTEST]],
        "scores": [_without_nan(day) for day in figures["days"] if "error" in day],
        "service_scores": [
            {
                "day": day["day"],
                "coverage": {name: _number(each["coverage95"]) for name, each in day["resources"].items()},
                "loss": {name: _number(each["loss50"] + each["loss95"]) for name, each in day["resources"].items()},
            }
            for day in figures["service_days"]
        ],
        "by_day": [_without_nan(day) for day in figures["nodes_by_day"]],
        "adopted": figures["adopted"],
        "hot_share": view.hot,
    }


def _entities(curves: DrawnCurves, names: list[str], capacity: list[list[float | None]] | None) -> list[dict[str, Any]]:
    """One for each node or service: name, capacities, and per resource actual, expected and bound, packed."""
    return [
        {
            "name": name,
            "capacity": None if capacity is None else capacity[i],
            "curves": [
                packed(np.stack([curves.actual[i, r], curves.expected[i, r], curves.bound[i, r]]))
                for r in range(len(RESOURCES))
            ],
        }
        for i, name in enumerate(names)
    ]


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _without_nan(facts: Mapping[str, Any]) -> dict[str, Any]:
    """JSON has no NaN."""
    return {key: None if isinstance(value, float) and not np.isfinite(value) else value for key, value in facts.items()}
