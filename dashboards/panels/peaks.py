"""Does what was predicted come? Predicted peaks against actual ones, of nodes and services, and what is ahead tonight.

Like is compared with like (dashboards/alerting/peaks.py): means over half hours with means over half hours, the peak
that was predicted at midnight with that of the 24 hours since. What came is held against what the model said, before
live usage corrected it; what is ahead is shown with that correction, as pods are placed by it. Figures of nodes are
shares of capacity, so that nodes of all sizes and resources compare; those of services are in the resource's own unit.
"""

from __future__ import annotations

from typing import Final

from base.load_colours import FULL_COLOUR, HOT_COLOUR
from dashboards.panels.layout import Board, Part, Placed, figure
from dashboards.panels.marks import marks
from dashboards.panels.plots import GREEN, ORANGE, RED, Limits, Query, bars, columns, lines, values
from dashboards.panels.selecting import Variable, own, top, variable, where
from dashboards.panels.units import COUNT, DATE, RATIO, SHARE, resource_unit
from forecast.resources import RESOURCES
from scorer.load_scale import FULL_SHARE

_NODE: Final = "by (cluster, node, resource)"
_SERVICE: Final = "by (cluster, namespace, kind, name, resource)"
_SELECTED: Final = {"node": "$node", "resource": "$resource"}


def peaks(hot: float) -> Board:
    """The dashboard. hot: share of its capacity above which a node is hot, and we alert (docs/operate/alerts.md)"""
    limits: Limits = ((hot, HOT_COLOUR), (FULL_SHARE, FULL_COLOUR))
    return Board(
        uid="forecast-peaks",
        title="Forecast / Peaks",
        text="Predicted against actual peaks of nodes and services, and where it will be hot tonight.",
        parts=[
            Part("Tonight", _tonight(hot, limits)),
            Part("Nodes: $resource", _nodes(limits), repeat="resource"),
            Part("How good the forecast is", _quality()),
            Part("Evenness of the nodes, before and after adoption", _spread(limits)),
            Part("A shadow beside the real placement", _shadow(limits)),
            *(Part(f"Services: {one.name}", _services(one.name)) for one in RESOURCES),
        ],
        variables=[*(variable(name) for name in ("cluster", "node", "resource", "namespace")), _service(), top()],
        annotations=marks(),
        since="now-2d",
    )


def _peak_share(quantile: str, *, day: str = "today", as_of: str = "now", at: str = "") -> str:
    """Predicted peaks of nodes as shares of capacity. at: a modifier of series, such as " @ end()"."""
    matchers = where(**_SELECTED, quantile=quantile, day=day, as_of=as_of)
    return f"max {_NODE} (forecast_node_predicted_peak{matchers}{at}) / {_capacity(at)}"


def _shadow_peak_share() -> str:
    """The upper bound of what is to come today as shares of capacity, if all pods were where a shadow advised them."""
    matchers = where(**_SELECTED, quantile="0.95", day="today")
    return f"max {_NODE} (forecast_shadow_node_predicted_peak{matchers}) / {_capacity()}"


def _capacity(at: str = "") -> str:
    return f"max {_NODE} (forecast_node_capacity{where(**_SELECTED)}{at})"


def _known(share: str) -> str:
    """The shares without those of an assumed capacity, which makes no node hot."""
    return f"({share} unless on (cluster, node, resource) forecast_node_capacity_assumed)"


