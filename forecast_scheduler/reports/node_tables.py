"""Expected peaks of nodes as tables for the terminal: the hottest nodes, and what makes the peak of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from typing import Final

from rich.table import Table
from rich.text import Text

from base.load_colours import FULL_COLOUR, HOT_COLOUR
from cluster.degradation import Level
from cluster.predicted.node_load import NEXT_24_HOURS
from forecast_scheduler.reports.table_format import amount, plain, titled_table
from scorer.answers import NodeReport, Nodes, NodeSummary, Peak, PodOnNode
from scorer.highest_peak import bound_share, clock, peak_words
from scorer.load_scale import FULL_SHARE, UNKNOWN, percent

_BAR: Final = 40
"""Characters of a bar at 100 %."""


def nodes_table(found: Nodes, hot: float) -> Table:
    """One row per node, as listed. hot: share of its capacity above which a node is hot"""
    hours = "" if found.peak_hours is None else f", expected peaks of {_hours(found.peak_hours)}"
    title = f"{len(found.nodes)} of {found.n_nodes} nodes{hours}"
    remarks = ["; ".join(_remarks(node)) for node in found.nodes]
    columns = (
        "node",
        ">expected peak",
        ">upper bound (95 %)",
        "resource",
        "at",
        ">pods",
        *(("remarks",) if any(remarks) else ()),
    )
    table = titled_table(title, *columns, wrap_first=False)
    for node, remark in zip(found.nodes, remarks, strict=True):
        cells: list[str | Text] = [
            plain(node.name),
            *_cells(node.peak, found.now.date(), hot),
            str(node.pods),
            plain(remark),
        ]
        table.add_row(*cells[: len(columns)])
    return table


def node_tables(report: NodeReport, hot: float) -> Iterator[Table]:
    """The curve of the day, services by their share of the peak, and the largest pods with the best other node."""
    if report.peak is None:
        return
    yield _curve_table(report, report.peak, hot)
    yield _services_table(report, report.peak)
    if report.largest:
        yield _pods_table(report, report.peak)


def node_lines(report: NodeReport) -> Iterator[str]:
    """What no table says."""
    if not report.ready:
        yield "the node takes no new pods: it is not ready, or cordoned"
    if report.level != Level.FRESH:
        yield f"the forecast is degraded: {_words(report.level)}"
    yield from report.notes
    if any(one.better is not None for one in report.largest):
        yield (
            "nothing is moved: a pod may go where its constraints and requests allow, and its controller makes it anew "
            "after a deletion; check spread and affinity with `forecast-scheduler explain`"
        )


def _hours(peak_hours: str) -> str:
    return f"the {peak_hours}" if peak_hours == NEXT_24_HOURS else peak_hours


def _cells(peak: Peak | None, today: date, hot: float) -> tuple[Text, str, str, str]:
    if peak is None:
        return Text(UNKNOWN), UNKNOWN, "", ""
    return _coloured(peak.share, hot), percent(bound_share(peak)), peak.resource, clock(peak.at, today)


def _remarks(node: NodeSummary) -> Iterator[str]:
    if not node.ready:
        yield "takes no pods"
    if node.peak is not None and node.peak.assumed:
        yield "assumed capacity"
    if node.level != Level.FRESH:
        yield _words(node.level)


def _words(level: Level) -> str:
    return level.name.lower().replace("_", " ")


def _coloured(share: float | None, hot: float) -> Text:
    style = "" if share is None or share <= hot else HOT_COLOUR if share <= FULL_SHARE else FULL_COLOUR
    return Text(percent(share), style=style)


def _curve_table(report: NodeReport, peak: Peak, hot: float) -> Table:
    """One row per hour: the higher of its half hours."""
    today = report.now.date()
    title = f"{plain(report.name)}, {_hours(report.peak_hours or '')}: {peak_words(peak, today)}, {report.pods} pods"
    table = titled_table(title, "hour", "expected", ">share", ">upper bound (95 %)", wrap_first=False)
    capacity = peak.capacity or float("nan")
    for begin, end in _hours_of(report.starts):
        expected, bound = (max(curve[begin:end]) / capacity for curve in (report.expected, report.bound))
        bar = "█" * min(round(_BAR * max(expected, 0.0)), 2 * _BAR)
        share = _coloured(expected, hot)
        hour = clock(report.starts[begin].replace(minute=0), today)
        table.add_row(hour, Text(bar, style=share.style), share, percent(bound))
    return table


def _hours_of(starts: Sequence[datetime]) -> Iterator[tuple[int, int]]:
    """Where the half hours of each hour begin and end: a list that begins at 21:30 has one of 21:00."""
    begin = 0
    for at in range(1, len(starts) + 1):
        if at == len(starts) or (starts[at].date(), starts[at].hour) != (starts[begin].date(), starts[begin].hour):
            yield begin, at
            begin = at


def _services_table(report: NodeReport, peak: Peak) -> Table:
    title = f"What makes the peak: expected {peak.resource} at {clock(peak.at, report.now.date())}"
    table = titled_table(title, "service", ">pods", f">{peak.resource}", ">share", wrap_first=False)
    for one in report.services:
        table.add_row(plain(one.service), str(one.pods), amount(one.usage, peak.unit), percent(one.share))
    total = report.besides_pods + sum(one.usage for one in report.services)
    share = report.besides_pods / total if total > 0 else None
    table.add_row("(besides pods)", "", amount(report.besides_pods, peak.unit), percent(share))
    return table


def _pods_table(report: NodeReport, peak: Peak) -> Table:
    title = "What helps: the best other node for each of the largest pods, and the expected peaks without and with it"
    table = titled_table(
        title, "pod", f">{peak.resource}", "best other node", "this node", "that node", wrap_first=False
    )
    for one in report.largest:
        table.add_row(plain(one.pod), amount(one.usage, peak.unit), *_better_cells(one, peak))
    return table


def _better_cells(one: PodOnNode, peak: Peak) -> tuple[str, str, str]:
    if one.better is None:
        return plain(one.why_not), "", ""
    better = one.better
    here = f"{percent(peak.share)} → {percent(better.here_without.share)}"
    there = f"{percent(better.there_before.share)} → {percent(better.there_with.share)}"
    return plain(better.node), here, there
