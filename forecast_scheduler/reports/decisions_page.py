"""The report on decisions as one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from html import escape
from string import Template
from typing import Any

from forecast.html_page import html_page, html_table
from forecast_scheduler.reports.decisions_tables import (
    AGREEMENT_HEADER,
    PODS,
    agreement_rows,
    comparison_notes,
    figure_rows,
)

_HEADING = "What was advised, and what kube-scheduler did"

_COUNT = Template("<p>$decisions decisions from $first to $last.</p>")

_AGREEMENT = Template("""<section><h2>Agreement</h2>
<p>By rung of the degradation ladder. Late: kube-scheduler was given neutral scores because the deadline had passed.</p>
<div class="scroll">$table</div></section>""")

_PLACEMENTS = Template("""<div class="tiles">$tiles</div>
<section><h2>The nodes, $first to $last</h2>
<p>Hot: CPU, disk, network or log above 80 % of capacity. CV: how uneven the nodes' daily peaks are. The shadow is the
measured usage of each pod, moved to the node that was advised for it.</p>
<div class="scroll">$nodes</div></section>
<section><h2>Hot node half hours, day by day</h2><div class="scroll">$days</div></section>
<section><h2>The pods</h2><p>$notes</p><div class="scroll">$pods</div></section>""")

_TILE = Template("""<div class="tile"><small>$title</small><b><span class="was">$was</span> <span class="to">→</span>
<span class="is">$now</span></b></div>""")


def report_page(figures: Mapping[str, Any]) -> str:
    """The whole page, from what `--json` writes."""
    return html_page("Decisions", f"<h1>{_HEADING}</h1>{_count(figures)}{_figures(figures)}")


def decision_sections(figures: Mapping[str, Any]) -> str:
    """The same as a part of another page."""
    return f"<section><h2>{_HEADING}</h2>{_count(figures)}</section>{_figures(figures)}"


def _count(figures: Mapping[str, Any]) -> str:
    decisions = figures["decisions"]
    count, first, last = f"{decisions['all']['decisions']:,}", escape(decisions["first"]), escape(decisions["last"])
    return _COUNT.substitute(decisions=count, first=first, last=last)


def _figures(figures: Mapping[str, Any]) -> str:
    placements = figures.get("placements")
    agreement = _AGREEMENT.substitute(table=html_table(AGREEMENT_HEADER, agreement_rows(figures["decisions"])))
    return ("" if placements is None else _placements(placements)) + agreement


def _placements(placements: Mapping[str, Any]) -> str:
    first, last = placements["days"]
    days = zip(placements["real"]["daily_hot_share"], placements["shadow"]["daily_hot_share"], strict=True)
    begin = date.fromisoformat(first)
    by_day = [
        (f"{begin + timedelta(days=n):%a %d %b}", f"{was:.2%}", f"{now:.2%}") for n, (was, now) in enumerate(days)
    ]
    return _PLACEMENTS.substitute(
        tiles=_tiles(placements["real"], placements["shadow"]),
        first=escape(first),
        last=escape(last),
        nodes=html_table(*figure_rows(placements)),
        days=html_table(("", "as measured", "shadow"), by_day),
        notes=escape(comparison_notes(placements)[-1]),
        pods=html_table(("", "pods"), [(PODS[key], f"{count:,}") for key, count in placements["pods"].items()]),
    )


def _tiles(real: Mapping[str, Any], shadow: Mapping[str, Any]) -> str:
    tiles = [("node half hours that are hot", f"{real['hot_share']:.2%}", f"{shadow['hot_share']:.2%}")]
    tiles += [
        (title, form.format(real[name]["cpu"]), form.format(shadow[name]["cpu"]))
        for title, name, form in (
            ("spread of the nodes' CPU peaks", "peak_cv", "{:.3f}"),
            ("highest CPU peak", "max_peak", "{:.0%}"),
        )
        if "cpu" in real[name] and "cpu" in shadow[name]
    ]
    return "".join(_TILE.substitute(title=title, was=was, now=now) for title, was, now in tiles)