def _tonight(hot: float, limits: Limits) -> list[Placed]:
    bound, tomorrow = _known(_peak_share("0.95")), _known(_peak_share("0.95", day="tomorrow"))
    hottest = f"topk($top, {bound})"
    at = f"max {_NODE} (forecast_node_predicted_peak_timestamp_seconds{where(**_SELECTED, day='today')})"
    free = f"max {_NODE} (forecast_node_virtual_available{where(**_SELECTED)}) / {_capacity()}"
    among = f"and on (cluster, node, resource) {hottest}"
    return [
        figure(
            "Highest upper bound today",
            "The upper bound (95 %) of what is to come today on the hottest node, as a share of what it has. It is "
            f"wrong on one node day of twenty. Above {hot:.0%} latency leaves its flat part.",
            f"max ({bound})",
            SHARE,
            limits,
            width=5,
        ),
        figure(
            "Nodes that will be hot today",
            f"Nodes whose upper bound (95 %) of what is to come today passes {hot:.0%} of capacity in any of the "
            "selected resources.",
            f"count (max by (cluster, node) ({bound}) > {hot}) or vector(0)",
            COUNT,
            ((1, ORANGE),),
            width=5,
        ),
        figure(
            "Nodes that will be hot tomorrow",
            "The same of tomorrow: what can still be moved in time.",
            f"count (max by (cluster, node) ({tomorrow}) > {hot}) or vector(0)",
            COUNT,
            ((1, ORANGE),),
            width=5,
        ),
        Placed(
            values(
                "Bound held, last 24 hours",
                "Share of node half hours in which usage stayed below the model's 0.95 bound, of the selected resource "
                "for which it is lowest. Well below 95 % peaks are higher than this page says.",
                Query(f"min (forecast:node_coverage:1d{where(resource='$resource')})"),
                unit=SHARE,
                limits=((0.85, ORANGE), (0.92, GREEN)),
                inverted=True,
            ),
            width=5,
            height=4,
        ),
        figure(
            "Assumed capacities",
            "Nodes and resources without a known capacity: the trainer assumed one from what such nodes have "
            "sustained. They count in scores and in the shares below, and make no node hot on this page.",
            f"count (max {_NODE} (forecast_node_capacity_assumed{where(**_SELECTED)})) or vector(0)",
            COUNT,
        ),
        Placed(
            bars(
                "Tonight's hottest nodes",
                "Nodes by the upper bound (95 %) of what is to come today, as a share of capacity, highest first.",
                Query(hottest, "{{node}} {{resource}}"),
                unit=SHARE,
                limits=limits,
                most=1,
            ),
            height=10,
        ),
        Placed(
            columns(
                "Tonight's hottest nodes, and when",
                "Expected peak and upper bound (95 %) of what is to come today, the half hour of the peak, and what is "
                "left of the node now: a node that looks idle now and is hot tonight is what live load does not tell.",
                {
                    "upper bound (95 %)": Query(hottest),
                    "expected peak": Query(f"{_peak_share('0.5')} {among}"),
                    "at": Query(f"{at} * 1000 {among}"),
                    "free now": Query(f"{free} {among}"),
                },
                unit=SHARE,
                units={"at": DATE, "free now": SHARE},
                limits=limits,
                hidden=("cluster",),
                sort_by="upper bound (95 %)",
            ),
            height=10,
        ),
    ]


def _nodes(limits: Limits) -> list[Placed]:
    """Of those whose peak is highest at the end of the time shown, so that lines do not come and go."""
    shown = f"and on (cluster, node, resource) topk($top, {_peak_share('0.95', at=' @ end()')})"
    usage, highest = "forecast:node_usage_share", "forecast:node_peak:1d"
    predicted = "forecast:node_model_usage:30m"
    return [
        Placed(
            lines(
                "Usage, predicted and actual: $resource",
                "Actual usage (solid), the expected one (dashed) and its 0.95 bound (dotted) of the half hour before, "
                "as shares of capacity, of the nodes whose peak today will be highest. Solid follows dashed and stays "
                "below dotted where the forecast is right. Expected is what the model said, before live usage "
                "corrected it: corrected it would always follow.",
                Query(f"max {_NODE} ({usage}{where(**_SELECTED)}) {shown}", "{{node}} actual"),
                Query(f"{_of_half_hours(predicted, '0.5')} {shown}", "{{node}} expected", "dashed"),
                Query(f"{_of_half_hours(predicted, '0.95')} {shown}", "{{node}} bound", "dotted"),
                unit=SHARE,
                limits=limits,
            ),
            height=9,
        ),
        Placed(
            lines(
                "Daily peak, predicted at midnight and actual: $resource",
                "Highest half hour of the last 24 hours (solid) beside what was predicted for the day at midnight: the "
                "expected peak (dashed) and its bound (dotted). Just before midnight both are of the same day; "
                "compare there. What was measured at midnight is in it, half of that until six in the morning, a tenth "
                "at eight in the evening.",
                Query(f"max {_NODE} ({highest}{where(**_SELECTED)}) / {_capacity()} {shown}", "{{node}} actual"),
                Query(f"{_peak_share('0.5', as_of='midnight')} {shown}", "{{node}} expected", "dashed"),
                Query(f"{_peak_share('0.95', as_of='midnight')} {shown}", "{{node}} bound", "dotted"),
                unit=SHARE,
                limits=limits,
            ),
            height=9,
        ),
    ]


