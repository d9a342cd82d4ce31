"""Recommended requests on the terminal, from the dictionary that `requests --json` writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from rich.table import Table

from forecast_scheduler.reports.money import request_money_lines
from forecast_scheduler.reports.table_format import amount, plain, titled_table
from scorer.load_scale import UNKNOWN, percent

_SHOWN: Final = 50
_NAMED: Final = 10


def request_table(figures: Mapping[str, Any]) -> Table:
    """A row for each service with a recommendation, those that save most cores first."""
    found = sorted(_recommended(figures), key=lambda one: -one["saved_cores"])
    has_risk = figures["risk"] is not None
    heads = [">pods", ">CPU", "by hour", ">memory", ">cores\nsaved"]
    table = titled_table("Requests of one pod: today, and recommended", "service", *heads, *[">over"] * has_risk)
    for one in found[:_SHOWN]:
        hours = "\n".join(f"{plain(name)}: {cores}" for name, cores in (one["by_hour"] or {}).items())
        cells = [
            f"{one['pods']:.0f}",
            _change(one, "cpu"),
            hours,
            _change(one, "memory"),
            f"{one['saved_cores']:+.2f}",
        ]
        table.add_row(plain(one["service"]), *cells, *[percent(one.get("over_cpu"), digits=1)] * has_risk)
    return table


def _change(one: Mapping[str, Any], resource: str) -> str:
    """Two short lines leave room for the name of the service."""
    return f"{one['today'][resource] or UNKNOWN}\n-> {one['recommended'][resource] or UNKNOWN}"


def request_lines(figures: Mapping[str, Any]) -> Iterator[str]:
    """What the table does not say."""
    n_found, savings, risk = len(_recommended(figures)), figures["savings"], figures["risk"]
    if n_found > _SHOWN:
        yield f"and {n_found - _SHOWN} more services: --json FILE has all"
    yield f"sized: {figures['sized_by']}"
    yield (
        f"CPU: {amount(savings['cores_today'], 'cores')} requested today, "
        f"{amount(savings['cores_recommended'], 'cores')} recommended, "
        f"{amount(savings['cores_by_clock'], 'cores')} on average where requests follow the hour"
    )
    yield (
        f"memory: {amount(savings['bytes_today'], 'bytes')} requested today, "
        f"{amount(savings['bytes_recommended'], 'bytes')} recommended"
    )
    fit = savings["pods_fit_today"], savings["pods_fit_recommended"]
    if None not in fit:
        yield f"all nodes together have room for {fit[0]:,} such pods by today's requests, for {fit[1]:,} by these"
    yield from request_money_lines(figures)
    if risk is not None:
        yield (
            f"usage of single pods passed the recommendation in {percent(risk['cpu'], digits=2)} of the half hours "
            f"that came (CPU; {percent(risk['cpu_by_hour'], digits=2)} of requests by the hour), and in "
            f"{percent(risk['memory'], digits=2)} (memory)"
        )
    hidden = [one for one in _recommended(figures) if one["hidden_demand"]]
    for one in hidden[:_NAMED]:
        yield f"{one['service']}: {one['hidden_demand']}"
    if len(hidden) > _NAMED:
        yield f"and {len(hidden) - _NAMED} more services with hidden demand: --json FILE has all"
    reasons = Counter(one["left_alone"] for one in figures["services"] if one["left_alone"])
    for why, count in reasons.most_common():
        yield f"{count} services keep their requests: {why}"


def _recommended(figures: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [one for one in figures["services"] if one["recommended"] is not None]
