"""What `doctor`, `backtest`, `replay` and `capacity` find in a history, as tables for the terminal. They are read from
the same dictionaries that `--json` writes, so both agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from forecast.resources import RESOURCES, assumed_line
from forecast_scheduler.reports.money import capacity_money_lines
from forecast_scheduler.reports.table_format import number, plain, printable, titled_table
from scorer.load_scale import UNKNOWN, percent
from scorer.replay.remarks import no_gap_remarks, regression_remark

OURS = "forecast-scheduler"

UNITS: Mapping[str, tuple[float, str]] = {
    "cpu": (1.0, "cores"),
    "memory": (2.0**20, "MiB"),
    "disk": (1e6, "MB/s"),
    "network": (1e6, "MB/s"),
    "log": (1e3, "kB/s"),
}

_NOTABLE = 0.1
"""Share of the usage on nodes from which on a reader should know that it comes and goes with them."""


@dataclass(frozen=True, slots=True)
class ServicePeak:
    """One service's peak of one day, usage of one pod in base units: what was forecast, and what came."""

    service: str
    resource: str
    expected: float
    bound: float
    actual: float


def peaks_table(peaks: Sequence[ServicePeak], *, day: str) -> Table:
    """Forecast and actual peaks side by side."""
    title = f"Peak of one pod on {day}: forecast the midnight before, and what came"
    table = titled_table(title, "service", "resource", ">expected", ">95 % bound", ">actual", ">error")
    for peak in peaks:
        scale, unit = UNITS.get(peak.resource, (1.0, ""))
        table.add_row(
            peak.service,
            f"{peak.resource} ({unit})",
            *(f"{value / scale:.3g}" for value in (peak.expected, peak.bound, peak.actual)),
            f"{peak.expected / peak.actual - 1:+.0%}" if peak.actual else "–",
        )
    return table


def baselines_table(report: Mapping[str, Any]) -> Table:
    """Losses of every forecaster, one column per resource: loss50 / loss95, lower is better; ours first."""
    resources: Mapping[str, Mapping[str, Any]] = report["resources"]
    table = titled_table("Pinball loss of tomorrow's peak, quantiles 0.5 / 0.95 (lower is better)")
    table.add_column("forecaster")
    for resource in resources:
        table.add_column(resource, justify="right", no_wrap=True)
    rows = {OURS: {name: figures[OURS] for name, figures in resources.items()}}
    for name, figures in resources.items():
        for baseline, score in figures["baselines"].items():
            rows.setdefault(baseline, {})[name] = score
    for forecaster, scores in rows.items():
        cells = [_losses(scores.get(name)) for name in resources]
        table.add_row(forecaster, *cells, style="bold" if forecaster == OURS else None)
    coverage = [percent(figures[OURS].get("coverage95"), digits=1) for figures in resources.values()]
    table.add_section()
    table.add_row("peaks under our 95 % bound", *coverage)
    nodes = report.get("node_coverage95", {})
    table.add_row(
        "same, daily peaks of nodes", *(percent(nodes.get(name, {}).get("coverage"), digits=1) for name in resources)
    )
    return table


def rules_table(
    rules: Mapping[str, Mapping[str, Any]],
    *,
    title: str,
    gap_closed: Mapping[str, Any] | None = None,
    no_gap: Mapping[str, Any] | None = None,
    by_regression: Mapping[str, Mapping[str, Any]] | None = None,
) -> Table:
    """Figures of each placement rule, one row each; in the last row, the share of the gap to the oracle that is closed.

    no_gap        : reasons why a figure has none
    by_regression : resources that nodes are measured for and pods are not (scorer.replay.recording)
    """
    marked = by_regression or {}
    notes = [regression_remark(name, figures) for name, figures in marked.items()]
    # Memory cannot make a node hot, so no rule evens out its peaks.
    resources = list(
        dict.fromkeys(name for figures in rules.values() for name in figures["peak_cv"] if name != "memory")
    )
    spreads = (f">{name}{'*' if name in marked else ''} CV" for name in resources)
    whole_title = "\n".join([title, "CV = spread of the nodes' daily peaks", *notes])
    table = titled_table(whole_title, "rule", ">hot node-slots", *spreads, ">p99 cpu peak", wrap_first=False)
    for rule, figures in rules.items():
        table.add_row(
            rule,
            percent(figures["hot_share"], digits=2),
            *(number(figures["peak_cv"].get(name)) for name in resources),
            percent(figures["p99_peak"].get("cpu")),
            style="bold" if rule == "forecast" else None,
        )
    if gap_closed:
        closed = gap_closed["peak_cv"]
        table.add_section()
        table.add_row(
            "gap closed, oracle = 100 %",
            percent(gap_closed["hot_share"]),
            *(percent(closed.get(name)) for name in resources),
            "",
        )
    if no_gap:
        table.caption = "\n".join(no_gap_remarks(no_gap, resources)) or None
        table.caption_justify = "left"
    return table


def _losses(score: Mapping[str, float] | None) -> str:
    return f"{score['loss50']:.3f} / {score['loss95']:.3f}" if score else "–"


def capacity_tables(figures: Mapping[str, Any]) -> list[Table]:
    """Nodes by rule, and by hour of the day."""
    tables = [nodes_table(figures)]
    if figures["by_hour"] is not None:
        tables.append(_hours_table(figures["by_hour"]))
    return tables


