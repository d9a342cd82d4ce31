"""Expected peaks of nodes as tables for the terminal: the hottest nodes, and what makes the peak of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from typing import Final

from rich.table import Table
from rich.text import Text

from autoscaling.prices.node_prices import HOURS_PER_MONTH, NodePrice, NodePrices
from base.load_colours import FULL_COLOUR, HOT_COLOUR
from cluster.degradation import Level
from cluster.predicted.node_load import NEXT_24_HOURS
from forecast_scheduler.reports.table_format import amount, plain, printable, short_duration, titled_table
from scorer.answers import NodeReport, Nodes, NodeSummary, Peak, PodOnNode
from scorer.highest_peak import bound_share, clock, peak_words
from scorer.load_scale import FULL_SHARE, UNKNOWN, percent

_BAR: Final = 40
"""Characters of a bar at 100 %."""


def nodes_table(found: Nodes, hot: float, prices: NodePrices | None = None) -> Table:
    """One row per node, as listed.

    hot    : share of its capacity above which a node is hot
    prices : None, or of no node = without a column of them
    """
    costs = prices.by_node if prices is not None else {}
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
        *((f">{prices.currency} a month",) if prices is not None and costs else ()),
        *(("remarks",) if any(remarks) else ()),
    )
    table = titled_table(title, *columns, wrap_first=False)
    for node, remark in zip(found.nodes, remarks, strict=True):
        cells: list[str | Text] = [
            plain(node.name),
            *_cells(node.peak, found.now.date(), hot),
            str(node.pods),
            *((_month(costs.get(node.name)),) if costs else ()),
            plain(remark),
        ]
        table.add_row(*cells[: len(columns)])
    return table


def _month(price: NodePrice | None) -> str:
    return UNKNOWN if price is None else f"{HOURS_PER_MONTH * price.per_hour:,.2f}"


def node_tables(report: NodeReport, hot: float) -> Iterator[Table]:
    """What is measured beside what is expected, the curve of the day, services by their share of the peak, and the
    largest pods with the best other node."""
    if report.resources:
        yield _now_table(report, hot)
    if report.peak is None:
        return
    yield _curve_table(report, report.peak, hot)
    yield _services_table(report, report.peak)
    if report.largest:
        yield _pods_table(report, report.peak)


def node_lines(report: NodeReport) -> Iterator[str]:
    """What no table says."""
    if report.not_measured:
        yield f"nothing is measured of this node now: {report.not_measured}"
    if not report.ready:
        yield "the node takes no new pods: it is not ready, or cordoned"
    if report.level != Level.FRESH:
        yield f"the forecast is degraded: {_words(report.level)}"
    yield from report.notes
    if any(one.better is not None for one in report.largest):
        yield (
            "nothing is moved, and each pod is looked at alone; `forecast-scheduler relieve` says which together make "
            f"{printable(report.name)} cool, where they land, and the commands"
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


def _now_table(report: NodeReport, hot: float) -> Table:
    """One row per resource: now, and what is left of today."""
    ago = "" if report.measured_seconds_ago is None else f", measured {short_duration(report.measured_seconds_ago)} ago"
    table = titled_table(
        f"{plain(report.name)} now{ago}, and its expected peaks in the rest of today, with their upper bounds (95 %)",
        "resource",
        ">measured",
        ">",
        ">expected",
        ">upper bound",
        ">peak to come",
        ">upper bound",
        wrap_first=False,
    )
    for one in report.resources:
        measured, expected, bound = (_of(value, one.capacity) for value in (one.measured, one.expected, one.bound))
        rest = one.rest_of_day
        table.add_row(
            one.resource,
            UNKNOWN if one.measured is None else amount(one.measured, one.unit),
            _coloured(measured, hot),
            percent(expected),
            percent(bound),
            UNKNOWN if rest is None else f"{percent(rest.share)} at {clock(rest.at, report.now.date())}",
            UNKNOWN if rest is None else percent(bound_share(rest)),
        )
    return table


def _of(value: float | None, capacity: float | None) -> float | None:
    return None if value is None or not capacity else value / capacity


def _curve_table(report: NodeReport, peak: Peak, hot: float) -> Table:
    """One row per half hour of today, later one per hour: the higher of its half hours."""
    today = report.now.date()
    title = f"{plain(report.name)}, {_hours(report.peak_hours or '')}: {peak_words(peak, today)}, {report.pods} pods"
    table = titled_table(title, "from", "expected", ">share", ">upper bound (95 %)", wrap_first=False)
    capacity = peak.capacity or float("nan")
    for begin, end in _rows_of(report.starts, today):
        expected, bound = (max(curve[begin:end]) / capacity for curve in (report.expected, report.bound))
        bar = "█" * min(round(_BAR * max(expected, 0.0)), 2 * _BAR)
        share = _coloured(expected, hot)
        table.add_row(clock(report.starts[begin], today), Text(bar, style=share.style), share, percent(bound))
    return table


def _rows_of(starts: Sequence[datetime], today: date) -> Iterator[tuple[int, int]]:
    """Where each half hour of today begins and ends, and each hour of later days."""
    begin = 0
    for at in range(1, len(starts) + 1):
        one = starts[begin]
        if at == len(starts) or one.date() == today or (starts[at].date(), starts[at].hour) != (one.date(), one.hour):
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
    title = (
        f"What helps, {peak.resource} in {peak.unit}: the best other node for each of the largest pods, and the "
        f"expected peaks with it there (here {percent(peak.share)} with it)"
    )
    columns = ("pod", ">measured", ">expected", ">at peak", "best node", ">here", ">there")
    table = titled_table(title, *columns)
    table.columns[0].overflow = "fold"  # a name is typed: it must be there whole
    for one in report.largest:
        used = (_amount(of, peak.unit) for of in (one.measured_now, one.expected_now, one.usage))
        table.add_row(plain(one.pod), *used, *_better_cells(one))
    return table


def _amount(value: float | None, unit: str) -> str:
    return UNKNOWN if value is None else amount(value, unit).removesuffix(f" {unit}")


def _better_cells(one: PodOnNode) -> tuple[str, str, str]:
    if one.better is None:
        return plain(one.why_not), "", ""
    better = one.better
    return plain(better.node), f"→ {percent(better.here_without.share)}", f"→ {percent(better.there_with.share)}"