def _of_half_hours(series: str, quantile: str) -> str:
    return f"max {_NODE} ({series}{where(**_SELECTED, quantile=quantile)}) / {_capacity()}"


def _quality() -> list[Placed]:
    by_resource = "by (cluster, resource)"
    error = f"forecast:node_error{where(**_SELECTED)}"
    largest = f"topk($top, max {_NODE} (abs ({error})))"
    return [
        Placed(
            lines(
                "Forecast error of nodes",
                "Mean absolute difference between actual usage of a half hour and what the model expected, before live "
                "usage corrected it, as a share of capacity, over the selected nodes.",
                Query(f"avg {by_resource} (abs ({error}))", "{{cluster}} {{resource}}"),
                unit=SHARE,
                limits=((0.1, ORANGE),),
            ),
            width=8,
        ),
        Placed(
            lines(
                "Bias",
                "Mean difference between actual usage and what the model expected, as a share of capacity. Above 0: "
                "more is used than was expected. Once it stays away from 0 by more than a few per cent the load has "
                "changed.",
                Query(f"avg {by_resource} ({error})", "{{cluster}} {{resource}}"),
                unit=SHARE,
                limits=((0.1, ORANGE),),
                least=None,
            ),
            width=8,
        ),
        Placed(
            lines(
                "Coverage of the bound",
                "Share of node half hours, of the last 24 hours and of three days, in which usage stayed below the "
                "model's 0.95 bound. It is to be about 95 %. One odd day may be lower; below 85 % over three days an "
                "alert calls the bound broken, always 100 % it is wasteful.",
                Query(f"forecast:node_coverage:1d{where(resource='$resource')}", "{{cluster}} {{resource}}"),
                Query(f"forecast:node_coverage:3d{where(resource='$resource')}", "{{cluster}} {{resource}}, 3 days"),
                unit=SHARE,
                limits=((0.85, GREEN),),
                inverted=True,
                least=None,
                most=1,
            ),
            width=8,
        ),
        Placed(
            columns(
                "Where the forecast is wrong now",
                "Nodes by the absolute difference between actual usage in the last half hour and what the model "
                "expected, as a share of capacity; the second column has its sign. Placing reckons with it already.",
                {
                    "error": Query(largest),
                    "actual - expected": Query(f"max {_NODE} ({error}) and on (cluster, node, resource) {largest}"),
                },
                unit=SHARE,
                limits=((0.1, ORANGE), (0.2, RED)),
                hidden=("cluster",),
                sort_by="error",
            ),
            width=24,
        ),
    ]


def _spread(limits: Limits) -> list[Placed]:
    return [
        Placed(
            lines(
                "Spread of the nodes' peaks",
                "Coefficient of variation over nodes of the peak of the last 24 hours as a share of capacity: 0 = all "
                "nodes peak at the same share. It falls from the day on that pods are placed by the forecast (marks: "
                "first pods placed); widen the time range to see both sides.",
                Query(f"forecast:node_peak_spread{where(resource='$resource')}", "{{cluster}} {{resource}}"),
                unit=RATIO,
                limits=((0.3, ORANGE),),
            ),
        ),
        Placed(
            lines(
                "Highest and mean peak",
                "Peak of the last 24 hours as a share of capacity: of the highest node (solid) and on average over "
                "nodes (dashed). Placing by the forecast brings the two together.",
                Query(f"max by (cluster, resource) ({_actual_peaks()})", "{{cluster}} {{resource}} highest"),
                Query(f"avg by (cluster, resource) ({_actual_peaks()})", "{{cluster}} {{resource}} mean", "dashed"),
                unit=SHARE,
                limits=limits,
            ),
        ),
    ]


