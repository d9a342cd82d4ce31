"""The report of a replay as one HTML file that needs nothing else: plotly's script is inside, once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from html import escape
from string import Template

from plotly.graph_objects import Figure
from plotly.offline import get_plotlyjs

from forecast.history import History
from forecast.html_page import html_page
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

_BODY = Template("""<h1>What placing by the predicted peak changes</h1>
<p>$pods pods on $nodes nodes, placed anew on $first at $hour and played back for $days days as they really went
($born pods were born later, as recorded). Seed $seed. The forecast knows only what lay before the placement.</p>
<div class="tiles">$tiles</div>
<section><h2>Before and after</h2>
<p>CPU of every node over the days. Yellow to red is above 80 % of capacity.</p>$before_after</section>
<section><h2>Daily peaks of the nodes</h2>
<p>The flatter the line, the more evenly the evening is shared. No forecast can do better than the true future.</p>
$peaks</section>
<section><h2>Nodes over time</h2>
<p>Line: the middle node. Dark band: eight of ten nodes. Light band: all of them.</p>$over_time</section>
<section><h2>All rules</h2>
<p>Hot: CPU, disk, network or log above 80 % of capacity. Per resource: how uneven the nodes' daily peaks are
(coefficient of variation), and beside it their 99th percentile. Bound held: node-days whose CPU peak stayed within the
forecast's 0.95 bound. Unplaced: pods whose requests fitted nowhere; they went to one of the least overcommitted
nodes. $assumed</p>
<div class="scroll">$rules</div>$notes</section>
<section><h2>When something is missing</h2>
<p>The degradation ladder, each rung measured on the same pods.</p><div class="scroll">$ladder</div></section>
<section><h2>Forecast and what came</h2>
<p>The services with the highest CPU peaks: all their pods together.</p>$services</section>
<footer>Times are local ($zone). A day is 24 hours from the placement.</footer>""")


def html_report(replay: Replay, history: History) -> str:
    """Return one HTML page with the plots of a replay; it needs no other file."""
    window = replay.window
    at = f"{window.first_slot // 2:02d}:{window.first_slot % 2 * 30:02d}"
    body = _BODY.substitute(
        first=window.days[0].isoformat(),
        hour=at,
        days=window.n_days,
        pods=f"{int((replay.recording.birth == 0).sum()):,}",
        born=f"{int((replay.recording.birth > 0).sum()):,}",
        nodes=replay.recording.n_nodes,
        seed=replay.seed,
        zone=escape(history.calendar.time_zone),
        assumed=_assumed(replay),
        tiles=_tiles(replay),
        before_after=_plot(plots.before_and_after(replay)),
        peaks=_plot(plots.evening_peaks(replay)),
        over_time=_plot(plots.nodes_over_time(replay)),
        rules=_table(replay.figures, plots.LABELS, replay.attributed),
        notes=_notes(replay),
        ladder=_table(replay.ladder, RUNGS, replay.attributed),
        services=_plot(plots.services_forecast_and_actual(replay, history)),
    )
    return html_page(f"Replay {window.days[0]} to {window.days[-1]}", body, scripts=[get_plotlyjs()])


def _assumed(replay: Replay) -> str:
    """Returns a sentence about capacities that are assumed, "" if all are known."""
    names = ", ".join(replay.to_json()["assumed_capacities"])
    return f"Capacities of {names} are assumed: they make no node hot." if names else ""


def _plot(figure: Figure) -> str:
    return str(figure.to_html(include_plotlyjs=False, full_html=False, config={"displayModeBar": False}))


def _tiles(replay: Replay) -> str:
    native, ours = replay.figures["native"], replay.figures["forecast"]
    closed = replay.gap_closed()["hot_share"]
    tiles = [
        ("node half hours that are hot", f"{native.hot_share:.1%}", f"{ours.hot_share:.2%}"),
        *(
            (title, form.format(getattr(native, name)["cpu"]), form.format(getattr(ours, name)["cpu"]))
            for title, name, form in (
                ("spread of the nodes' CPU peaks", "peak_cv", "{:.2f}"),
                ("99th percentile of CPU peaks", "p99_peak", "{:.0%}"),
            )
            if "cpu" in ours.peak_cv
        ),
    ]
    html = [
        f'<div class="tile"><small>{title}</small><b><span class="was">{was}</span> <span class="to">→</span> '
        f'<span class="is">{now}</span></b></div>'
        for title, was, now in tiles
    ]
    if closed is not None:
        html.append(
            '<div class="tile"><small>of the way from native to the true future (hot)</small>'
            f'<b><span class="is">{closed:.0%}</span></b></div>'
        )
    return "".join(html)


def _notes(replay: Replay) -> str:
    """What is known by regression only, and the gaps that cannot be closed."""
    lines = [regression_remark(name, figures.to_json()) for name, figures in replay.attributed.items()]
    lines += no_gap_remarks(replay.no_gap(), replay.figures["native"].peak_cv)
    return f"<p>{'<br>'.join(map(escape, lines))}</p>" if lines else ""


def _table(figures: Mapping[str, RuleFigures], labels: Mapping[str, str], marked: Collection[str]) -> str:
    resources = list(next(iter(figures.values())).peak_cv)
    heads = [f"{name}*" if name in marked else name for name in resources]
    rows = [_row("th", ["", "hot", *heads, "CPU max", "bound held", "unplaced"])]
    for name, f in figures.items():
        held = f.bound_coverage.get("cpu")
        cells = [
            escape(labels.get(name, name)),
            f"{f.hot_share:.2%}",
            *(f"{f.peak_cv[r]:.3f} <i>{f.p99_peak[r]:.0%}</i>" for r in resources),
            f"{f.max_peak['cpu']:.0%}" if "cpu" in f.max_peak else "–",
            f"{held.coverage:.1%}" if held else "–",
            f"{f.unplaced:,}",
        ]
        rows.append(_row("td", cells, ours=name == "forecast"))
    return f"<table>{''.join(rows)}</table>"


def _row(tag: str, cells: Iterable[str], *, ours: bool = False) -> str:
    inner = "".join(f"<{tag}>{cell}</{tag}>" for cell in cells)
    return f"<tr{' class=ours' if ours else ''}>{inner}</tr>"
