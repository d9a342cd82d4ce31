"""The report of a replay as one HTML file that needs nothing else, and its pictures: evenings under each rule,
forecast and truth.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, time, timedelta
from typing import Any

import numpy as np
import plotly.graph_objects as go
from markupsafe import Markup

from base.arrays import Floats
from base.html_report import html_report
from base.report_figures import DOTTED, drawn, line, subplots
from forecast.calendar import SLOT_MINUTES
from forecast.history import History
from forecast.resources import CPU
from scorer.load_scale import HIGHEST_SHARE, load_scale, percent
from scorer.replay.remarks import no_gap_remarks, regression_remark
from scorer.replay.replay import Replay
from scorer.replay.replay_figures import RuleFigures

COLOURS = {
    "native": "#c8553d",
    "live": "#e0a458",
    "last_week": "#7d8ca3",
    "forecast": "#1f7a8c",
    "configured": "#9067c6",
    "oracle": "#946c3c",
}

LABELS = {
    "native": "kube-scheduler (requests)",
    "live": "live usage at placement",
    "last_week": "copy of last week",
    "forecast": "forecast",
    "configured": "forecast, as you configured it",
    "oracle": "true future",
}

RUNGS = {
    "forecast": "fresh model, fresh metrics",
    "without_live_correction": "model without live correction",
    "model_7_days_old": "model 7 days old, bounds widened",
    "model_14_days_old": "model 14 days old, bounds widened",
    "requests_avoiding_full_nodes": "requests, passing over nodes full now",
    "neutral": "neutral: kube-scheduler's own scores decide",
}


def before_and_after(replay: Replay) -> Markup:
    """CPU of every node over the days, native next to forecast; each row a node, the hottest on top."""
    titles = [_titled(replay, rule) for rule in ("native", "forecast")]
    figure = subplots(titles, cols=2, shared_yaxes=True, horizontal_spacing=0.03)
    times = _times(replay)
    for column, rule in enumerate(("native", "forecast"), start=1):
        share = _cpu(replay, rule)
        share = share[share.max(axis=1).argsort()]  # the hottest last: plotly draws the first row at the bottom
        figure.add_trace(
            go.Heatmap(
                z=np.round(share, 3),
                x=times,
                coloraxis="coloraxis",
                hovertemplate="%{x|%a %d %b %H:%M}<br>%{z:.0%} of CPU<extra></extra>",
            ),
            row=1,
            col=column,
        )
    figure.update_layout(
        coloraxis={
            "colorscale": _scale(replay.recording.hot),
            "cmin": 0,
            "cmax": HIGHEST_SHARE,
            "colorbar": {
                "title": "CPU used",
                "tickformat": ".0%",
                "tickvals": [0, replay.recording.hot / 2, replay.recording.hot, 1.0, HIGHEST_SHARE],
                "thickness": 14,
            },
        }
    )
    figure.update_yaxes(showticklabels=False)
    figure.update_yaxes(title_text=f"{replay.recording.n_nodes} nodes, hottest on top", row=1, col=1)
    return drawn(figure, height=460)


def evening_peaks(replay: Replay) -> Markup:
    """The nodes' mean daily peak of CPU, sorted, one line per rule: flat is what we want."""
    figure = go.Figure()
    for rule in replay.figures:
        share = _cpu(replay, rule)
        peaks = share.reshape(len(share), replay.window.n_days, -1).max(axis=2)  # (n_nodes, n_days)
        width = 3 if rule in ("native", "forecast") else 1.6
        of_rule = line(range(1, len(share) + 1), -np.sort(-peaks, axis=0).mean(axis=1), COLOURS[rule], width=width)
        figure.add_trace(of_rule.update(name=LABELS[rule], hovertemplate="node %{x} of the day: peak %{y:.0%}"))
    _hot_line(figure, replay.recording.hot)
    figure.update_xaxes(title_text="nodes by their peak of the day, hottest first")
    figure.update_yaxes(title_text="peak CPU, share of capacity", tickformat=".0%", rangemode="tozero")
    return drawn(figure, height=400)


def nodes_over_time(replay: Replay) -> Markup:
    """The spread of the nodes' CPU half hour by half hour: hottest, middle and coolest node."""
    titles = [_titled(replay, rule) for rule in ("native", "forecast")]
    figure = subplots(titles, rows=2, shared_xaxes=True, shared_yaxes="all", vertical_spacing=0.09)
    times = _times(replay)
    for row, rule in enumerate(("native", "forecast"), start=1):
        share = _cpu(replay, rule)
        colour = COLOURS[rule]
        bands = [(share.min(axis=0), share.max(axis=0), 0.18), (*np.quantile(share, [0.1, 0.9], axis=0), 0.32)]
        for low, high, opacity in bands:
            figure.add_trace(_edge(times, low, colour), row=row, col=1)
            filled = _edge(times, high, colour).update(fill="tonexty", fillcolor=_transparent(colour, opacity))
            figure.add_trace(filled, row=row, col=1)
        said = "%{x|%a %H:%M}<br>median node %{y:.0%}<extra></extra>"
        figure.add_trace(line(times, np.median(share, axis=0), colour, hovertemplate=said), row=row, col=1)
        _hot_line(figure, replay.recording.hot, row=row)
    figure.update_yaxes(tickformat=".0%", rangemode="tozero", title_text="CPU of nodes")
    return drawn(figure, height=520, showlegend=False)


