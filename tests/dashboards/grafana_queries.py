"""What Grafana would ask Prometheus for a dashboard: every query of its JSON, with its variables filled in.

As grafana-data and the Prometheus data source do it: `All` is the variable's allValue, several values are a regex;
$__interval is the time range over the panel's width, $__rate_interval is at least four scrapes (v11.6,
packages/grafana-prometheus/src/datasource.ts).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

_SCRAPE_SECONDS: Final = 15
"""Grafana's default for a data source that does not say how often it is scraped."""

_POINTS: Final = 1000
_UNITS: Final = {"m": 60, "h": 3600, "d": 86_400}
_LABEL_VALUES: Final = re.compile(r"label_values\((.+), *(\w+)\)")


@dataclass(frozen=True, slots=True)
class Asked:
    """where: dashboard, panel and letter of the query; seconds: how far back the dashboard shows at first."""

    where: str
    query: str
    is_instant: bool
    seconds: int


def panel_queries(name: str, dashboard: Mapping[str, Any]) -> Iterator[Asked]:
    """Of all panels."""
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            where = f"{name}: {panel['title']}: {target['refId']}"
            yield Asked(where, target["expr"], bool(target.get("instant")), _shown(dashboard))


def annotation_queries(name: str, dashboard: Mapping[str, Any]) -> Iterator[Asked]:
    """Of all annotations."""
    for one in dashboard["annotations"]["list"]:
        yield Asked(f"{name}: {one['name']}", one["expr"], False, _shown(dashboard))


def variable_queries(name: str, dashboard: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Where, series and label of all variables that are filled from Prometheus."""
    for one in dashboard["templating"]["list"]:
        if one["type"] == "query":
            match = _LABEL_VALUES.fullmatch(one["query"])
            assert match is not None, one["query"]
            yield f"{name}: ${one['name']}", match[1], match[2]


def filled_in(query: str, dashboard: Mapping[str, Any], seconds: int, chosen: Mapping[str, str]) -> tuple[str, int]:
    """The query as it is sent, and its step. seconds: of the time shown; chosen: variables that are not All."""
    step = max(_SCRAPE_SECONDS, -(-seconds // _POINTS))
    values = {
        "__interval": f"{step}s",
        "__rate_interval": f"{max(step + _SCRAPE_SECONDS, 4 * _SCRAPE_SECONDS)}s",
        "__range": f"{seconds}s",
    }
    for one in dashboard["templating"]["list"]:
        if one["type"] == "query":
            values[one["name"]] = chosen.get(one["name"], one["allValue"])
        elif one["type"] == "custom":
            values[one["name"]] = one["current"]["value"]
    for name in sorted(values, key=len, reverse=True):
        query = query.replace(f"${name}", values[name])
    assert "$" not in query, f"a variable that is not there: {query}"
    return query, step


def _shown(dashboard: Mapping[str, Any]) -> int:
    match = re.fullmatch(r"now-(\d+)([mhd])", dashboard["time"]["from"])
    assert match is not None, dashboard["time"]
    return int(match[1]) * _UNITS[match[2]]
