"""The report on decisions, from the same dictionaries that `--json` writes: for the terminal, and as one HTML page
that needs nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from operator import itemgetter
from typing import Any

from rich.table import Table

from base.html_report import html_report
from forecast_scheduler.reports.table_format import Column, number, table_of
from scorer.load_scale import percent

AGREEMENT_HEADER = ("level", "decisions", "went to the node advised", "or to one as good", "late")
LABELS = {"real": "kube-scheduler, as measured", "shadow": "forecast-scheduler, shadow"}

PODS = {
    "moved": "moved to the node advised",
    "agrees": "went where we would have them",
    "late": "advice was late",
    "no_advice": "no node was advised",
    "not_found": "not in the history",
    "elsewhere": "on another node in the history than in the log",
    "no_node": "on or advised to a node that is not measured or of unknown capacity",
}
"""What became of the pods of the log; all but the first stayed."""


def agreement_rows(decisions: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """A row for each rung, and one for all where there are several."""
    rows = dict(decisions["by_level"])
    if len(rows) > 1:
        rows["all"] = decisions["all"]
    return [
        (
            level,
            f"{figures['decisions']:,}",
            percent(figures["as_advised"] / figures["decisions"], digits=1),
            percent(figures["agreement"], digits=1),
            f"{figures['late']:,}",
        )
        for level, figures in rows.items()
    ]


def agreement_table(decisions: Mapping[str, Any]) -> Table:
    """How often kube-scheduler did what was advised."""
    n_decisions, n_shadow = decisions["all"]["decisions"], decisions["shadow"]
    mode = "shadow" if n_shadow == n_decisions else "active" if not n_shadow else f"{n_shadow:,} of them shadow"
    title = f"{n_decisions:,} decisions ({mode}), {decisions['first']} to {decisions['last']}"
    return _rows_table(title, AGREEMENT_HEADER, agreement_rows(decisions))


def _rows_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], **options: Any) -> Table:
    heads = [header[0], *(f">{name}" for name in header[1:])]
    return table_of(title, [Column(head, itemgetter(n)) for n, head in enumerate(heads)], rows, **options)


def figure_rows(placements: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Header and rows: hot share, per resource that makes nodes hot its spread of peaks, highest and p99 CPU peak."""
    real = placements["real"]
    resources = [name for name in real["peak_cv"] if name != "memory"]
    header = ["placement", "hot node-slots", *(f"{name} CV" for name in resources), "highest cpu peak", "p99 cpu peak"]
    rows = []
    for key, label in LABELS.items():
        figures = placements[key]
        spread = (figures["peak_cv"].get(name) for name in resources)
        rows.append(
            [
                label,
                percent(figures["hot_share"], digits=2),
                *map(number, spread),
                percent(figures["max_peak"].get("cpu")),
                percent(figures["p99_peak"].get("cpu")),
            ]
        )
    return header, rows


def comparison_table(placements: Mapping[str, Any]) -> Table:
    """What the nodes used, and what they would have used."""
    first, last = placements["days"]
    header, rows = figure_rows(placements)
    title = (
        f"{placements['nodes']} nodes, {placements['n_days']} days, {first} to {last}\n"
        "CV = spread of the nodes' daily peaks"
    )
    table = _rows_table(title, header, rows, wrap_first=False)
    table.rows[-1].style = "bold"
    return table


def comparison_notes(placements: Mapping[str, Any]) -> list[str]:
    """What the figures rest on, a line each."""
    lines = [f"{count:>7,} pods {PODS[key]}" for key, count in placements["pods"].items() if count or key == "moved"]
    moved, measured = (percent(placements[name], digits=1) for name in ("moved_cpu_share", "measured_share"))
    most = f"{placements['most_on_one_node']:,}"
    return [
        *lines,
        f"moved: {moved} of all CPU used, up to {most} pods to one node; {measured} of node half hours measured",
    ]


def decisions_page(figures: Mapping[str, Any]) -> str:
    """One HTML page from the figures that `--json` writes; it needs no other file."""
    return html_report("forecast_scheduler/reports/decisions.html.j2", title="Decisions", **decision_values(figures))


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