def services_forecast_and_actual(replay: Replay, history: History, n_services: int = 4) -> Markup:
    """Total CPU of the services with the highest peaks: as forecast before the placement, and as it came."""
    recording, forecast = replay.recording, replay.forecasts["forecast"]
    actual = np.zeros((recording.n_services, recording.n_slots))
    np.add.at(actual, recording.service, recording.load[:, CPU])
    chosen = np.argsort(-actual.max(axis=1))[:n_services]
    titles = [f"{history.services[s]}" for s in chosen]
    columns = 2
    rows = -(-len(chosen) // columns)
    figure = subplots(titles, rows=rows, cols=columns, vertical_spacing=0.16, shared_xaxes=True)
    times = _times(replay)
    for position, service in enumerate(chosen):
        place: dict[str, Any] = {"row": position // columns + 1, "col": position % columns + 1}
        expected = forecast.mean[service, CPU] * forecast.replicas[service]
        for name, values, colour, width in (
            ("came", actual[service], COLOURS["native"], 1.4),
            ("forecast", expected, COLOURS["forecast"], 2.0),
        ):
            of_service = line(times, values, colour, width=width, name=name, legendgroup=name, hoverinfo="x+y")
            figure.add_trace(of_service.update(showlegend=position == 0), **place)
    figure.update_yaxes(rangemode="tozero", title_text="cores")
    return drawn(figure, height=240 * rows + 100, legend_y=1.18, margin_t=80)


def _scale(hot: float) -> list[tuple[float, str]]:
    """Colours of load by their place in the range."""
    return [(one.share / HIGHEST_SHARE, one.light) for one in load_scale(hot)]


def _cpu(replay: Replay, rule: str) -> Floats:
    """CPU as share of capacity, (n_nodes, n_slots); nodes without a CPU capacity are left out."""
    share = replay.node_shares(rule)[:, CPU]
    return np.asarray(share[np.isfinite(share).all(axis=1)])


def _titled(replay: Replay, rule: str) -> str:
    # By CPU alone, as drawn; the hot share of the tables counts disk, network and log, too.
    hot = (_cpu(replay, rule) > replay.recording.hot).mean()
    return f"<b>{LABELS[rule]}</b>: CPU hot in {100 * hot:.2f} % of node half hours"


def _times(replay: Replay) -> list[datetime]:
    """Local wall-clock time of each slot, naive: the axis shows what people's clocks showed."""
    start = datetime.combine(replay.window.days[0], time())
    first = replay.window.first_slot
    return [start + timedelta(minutes=SLOT_MINUTES * (first + i)) for i in range(replay.window.n_slots)]


def _edge(times: list[datetime], values: Floats, colour: str) -> go.Scatter:
    """The edge of a band: no line, and no words under the pointer."""
    return line(times, values, colour, width=0, hoverinfo="skip", showlegend=False)


def _hot_line(figure: go.Figure, hot: float, row: int | None = None) -> None:
    place = {} if row is None else {"row": row, "col": 1}
    figure.add_hline(y=hot, line=DOTTED, annotation_text=f"{hot:.0%}: hot", **place)


def _transparent(colour: str, opacity: float) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


def replay_page(replay: Replay, history: History) -> str:
    """One HTML page with the plots of a replay; it needs no other file."""
    window, recording, marked = replay.window, replay.recording, replay.attributed
    resources = next(iter(replay.figures.values())).peak_cv
    heads = (f"{name}*" if name in marked else name for name in resources)
    return html_report(
        "scorer/replay/report.html.j2",
        title=f"Replay {window.days[0]} to {window.days[-1]}",
        plots=True,
        first=window.days[0].isoformat(),
        hour=f"{window.first_slot // 2:02d}:{window.first_slot % 2 * 30:02d}",
        days=window.n_days,
        pods=f"{int((recording.birth == 0).sum()):,}",
        born=f"{int((recording.birth > 0).sum()):,}",
        nodes=recording.n_nodes,
        hot=percent(recording.hot),
        seed=replay.seed,
        zone=history.calendar.time_zone,
        assumed=replay.to_json()["assumed_capacities"],
        tiles=list(_tiles(replay)),
        before_after=before_and_after(replay),
        peaks=evening_peaks(replay),
        over_time=nodes_over_time(replay),
        header=["", "hot", *heads, "CPU max", "bound held", "unplaced"],
        rule_rows=list(_rows(replay.figures, LABELS, resources)),
        notes=[
            *(regression_remark(name, figures.to_json()) for name, figures in marked.items()),
            *no_gap_remarks(replay.no_gap(), replay.figures["native"].peak_cv),
        ],
        ladder_rows=list(_rows(replay.ladder, RUNGS, resources)),
        services=services_forecast_and_actual(replay, history),
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