def _shadow(limits: Limits) -> list[Placed]:
    by_resource = "by (cluster, resource)"
    real, shadow = _peak_share("0.95"), _shadow_peak_share()
    return [
        Placed(
            lines(
                "Highest upper bound today, real and shadow",
                "The upper bound (95 %) of what is to come today, of the highest node, as a share of capacity: with "
                "pods where they really are (solid), and where an extender in shadow mode advised them (dashed). "
                "Dashed below solid: the advice would help. Without a shadow only the solid line is drawn.",
                Query(f"max {by_resource} ({real})", "{{cluster}} {{resource}} real"),
                Query(f"max {by_resource} ({shadow})", "{{cluster}} {{resource}} shadow", "dashed"),
                unit=SHARE,
                limits=limits,
            ),
        ),
        Placed(
            lines(
                "Spread of upper bounds, real and shadow",
                "Coefficient of variation over nodes of the same upper bounds: 0 = all nodes are expected to peak "
                "at the same share. A shadow forgets its advice when it restarts: both lines are one then.",
                Query(f"stddev {by_resource} ({real}) / avg {by_resource} ({real})", "{{cluster}} {{resource}} real"),
                Query(
                    f"stddev {by_resource} ({shadow}) / avg {by_resource} ({shadow})",
                    "{{cluster}} {{resource}} shadow",
                    "dashed",
                ),
                unit=RATIO,
                limits=((0.3, ORANGE),),
            ),
        ),
    ]


def _actual_peaks() -> str:
    return f"max {_NODE} (forecast:node_peak:1d{where(**_SELECTED)}) / {_capacity()}"


def _services(resource: str) -> list[Placed]:
    """Of the selected ones, those with the highest predicted peak of a pod."""
    selected = where(namespace="$namespace", name="$service", resource=resource)
    on = "and on (cluster, namespace, kind, name)"
    bound = f"max {_SERVICE} (forecast_service_predicted_peak{_with(selected, 'quantile', '0.95')} @ end())"
    shown = f"{on} topk($top, {bound})"
    predicted = "forecast_service_predicted_peak"
    name = "{{namespace}}/{{name}}"
    return [
        Placed(
            lines(
                f"Peak of one pod, predicted and actual: {resource}",
                "Highest half hour of the last 24 hours of a pod on average (solid), beside today's predicted peak of "
                "a pod: expected (dashed) and 0.95 bound (dotted); of the services with the highest bound.",
                Query(f"max {_SERVICE} (forecast:service_pod_peak:1d{selected}) {shown}", f"{name} actual"),
                Query(
                    f"max {_SERVICE} ({predicted}{_with(selected, 'quantile', '0.5')}) {shown}",
                    f"{name} expected",
                    "dashed",
                ),
                Query(
                    f"max {_SERVICE} ({predicted}{_with(selected, 'quantile', '0.95')}) {shown}",
                    f"{name} bound",
                    "dotted",
                ),
                unit=resource_unit(resource),
            ),
        ),
        Placed(
            lines(
                f"Usage of the whole service: {resource}",
                "All pods of the service together, mean of the half hour before; of the same services.",
                Query(f"max {_SERVICE} (forecast:service_usage:30m{selected}) {shown}", name),
                unit=resource_unit(resource),
                stacked=True,
            ),
        ),
    ]


def _service() -> Variable:
    query = f"label_values(forecast_service_predicted_peak{where(namespace='$namespace')}, name)"
    return own("service", query, "Service", "Deployment, StatefulSet, CronJob, ...")


def _with(matchers: str, label: str, value: str) -> str:
    return f'{matchers[:-1]},{label}="{value}"}}'
