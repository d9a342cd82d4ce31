"""The figures of `capacity` on the terminal, from the dictionary that `--json` writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table

from forecast_scheduler.reports.table_format import UNKNOWN, percent, plain, titled_table

_NOTABLE = 0.1
"""Share of the usage on nodes from which on a reader should know that it comes and goes with them."""


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
    has_reserve, has_cost = (
        figures["reserve"] is not None,
        any(one["cost"] is not None for one in figures["rules"].values()),
    )
    has_groups = len(figures["groups"]) > 1
    heads = [">nodes", ">hot", ">pods over requests", ">with requests kept"]
    heads += [">with reserve"] * has_reserve + [">cost"] * has_cost + ["made of"] * has_groups
    table = titled_table(title, "rule", *heads, wrap_first=False)
    for rule, one in figures["rules"].items():
        cells = [
            _count(one["nodes"]),
            percent(one["hot_share"], digits=2),
            _count(one["pods_over_requests"]),
            _count(one["nodes_within_requests"]),
        ]
        cells += [_count(one["nodes_with_reserve"])] * has_reserve
        cells += [UNKNOWN if one["cost"] is None else f"{one['cost']:,.2f}"] * has_cost
        cells += ["\n".join(plain(f"{count} x {name}") for name, count in one["mix"].items())] * has_groups
        table.add_row(rule, *cells, style="bold" if rule == "forecast" else None)
    return table


def capacity_lines(figures: Mapping[str, Any]) -> Iterator[str]:
    """What the tables do not say."""
    missing = [rule for rule, nodes in figures["nodes"].items() if nodes is None]
    if missing:
        yield f"{', '.join(missing)}: no number, the search ends before the target holds (setting capacity.most)"
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
    if figures["reserve"] is not None:
        reserve = figures["reserve"]
        lost = "one of {lose_zone_of} zones fails" if "lose_zone_of" in reserve else "{lose_nodes} of the nodes fail"
        lost = lost.format(**reserve)
        yield f"with reserve: {lost} in the busiest hour, which then holds the target on what remains"


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
