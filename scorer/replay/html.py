"""The report of a replay as one HTML file that needs nothing else: plotly's script is inside, once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from markupsafe import Markup
from plotly.offline import get_plotlyjs

from base.html_report import embedded_plot, html_report
from forecast.history import History
from scorer.replay import plots
from scorer.replay.remarks import no_gap_remarks, regression_remark
from scorer.replay.replay import Replay
from scorer.replay.report import RuleFigures

RUNGS = {
    "forecast": "fresh model, fresh metrics",
    "without_live_correction": "model without live correction",
    "model_7_days_old": "model 7 days old, bounds widened",
    "model_14_days_old": "model 14 days old, bounds widened",
    "requests_avoiding_full_nodes": "requests, passing over nodes full now",
    "neutral": "neutral: kube-scheduler's own scores decide",
}


def replay_page(replay: Replay, history: History) -> str:
    """One HTML page with the plots of a replay; it needs no other file."""
    window, recording, marked = replay.window, replay.recording, replay.attributed
    resources = next(iter(replay.figures.values())).peak_cv
    heads = (f"{name}*" if name in marked else name for name in resources)
    return html_report(
        "scorer/replay/report.html.j2",
        title=f"Replay {window.days[0]} to {window.days[-1]}",
        plotly=Markup(get_plotlyjs()),
        first=window.days[0].isoformat(),
        hour=f"{window.first_slot // 2:02d}:{window.first_slot % 2 * 30:02d}",
        days=window.n_days,
        pods=f"{int((recording.birth == 0).sum()):,}",
        born=f"{int((recording.birth > 0).sum()):,}",
        nodes=recording.n_nodes,
        seed=replay.seed,
        zone=history.calendar.time_zone,
        assumed=replay.to_json()["assumed_capacities"],
        tiles=list(_tiles(replay)),
        before_after=embedded_plot(plots.before_and_after(replay)),
        peaks=embedded_plot(plots.evening_peaks(replay)),
        over_time=embedded_plot(plots.nodes_over_time(replay)),
        header=["", "hot", *heads, "CPU max", "bound held", "unplaced"],
        rule_rows=list(_rows(replay.figures, plots.LABELS, resources)),
        notes=[
            *(regression_remark(name, figures.to_json()) for name, figures in marked.items()),
            *no_gap_remarks(replay.no_gap(), replay.figures["native"].peak_cv),
        ],
        ladder_rows=list(_rows(replay.ladder, RUNGS, resources)),
        services=embedded_plot(plots.services_forecast_and_actual(replay, history)),
    )


def _tiles(replay: Replay) -> Iterator[tuple[str, str, str]]:
    """Title, the value of kube-scheduler's own placing ('' = there is none), and ours."""
    native, ours = replay.figures["native"], replay.figures["forecast"]
    yield "node half hours that are hot", f"{native.hot_share:.1%}", f"{ours.hot_share:.2%}"
    for title, name, form in (
        ("spread of the nodes' CPU peaks", "peak_cv", "{:.2f}"),
        ("99th percentile of CPU peaks", "p99_peak", "{:.0%}"),
    ):
        if "cpu" in ours.peak_cv:
            yield title, form.format(getattr(native, name)["cpu"]), form.format(getattr(ours, name)["cpu"])
    if (closed := replay.gap_closed()["hot_share"]) is not None:
        yield "of the way from native to the true future (hot)", "", f"{closed:.0%}"


def _rows(
    figures: Mapping[str, RuleFigures], labels: Mapping[str, str], resources: Collection[str]
) -> Iterator[dict[str, Any]]:
    for name, f in figures.items():
        held = f.bound_coverage.get("cpu")
        yield {
            "is_ours": name == "forecast",
            "label": labels.get(name, name),
            "hot": f"{f.hot_share:.2%}",
            "peaks": [(f"{f.peak_cv[r]:.3f}", f"{f.p99_peak[r]:.0%}") for r in resources],
            "others": [
                f"{f.max_peak['cpu']:.0%}" if "cpu" in f.max_peak else "–",
                f"{held.coverage:.1%}" if held else "–",
                f"{f.unplaced:,}",
            ],
        }