def nodes_table(figures: Mapping[str, Any]) -> Table:
    """One row for each rule."""
    window = figures["window"]
    title = (
        f"Fewest nodes with at most {percent(figures['target'], digits=2)} hot node half hours, "
        f"{window['days']} days from {window['first_day']}; recorded: {figures['recorded']}"
    )
    money = figures["money"]
    has_reserve = figures["reserve"] is not None
    has_cost = any(one["cost_per_month"] is not None for one in figures["rules"].values())
    has_groups = len(figures["groups"]) > 1
    heads = [">nodes", ">hot", ">pods over requests", ">with requests kept"]
    heads += (
        [">with reserve"] * has_reserve
        + ([f">{money['currency']} a month", ">saved"] if has_cost else [])
        + ["made of"] * has_groups
    )
    table = titled_table(title, "rule", *heads, wrap_first=False)
    for rule, one in figures["rules"].items():
        cells = [
            _count(one["nodes"]),
            percent(one["hot_share"], digits=2),
            _count(one["pods_over_requests"]),
            _count(one["nodes_within_requests"]),
        ]
        cells += [_count(one["nodes_with_reserve"])] * has_reserve
        if has_cost:
            cells += [_whole(one["cost_per_month"]), _whole(money["saved_per_month"][rule])]
        cells += ["\n".join(plain(f"{count} x {name}") for name, count in one["mix"].items())] * has_groups
        table.add_row(rule, *cells, style="bold" if rule == "forecast" else None)
    return table


def capacity_lines(figures: Mapping[str, Any]) -> Iterator[str]:
    """What the tables do not say."""
    yield from window_lines(figures["window"])
    if assumed := assumed_line(figures["assumed_capacities"]):
        yield assumed
    missing = [rule for rule, nodes in figures["nodes"].items() if nodes is None]
    if missing:
        yield f"{', '.join(missing)}: no number, the search ends before the target holds (10 times the recorded nodes)"
    staying = [f"{name} {percent(share)}" for name, share in figures["stays_on_nodes"].items() if share >= _NOTABLE]
    if staying:
        yield (
            f"usage that is not of pods comes and goes with the nodes: {', '.join(staying)}. If it is work that has to "
            "stay, more nodes are needed than the table says."
        )
    if figures["searched_pods"] < figures["pods"]:
        yield (
            f"estimated from services with {figures['searched_pods']:,} of {figures['pods']:,} pods; "
            "the setting capacity.sample_pods: 0 places all of them"
        )
    yield from capacity_money_lines(figures)
    if figures["reserve"] is not None:
        reserve = figures["reserve"]
        lost = "one of {lose_zone_of} zones fails" if "lose_zone_of" in reserve else "{lose_nodes} of the nodes fail"
        lost = lost.format(**reserve)
        yield f"with reserve: {lost} in the busiest hour, which then holds the target on what remains"


def window_lines(window: Mapping[str, Any]) -> Iterator[str]:
    """What figures of a window without all weekdays are worth."""
    from scorer.replay.window import LEAST_DAYS_BEFORE, WHOLE_WEEK  # brings numpy, which `--help` does without

    if (days := window["days"]) < WHOLE_WEEK:
        learned, enough = window["learned_days"], LEAST_DAYS_BEFORE + WHOLE_WEEK + 1
        played = "1 day is" if days == 1 else f"{days} days are"
        yield (
            f"a first guess: {played} played, after {learned} to learn from. {enough} whole days of "
            "history have a week of both; weekdays that were not played may be busier."
        )


def _hours_table(by_hour: Mapping[str, Any]) -> Table:
    """Two rows of twelve hours for each estimate."""
    title = (
        "Nodes that the load of each hour would need, most of any day (estimate). In "
        f"{percent(by_hour['hours_under'])} of the half hours the forecast expects fewer than came"
    )
    table = titled_table(title, "hour", *(f">{hour:02d}" for hour in range(12)), wrap_first=False)
    for rule in ("forecast", "oracle"):
        for first in (0, 12):
            counts = by_hour[rule][first : first + 12]
            table.add_row(f"{rule}, {first:02d} to {first + 11:02d}", *(str(count) for count in counts))
    return table


def _count(value: int | None) -> str:
    return UNKNOWN if value is None else f"{value:,}"


def _whole(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:,.0f}"


def summary_lines(figures: Mapping[str, Any]) -> Iterator[str]:
    """What was looked at."""
    yield (
        f"{figures['days']} days ({figures['first_day']} to {figures['last_day']}, {figures['time_zone']}), "
        f"{figures['services']:,} services, {figures['nodes']:,} nodes: {len(figures['findings'])} findings"
    )


def findings_table(figures: Mapping[str, Any]) -> Table:
    """A row for each finding, with the share of the load that it touches."""
    names = [resource.name for resource in RESOURCES]
    table = titled_table(
        "Share of the load that each finding touches", "finding", ">services", ">nodes", wrap_first=False
    )
    for name in names:
        table.add_column(name, justify="right")
    for one in figures["findings"]:
        counts = [f"{count:,}" if count else "" for count in (one["services"], one["nodes"])]
        shares = one["load_share"]
        table.add_row(
            one["finding"], *counts, *("" if shares[name] == 0 else percent(shares[name], digits=1) for name in names)
        )
    return table


def finding_lines(figures: Mapping[str, Any]) -> Iterator[str]:
    """Each finding in words, with its largest examples and the way out."""
    for one in figures["findings"]:
        yield ""
        yield f"{one['finding']}: {printable(one['what'])}"
        for worst in one["worst"]:
            share = percent(worst["load_share"], digits=1)
            yield f"    {printable(worst['name'])}: {share} of {worst['resource']}, {worst['detail']}"
        yield f"    -> {one['what_to_do']}"
    yield ""
    if figures["not_found"]:
        yield f"looked for and not found: {', '.join(figures['not_found'])}"
    if figures["not_judged"]:
        named = ", ".join(f"{one['finding']} ({one['days_needed']} days)" for one in figures["not_judged"])
        yield f"not judged, the history is too short: {named}"
