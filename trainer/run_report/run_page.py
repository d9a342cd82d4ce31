"""The report of a run as one HTML file that needs nothing else: plotly's script is inside, once."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import numpy as np
import plotly.graph_objects as go
from markupsafe import Markup

from base.html_report import html_report
from base.report_figures import DOTTED, drawn, line
from forecast.resources import RESOURCES
from trainer.amounts import amount
from trainer.gate.gate_verdict import GateResult, GateVerdict
from trainer.run_report.earlier_nights import Changes, IssuedScore
from trainer.run_report.learned import LearnedService
from trainer.run_report.report_of_run import RunReport
from trainer.run_report.saving import NOTHING_PROMISED

_SHOWN = 300
"""Lines of a list that are shown; the JSON report holds all of them."""

_UNITS = {resource.name: resource.unit for resource in RESOURCES}
_COLOURS = {"cpu": "#1f7a8c", "memory": "#7d8ca3", "disk": "#c8553d", "network": "#e0a458", "log": "#b0436b"}
_VERDICTS = {
    GateVerdict.PASSED: "new model",
    GateVerdict.HELD_BACK: "held back: old arrays",
    GateVerdict.WIDENED: "new model, bounds widened",
    GateVerdict.FORCED: "new model, forced",
    GateVerdict.NOTHING_TO_COMPARE: "new model, nothing to compare",
    GateVerdict.LEFT_OUT: "left out: no forecast",
}


def run_page(report: RunReport) -> str:
    """One HTML page about a nightly run; it needs no other file."""
    changes = report.changes
    return html_report(
        "trainer/run_report/report.html.j2",
        title=f"Nightly run {report.created:%Y-%m-%d %H:%M}",
        plots=True,
        shown=_SHOWN,
        summary=_summary(report),
        tiles=_tiles(report),
        findings=[[one.finding, one.what, one.what_to_do] for one in report.findings],
        remarks=report.remarks,
        saving=report.saving.line() if report.saving else NOTHING_PROMISED,
        gate=[_gate_row(result) for result in report.gate.results.values()],
        issued=[_issued_row(score) for score in reversed(report.issued)],
        issued_header=["day", "lead", *(f"{r.name} loss / coverage" for r in RESOURCES)],
        issued_plots=_issued_plots(report.issued) if report.issued else "",
        changes=changes,
        moves=[] if changes is None else _moves(changes),
        services=_services(report),
        services_script=Markup(files("trainer.run_report").joinpath("services.js").read_text(encoding="utf-8")),
        regression=[
            [
                one.resource,
                f"{one.services:,}",
                f"{one.effective_rank:,.1f}",
                f"{one.identified:,}",
                "–" if one.load_share is None else f"{one.load_share:.0%}",
                f"{one.from_nodes:,}",
                one.advice if one.is_poor else "",
            ]
            for one in report.regression.values()
        ],
        capacities=[
            [
                f"{one.resource}, nodes of {one.cpu_cores:g} cores",
                str(one.nodes),
                amount(one.sustained, _UNITS[one.resource]),
                f"{amount(one.capacity, _UNITS[one.resource])} (assumed)",
            ]
            for one in report.capacities.assumed
        ],
        capacity_gaps=report.capacities.gaps,
        measured=_measured(report),
        cleaning=report.cleaning,
        cut=_cut_rows(report),
        durations=[[stage, f"{seconds:,.1f} s"] for stage, seconds in report.stage_seconds.items()],
        zone=report.time_zone,
    )


def _summary(report: RunReport) -> str:
    what = f"published {report.version}" if report.version else "nothing was published"
    recorded = "" if report.recorded_share is None else f"; {report.recorded_share:.0%} read through recording rules"
    return (
        f"{what}: learned from {len(report.days)} days, {report.days[0]} to {report.days[-1]}{recorded}; "
        f"forecasts from {report.first_day} on"
    )


def _tiles(report: RunReport) -> list[tuple[str, str]]:
    held_back = report.gate.with_verdict(GateVerdict.HELD_BACK)
    left_out = report.gate.with_verdict(GateVerdict.LEFT_OUT)
    owners, known = report.job_owners
    last = np.array([value for value in report.measured[:, -1] if value > 0])
    return [
        ("services", f"{len(report.services):,}"),
        *([("Job owners with known run lengths", f"{known:,} of {owners:,}")] if owners else []),
        ("nodes", f"{report.n_nodes:,}"),
        ("days of history", f"{len(report.days):,}"),
        ("measured on the last day", f"{last.mean():.1%}" if len(last) else "–"),
        ("resources held back", ", ".join(held_back) or "none"),
        *([("resources left out", ", ".join(left_out))] if left_out else []),
        ("findings", f"{len(report.findings):,}"),
    ]


def _gate_row(result: GateResult) -> list[str]:
    scores = [result.candidate, result.current, result.naive]
    losses = ["–" if s is None else f"{s.loss50 + s.loss95:.4f}" for s in scores]
    coverage = "–" if result.candidate is None else f"{result.candidate.coverage95:.1%}"
    return [result.resource, _VERDICTS[result.verdict], *losses, coverage, f"{result.widening:.2f}", result.reason]


def _issued_plots(scores: tuple[IssuedScore, ...]) -> Markup:
    coverage, loss = go.Figure(), go.Figure()
    for resource, colour in _COLOURS.items():
        rows = [(score.day.isoformat(), score.scores[resource]) for score in scores if resource in score.scores]
        for figure, values in (
            (coverage, [s.coverage95 for _, s in rows]),
            (loss, [s.loss50 + s.loss95 for _, s in rows]),
        ):
            figure.add_trace(line([day for day, _ in rows], values, colour, name=resource, mode="lines+markers"))
    for figure in (coverage, loss):
        figure.update_xaxes(type="category", nticks=10)  # one day alone would get an axis of milliseconds
    coverage.add_hline(y=0.95, line=DOTTED)
    coverage.update_yaxes(title="peaks within the 0.95 bound", tickformat=".0%")
    loss.update_yaxes(title="loss (share of the peaks)", rangemode="tozero")
    return drawn(coverage, height=320, legend_y=1.15) + drawn(loss, height=320, legend_y=1.15)


def _issued_row(score: IssuedScore) -> list[str]:
    return [
        score.day.isoformat(),
        f"{score.lead_days} d",
        *(
            f"{s.loss50 + s.loss95:.3f} / {s.coverage95:.0%}" if (s := score.scores.get(r.name)) else "–"
            for r in RESOURCES
        ),
    ]


def _moves(changes: Changes) -> list[list[str]]:
    return [
        [
            move.service,
            move.resource,
            amount(move.before, _UNITS[move.resource]),
            amount(move.after, _UNITS[move.resource]),
            f"{move.after / move.before - 1:+.0%}" if move.before > 0 else "from 0",
            f"{move.share_of_cluster:+.2%}",
        ]
        for move in changes.moved[:_SHOWN]
    ]


def _remarks(service: LearnedService) -> str:
    """What is special about a service, in words that the filter of the page finds."""
    marks = ("autoscaled", service.autoscaled), ("young", service.young), ("hidden demand", service.hidden_demand)
    words = [word for word, is_so in marks if is_so]
    if service.runs is not None:
        length = service.runs.median_seconds
        words.append("job" if length is None else f"job, runs {length / 60:,.0f} min")
    return " ".join(words)


def _services(report: RunReport) -> dict[str, Any]:
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
    return {"resources": [[resource.name, resource.unit] for resource in RESOURCES], "rows": rows}


def _measured(report: RunReport) -> Markup:
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
    return drawn(figure, height=260)


def _cut_rows(report: RunReport) -> list[list[str]]:
    services, nodes = report.names
    return [
        [
            services[one.service],
            nodes[one.node],
            RESOURCES[one.resource].name,
            f"{one.slots:,}",
            f"{one.ratio:,.1f}" if np.isfinite(one.ratio) else "the node used nothing",
        ]
        for one in report.cut
    ]
