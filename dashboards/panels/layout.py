"""Rows of panels -> a dashboard as JSON: ids, positions, links between ours, and marks of what changed when.

The same code gives the same bytes, so that what changes in a dashboard is seen as lines. Ids follow from the order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as models

from dashboards.panels.plots import Limits, Plot, Query, values
from dashboards.panels.selecting import SOURCE, Variable, data_source
from dashboards.panels.units import COUNT
from trainer.prometheus.label_selectors import with_labels

TAG: Final = "forecast-scheduler"
"""Of all our dashboards: the menu at the top of each lists those with this tag."""

_WIDTH: Final = 24
_LABEL_VALUES: Final = re.compile(r"label_values\((.+), (\w+)\)")
"""What variables ask: Grafana's own function, whose second argument is no query."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A panel and its size in cells of Grafana's grid of 24 columns; a cell is 30 pixels high.

    repeat : variable for each of whose values there is such a panel, below one another
    """

    plot: Plot
    width: int = 12
    height: int = 8
    repeat: str = ""


def figure(title: str, text: str, expr: str, unit: str = COUNT, limits: Limits = (), *, width: int = 4) -> Placed:
    """One number, in a row of them."""
    return Placed(values(title, text, Query(expr), unit=unit, limits=limits), width=width, height=4)


@dataclass(frozen=True, slots=True)
class Part:
    """A row: a title, and panels side by side as long as they fit."""

    title: str
    panels: Sequence[Placed]
    repeat: str = ""


@dataclass(frozen=True, slots=True)
class Annotation:
    """Marks moments at which a query returns something."""

    name: str
    query: Query
    color: str


@dataclass(frozen=True, slots=True)
class Board:
    """uid: stays, links lead to it. since: how far back is shown at first, such as now-6h."""

    uid: str
    title: str
    text: str
    parts: Sequence[Part]
    variables: Sequence[Variable]
    annotations: Sequence[Annotation]
    since: str


def json_text(board: Board, cluster: Mapping[str, str]) -> str:
    """As Grafana imports it, provisions it from a file, and exports it. cluster: labels that all queries select."""
    made = (
        build.Dashboard(board.title)
        .uid(board.uid)
        .description(board.text)
        .tags([TAG])
        .time(board.since, "now")
        .refresh("1m")
        .timezone("browser")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .editable()
        .link(
            build.DashboardLink("Forecast dashboards")
            .type(models.DashboardLinkType.DASHBOARDS)
            .tags([TAG])
            .as_dropdown(False)
            .include_vars(True)
            .keep_time(True)
        )
        .with_variable(data_source())
    )
    for variable in board.variables:
        made = made.with_variable(variable)
    for one in board.annotations:
        made = made.annotation(_annotation(one))
    dashboard: dict[str, Any] = json.loads(JSONEncoder().encode(made.build()))
    dashboard["panels"] = list(_panels(board.parts))
    for one, mark in zip(dashboard["annotations"]["list"], board.annotations, strict=True):
        one |= {"titleFormat": mark.name, "textFormat": mark.query.legend}  # the builder does not know them
    _narrow(dashboard, cluster)
    return json.dumps(dashboard, indent=2, sort_keys=True) + "\n"


def _narrow(dashboard: dict[str, Any], cluster: Mapping[str, str]) -> None:
    """Put the labels into the queries of panels, annotations and variables."""
    targets = (target for panel in dashboard["panels"] for target in panel.get("targets", ()))
    for one in (*targets, *dashboard["annotations"]["list"]):
        one["expr"] = with_labels(one["expr"], cluster)
    for variable in dashboard["templating"]["list"]:
        if match := _LABEL_VALUES.fullmatch(str(variable.get("query", ""))):
            variable["query"] = f"label_values({with_labels(match[1], cluster)}, {match[2]})"


def _annotation(one: Annotation) -> build.AnnotationQuery:
    return (
        build.AnnotationQuery()
        .name(one.name)
        .datasource(SOURCE)
        .enable(True)
        .hide(False)
        .icon_color(one.color)
        .built_in(0)
        .expr(one.query.expr)
    )


def _panels(parts: Sequence[Part]) -> Iterator[dict[str, Any]]:
    number, y = 0, 0
    for part in parts:
        number += 1
        row = build.Row(part.title).id(number).grid_pos(models.GridPos(h=1, w=_WIDTH, x=0, y=y))
        if part.repeat:
            row = row.repeat(part.repeat)
        yield _plain(row)
        y, x, height = y + 1, 0, 0
        for placed in part.panels:
            if x + placed.width > _WIDTH:
                x, y, height = 0, y + height, 0
            number += 1
            at = models.GridPos(h=placed.height, w=placed.width, x=x, y=y)
            panel: Any = placed.plot.id(number).grid_pos(at)
            if placed.repeat:
                panel = panel.repeat(placed.repeat).repeat_direction("v")
            yield _plain(panel)
            x, height = x + placed.width, max(height, placed.height)
        y += height


def _plain(builder: Any) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(JSONEncoder().encode(builder.build()))
    return made
