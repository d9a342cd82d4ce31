"""The report of a run as one HTML file that needs nothing else: plotly's script is inside, once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from forecast.html_page import html_page, html_table, json_script
from forecast.resources import RESOURCES
from trainer.gate.verdict import GateResult, GateVerdict
from trainer.run_report.capacities import Capacities
from trainer.run_report.changes import Changes
from trainer.run_report.issued_scores import IssuedScore
from trainer.run_report.learned import LearnedService
from trainer.run_report.regression import RegressionCondition
from trainer.run_report.report import RunReport
from trainer.run_report.units import amount

_SHOWN = 300
"""Lines of a list that are shown; the JSON report holds all of them."""

_COLOURS = {"cpu": "#1f7a8c", "memory": "#7d8ca3", "disk": "#c8553d", "network": "#e0a458", "log": "#6d1a36"}
_VERDICTS = {
    GateVerdict.PASSED: "new model",
    GateVerdict.HELD_BACK: "held back: old arrays",
    GateVerdict.WIDENED: "new model, bounds widened",
    GateVerdict.FORCED: "new model, forced",
    GateVerdict.NOTHING_TO_COMPARE: "new model, nothing to compare",
}
_STYLE = """
.controls { display: flex; flex-wrap: wrap; gap: 10px; margin: 10px 0; align-items: center; }
input, select, button { font: inherit; padding: 5px 9px; border: 1px solid var(--line); border-radius: 8px;
                        background: white; color: var(--ink); }
