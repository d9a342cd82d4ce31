"""What the figures of the page rest on: which forecast counts for which day, what was left out, what the words mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forecast_scheduler.reports.peaks_report.origins import Origin
from forecast_scheduler.reports.peaks_report.view import PeaksView

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
highest half hour stayed at or below the bound. Loss: see docs/understand/backtest.md. Hot: CPU, disk, network or log
above 80 % of capacity.
"""

_HEADER = ("day", "forecast", "made from what lay before", "version")


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
    notes += [" ".join(paragraph.split()) for paragraph in _WORDS.split("\n\n")]
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
