"""Panels: how figures are drawn. Each says what it shows and how to read it, and has a unit.

lines     over time          values    single figures          bars    the highest of many
heat_map  a histogram        columns   a table, one column for each query
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from grafana_foundation_sdk.builders import bargauge, common, dashboard, heatmap, stat, table, timeseries
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.models import common as drawn
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models import heatmap as heat
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from dashboards.panels.selecting import SOURCE

Plot = bargauge.Panel | heatmap.Panel | stat.Panel | table.Panel | timeseries.Panel
Limits = Sequence[tuple[float, str]]
"""(from which value on, color), ascending; below the first it is green."""

GREEN: Final = "green"
ORANGE: Final = "orange"
RED: Final = "red"

_P = TypeVar("_P", bargauge.Panel, heatmap.Panel, stat.Panel, table.Panel, timeseries.Panel)


@dataclass(frozen=True, slots=True)
class Query:
    """expr: PromQL with variables; legend: {{label}} are filled in; style: of a line, solid, or one of those below."""

    expr: str
    legend: str = ""
    style: str = ""


_DASH: Final[Mapping[str, Sequence[int]]] = {"dashed": (8, 6), "dotted": (2, 6)}


def lines(
    title: str,
    text: str,
    *queries: Query,
    unit: str,
    limits: Limits = (),
    stacked: bool = False,
    inverted: bool = False,
    least: float | None = 0,
    most: float | None = None,
) -> timeseries.Panel:
    """Over time. Queries of style "dashed" or "dotted" are told from the others by that; limits are drawn as lines.

    inverted: low is bad;  least, most: of the axis, None = as the figures are
    """
    panel = (
        timeseries.Panel()
        .line_width(1)
        .fill_opacity(40 if stacked else 0)
        .show_points(drawn.VisibilityMode.NEVER)
        .legend(
            common.VizLegendOptions()
            .show_legend(True)
            .display_mode(drawn.LegendDisplayMode.LIST)
            .placement(drawn.LegendPlacement.BOTTOM)
        )
        .tooltip(common.VizTooltipOptions().mode(drawn.TooltipDisplayMode.MULTI).sort(drawn.SortOrder.DESCENDING))
    )
    if stacked:
        panel = panel.stacking(common.StackingConfig().mode(drawn.StackingMode.NORMAL))
    if least is not None:
        panel = panel.min(least)
    if most is not None:
        panel = panel.max(most)
    if limits:
        panel = panel.thresholds_style(common.GraphThresholdsStyleConfig().mode(drawn.GraphThresholdsStyleMode.DASHED))
    for ref, query in zip(_refs(), queries, strict=False):
        if query.style:
            line = {"fill": "dash", "dash": list(_DASH[query.style])}
            panel = panel.override_by_query(ref, [models.DynamicConfigValue("custom.lineStyle", line)])
    return _described(panel, title, text, unit, limits, [_over_time(query) for query in queries], inverted=inverted)


def values(
    title: str,
    text: str,
    *queries: Query,
    unit: str,
    limits: Limits = (),
    inverted: bool = False,
    words: Mapping[int, str] | None = None,
) -> stat.Panel:
    """Single figures, now. words: what figures mean. inverted: low is bad."""
    panel = (
        stat.Panel()
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .color_mode(drawn.BigValueColorMode.VALUE if limits else drawn.BigValueColorMode.NONE)
        .graph_mode(drawn.BigValueGraphMode.NONE)
    )
    if words:
        options = {str(value): models.ValueMappingResult(text=word) for value, word in words.items()}
        panel = panel.mappings([models.ValueMap(options=options)])
    return _described(panel, title, text, unit, limits, [_now(query) for query in queries], inverted=inverted)


def bars(
    title: str, text: str, *queries: Query, unit: str, limits: Limits = (), most: float | None = None
) -> bargauge.Panel:
    """One bar for each series, now."""
    panel = (
        bargauge.Panel()
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .orientation(drawn.VizOrientation.HORIZONTAL)
        .display_mode(drawn.BarGaugeDisplayMode.GRADIENT)
        .min(0)
    )
    if most is not None:
        panel = panel.max(most)
    return _described(panel, title, text, unit, limits, [_now(query) for query in queries])


def heat_map(title: str, text: str, buckets: str, *, unit: str) -> heatmap.Panel:
    """buckets: increase of a histogram by le."""
    panel = (
        heatmap.Panel()
        .calculate(False)
        .color(
            heatmap.HeatmapColorOptions()
            .mode(heat.HeatmapColorMode.SCHEME)
            .scheme("Blues")
            .steps(32)
            .scale(heat.HeatmapColorScale.EXPONENTIAL)
            .exponent(0.5)
        )
        .y_axis(heatmap.YAxisConfig().unit(unit))
        .cell_gap(1)
    )
    query = _over_time(Query(buckets, "{{le}}")).format(PromQueryFormat.HEATMAP)
    return _described(panel, title, text, unit, (), [query])


def columns(
    title: str,
    text: str,
    queries: Mapping[str, Query],
    *,
    unit: str,
    units: Mapping[str, str] | None = None,
    limits: Limits = (),
    hidden: Sequence[str] = (),
    sort_by: str = "",
) -> table.Panel:
    """Name of a column -> query of it; rows are the sets of labels.

    units : of columns that have another one;  hidden : labels that are not shown
    """
    names = {f"Value #{ref}": name for ref, name in zip(_refs(), queries, strict=False)}
    if len(queries) == 1:
        names = {"Value": next(iter(queries))}
    organized = {"excludeByName": dict.fromkeys(("Time", *hidden), True), "renameByName": names}
    panel = (
        table.Panel()
        .with_transformation(models.DataTransformerConfig(id_val="merge", options={}))
        .with_transformation(models.DataTransformerConfig(id_val="organize", options=organized))
        .show_header(True)
    )
    for name, other in (units or {}).items():
        panel = panel.override_by_name(name, [models.DynamicConfigValue("unit", other)])
    if limits:
        cell = models.DynamicConfigValue("custom.cellOptions", {"type": "color-text"})
        for name in queries:
            if name not in (units or {}):
                panel = panel.override_by_name(name, [cell])
    if sort_by:
        panel = panel.sort_by([common.TableSortByFieldState().display_name(sort_by).desc(True)])
    made = [_now(query).format(PromQueryFormat.TABLE) for query in queries.values()]
    return _described(panel, title, text, unit, limits, made)


def _described(
    panel: _P,
    title: str,
    text: str,
    unit: str,
    limits: Limits,
    queries: Sequence[Dataquery],
    *,
    inverted: bool = False,
) -> _P:
    first = RED if inverted else GREEN
    steps = [models.Threshold(color=first, value=None)]
    steps += [models.Threshold(color=color, value=value) for value, color in limits]
    made: Any = panel.title(title).description(text).unit(unit).datasource(SOURCE)
    made = made.thresholds(dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps))
    for ref, query in zip(_refs(), queries, strict=False):
        made = made.with_target(query.ref_id(ref).datasource(SOURCE))
    return made  # type: ignore[no-any-return]


def _over_time(query: Query) -> Dataquery:
    return Dataquery().expr(query.expr).legend_format(query.legend).range()


def _now(query: Query) -> Dataquery:
    return Dataquery().expr(query.expr).legend_format(query.legend).instant()


def _refs() -> Sequence[str]:
    return "ABCDEFGHIJ"