input { min-width: 300px; } th.sortable { cursor: pointer; } td.bad { color: var(--bad); }
ul { margin: 0; padding-left: 20px; } .wrap th:last-child { text-align: left; }
.wrap td:last-child { white-space: normal; text-align: left; }
"""


def html_report(report: RunReport) -> str:
    """The whole page. Every name that came from a cluster is escaped or set as text."""
    title = f"Nightly run {report.created:%Y-%m-%d %H:%M}"
    sections = [
        (
            "The gate",
            "May tonight's model replace the one in use? Compared on the days since its cut-off.",
            _gate(report),
        ),
        (
            "Forecasts as issued",
            "Each night's forecast was kept and is held against what came. Target of the coverage: 95 %.",
            _issued(report.issued),
        ),
        ("What changed", "Against the model before, for the first day of the forecast.", _changes(report.changes)),
        (
            "What was learned",
            "Usage of one pod on the first day of the forecast. Peak weight: what one more pod adds to a node.",
            _services(report),
        ),
        (
            "Peak weights by regression",
            "How well the nodes tell services apart. Weights that are not identified are published as their prior.",
            _regression(report.regression.values()),
        ),
        (
            "Capacities",
            "Of disk, network and log, where nobody configured one. An assumed capacity spreads load; it is no limit.",
            _capacities(report.capacities),
        ),
        ("Measured", "Share of the half hours in which services had pods that was measured.", _measured(report)),
        ("Cleaning", "What was wrong with the data, and what was done about it.", _list(report.cleaning)),
        (
            "Usage that was cut",
            "A service claims more than its node used itself: it counts as not measured there. Ratio: claim / node.",
            _cut(report),
        ),
        ("Durations", "", _durations(report.stage_seconds)),
    ]
    body = (
        f"<h1>{escape(title)}</h1><p>{escape(_summary(report))}</p>"
        + _tiles(report)
        + "".join(f"<section><h2>{escape(h)}</h2><p>{escape(p)}</p>{content}</section>" for h, p, content in sections)
        + f"<footer>Days are local ({escape(report.time_zone)}).</footer>"
    )
    return html_page(title, body, scripts=[get_plotlyjs()], style=_STYLE)


def _summary(report: RunReport) -> str:
    what = f"published {report.version}" if report.version else "nothing was published"
    recorded = "" if report.recorded_share is None else f"; {report.recorded_share:.0%} read through recording rules"
    return (
        f"{what}: learned from {len(report.days)} days, {report.days[0]} to {report.days[-1]}{recorded}; "
        f"forecasts from {report.first_day} on"
    )


def _tiles(report: RunReport) -> str:
    held_back = report.gate.with_verdict(GateVerdict.HELD_BACK)
    owners, known = report.job_owners
    last = np.array([value for value in report.measured[:, -1] if value > 0])
    tiles = [
        ("services", f"{len(report.services):,}"),
        *([("Job owners with known run lengths", f"{known:,} of {owners:,}")] if owners else []),
        ("nodes", f"{report.n_nodes:,}"),
        ("days of history", f"{len(report.days):,}"),
        ("measured on the last day", f"{last.mean():.1%}" if len(last) else "–"),
        ("resources held back", ", ".join(held_back) or "none"),
    ]
    inner = "".join(f"<div class=tile><small>{escape(name)}</small><b>{escape(v)}</b></div>" for name, v in tiles)
    return f'<div class="tiles">{inner}</div>'


def _gate(report: RunReport) -> str:
    def row(result: GateResult) -> list[str]:
        scores = [result.candidate, result.current, result.naive]
        losses = ["–" if s is None else f"{s.loss50 + s.loss95:.4f}" for s in scores]
        coverage = "–" if result.candidate is None else f"{result.candidate.coverage95:.1%}"
        return [result.resource, _VERDICTS[result.verdict], *losses, coverage, f"{result.widening:.2f}", result.reason]

    header = ["", "verdict", "loss", "in use", "last week", "coverage", "bounds x", "why"]
    return (
        f'<div class="scroll wrap">{html_table(header, [row(r) for r in report.gate.results.values()], left=2)}</div>'
    )


def _issued(scores: tuple[IssuedScore, ...]) -> str:
    if not scores:
        return "<p>No forecast has been issued yet for a day of the history.</p>"
    coverage, loss = go.Figure(), go.Figure()
    for resource, colour in _COLOURS.items():
        rows = [(score.day.isoformat(), score.scores[resource]) for score in scores if resource in score.scores]
        for figure, values in (
            (coverage, [s.coverage95 for _, s in rows]),
            (loss, [s.loss50 + s.loss95 for _, s in rows]),
        ):
            figure.add_scatter(
                x=[day for day, _ in rows], y=values, name=resource, mode="lines+markers", line={"color": colour}
            )
    for figure in (coverage, loss):
        figure.update_xaxes(type="category", nticks=10)  # one day alone would get an axis of milliseconds
    coverage.add_hline(y=0.95, line={"color": "#2b2d42", "dash": "dot", "width": 1})
    coverage.update_yaxes(title="peaks within the 0.95 bound", tickformat=".0%")
    loss.update_yaxes(title="loss (share of the peaks)", rangemode="tozero")
    header = ["day", "lead", *(f"{r.name} loss / coverage" for r in RESOURCES)]
    table = [
        [
            score.day.isoformat(),
            f"{score.lead_days} d",
            *(
                f"{s.loss50 + s.loss95:.3f} / {s.coverage95:.0%}" if (s := score.scores.get(r.name)) else "–"
                for r in RESOURCES
            ),
        ]
        for score in reversed(scores)
    ]
    return _plot(coverage) + _plot(loss) + f'<div class="scroll">{html_table(header, table)}</div>'


def _changes(changes: Changes | None) -> str:
    if changes is None:
        return "<p>There was no model before.</p>"
    units = {resource.name: resource.unit for resource in RESOURCES}
    rows = [
        [
            move.service,
            move.resource,
            amount(move.before, units[move.resource]),
            amount(move.after, units[move.resource]),
            f"{move.after / move.before - 1:+.0%}" if move.before > 0 else "from 0",
            f"{move.share_of_cluster:+.2%}",
        ]
        for move in changes.moved[:_SHOWN]
    ]
    header = ["service", "resource", "before", "tonight", "change", "of the cluster"]
    how_many = f"{len(changes.moved):,}" if changes.moved else "No"
    shown = f"; the {_SHOWN} that matter most are shown" if len(changes.moved) > _SHOWN else ""
    parts = [
        f"<p>{len(changes.new):,} new services</p>{_list(changes.new)}" if changes.new else "",
        f"<p>{len(changes.gone):,} services are gone</p>{_list(changes.gone)}" if changes.gone else "",
        f"<p>{how_many} expected peaks (all pods of a service) moved by more than a fifth{shown}</p>",
        f'<div class="scroll">{html_table(header, rows, left=2)}</div>' if rows else "",
    ]
    return "".join(parts)


def _remarks(service: LearnedService) -> str:
    """What is special about a service, in words that the filter of the page finds."""
    words = [word for word, is_so in (("autoscaled", service.autoscaled), ("young", service.young)) if is_so]
    if service.runs is not None:
        length = service.runs.median_seconds
        words.append("job" if length is None else f"job, runs {length / 60:,.0f} min")
    return " ".join(words)


def _services(report: RunReport) -> str:
    """The rows as data, drawn on demand by services.js: 5,000 services would be a slow table."""
    rows = [
        [
            service.service,
            service.replicas,
            _remarks(service),
            service.measured_days,
            [
                [
                    found.mean,
                    found.peak,
                    found.bound,
                    ", ".join(f"{name} {weight:.0%}" for name, weight in found.predictors),
                    found.peak_weight,
                    found.weight_error,
                    found.identified,
                ]
                for found in (service.resources[resource.name] for resource in RESOURCES)
            ],
        ]
        for service in report.services
    ]
    data = {"resources": [[resource.name, resource.unit] for resource in RESOURCES], "rows": rows}
    script = files("trainer.run_report").joinpath("services.js").read_text(encoding="utf-8")
    return (
        '<div class="controls"><input id="filter" type="search" placeholder="part of a name, autoscaled, young, job">'
        '<select id="resource"></select><span id="count"></span><button id="more">show more</button></div>'
        '<div class="scroll"><table><thead id="head"></thead><tbody id="rows"></tbody></table></div>'
        f"{json_script('services', data)}<script>{script}</script>"
    )


def _regression(conditions: Iterable[RegressionCondition]) -> str:
    rows = [
        [
            one.resource,
            f"{one.services:,}",
            f"{one.effective_rank:,.1f}",
            f"{one.identified:,}",
            "–" if one.load_share is None else f"{one.load_share:.0%}",
            f"{one.from_nodes:,}",
            one.advice if one.is_poor else "",
        ]
        for one in conditions
    ]
    header = ["", "services", "effective rank", "identified", "of the load", "known by nodes alone", "what helps"]
    if not rows:
        return "<p>No node was measured.</p>"
    return f'<div class="scroll wrap">{html_table(header, rows)}</div>'


def _measured(report: RunReport) -> str:
    share = report.measured
    figure = go.Figure(
        go.Heatmap(
            x=[day.isoformat() for day in report.days],
            y=[resource.name for resource in RESOURCES],
            z=[[None if np.isnan(value) else float(value) for value in row] for row in share],
            zmin=0.0,
            zmax=1.0,
            colorscale=[[0.0, "#6d1a36"], [0.5, "#d1495b"], [0.9, "#f2c14e"], [0.99, "#b9d6dc"], [1.0, "#5fa3b0"]],
            hovertemplate="%{x} %{y}: %{z:.2%}<extra></extra>",
            colorbar={"tickformat": ".0%"},
            ygap=3,
            xgap=1,
        )
    )
    figure.update_yaxes(autorange="reversed")
    return _plot(figure, height=260)


def _capacities(capacities: Capacities) -> str:
    units = {resource.name: resource.unit for resource in RESOURCES}
    rows = [
        [
            f"{one.resource}, nodes of {one.cpu_cores:g} cores",
            str(one.nodes),
            amount(one.sustained, units[one.resource]),
            f"{amount(one.capacity, units[one.resource])} (assumed)",
        ]
        for one in capacities.assumed
    ]
    header = ["", "nodes", "sustained by the busiest", "capacity"]
    table = f'<div class="scroll">{html_table(header, rows)}</div>' if rows else "<p>None is assumed.</p>"
    return table + (f"<p>{escape(capacities.gaps)}</p>" if capacities.gaps else "")


def _cut(report: RunReport) -> str:
    services, nodes = report.names
    rows = [
        [
            services[one.service],
            nodes[one.node],
            RESOURCES[one.resource].name,
            f"{one.slots:,}",
            f"{one.ratio:,.1f}" if np.isfinite(one.ratio) else "the node used nothing",
        ]
        for one in report.cut[:_SHOWN]
    ]
    if not rows:
        return "<p>Nothing.</p>"
    header = ["service", "node", "resource", "half hours", "largest ratio"]
    more = f"<p>and {len(report.cut) - _SHOWN:,} more series</p>" if len(report.cut) > _SHOWN else ""
    return f'<div class="scroll">{html_table(header, rows, left=3)}</div>{more}'


def _durations(stages: Mapping[str, float]) -> str:
    rows = [[stage, f"{seconds:,.1f} s"] for stage, seconds in stages.items()]
    return html_table(["stage", "time"], rows) if rows else "<p>Not measured.</p>"


def _list(lines: tuple[str, ...]) -> str:
    if not lines:
        return "<p>Nothing.</p>"
    more = f"<li>and {len(lines) - _SHOWN:,} more</li>" if len(lines) > _SHOWN else ""
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines[:_SHOWN])}{more}</ul>"


def _plot(figure: Any, height: int = 300) -> str:
    figure.update_layout(
        height=height,
        margin={"l": 60, "r": 20, "t": 20, "b": 40},
        paper_bgcolor="white",
        plot_bgcolor="white",
        legend={"orientation": "h", "y": -0.2},
    )
    figure.update_yaxes(gridcolor="#e6eaee")
    return str(figure.to_html(include_plotlyjs=False, full_html=False, config={"displayModeBar": False}))
