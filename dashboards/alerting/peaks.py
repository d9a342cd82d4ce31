"""What did nodes use, in figures that compare with predicted ones? Recorded by Prometheus every five minutes.

Forecasts are means over half hours, so actual usage is averaged over half hours, too. A day is 48 of them: a subquery
looks at full and half hours (UTC) only, since the highest of all overlapping half hours would always be above the
highest of the 48. What was recorded in (10:00, 10:30] is the half hour from 10:00 on, as in the trainer's reading,
and it is held against what was predicted at the same moments: both go from one half hour to the next alike. Rule groups
are evaluated at moments of their own, so one sample of the six may be the one before.

How good the forecast is, is told by what the model said before live usage corrected it (forecast_node_model_usage).
forecast_node_predicted_usage is corrected by all that a node uses beyond it, so that it is usage of a minute ago: held
against that, every forecast is right.

Several processes of ours export the same series of a node, and two replicas of Prometheus record it twice: `max by`
takes one of them. `cluster` stays where it is a label (an external label, as a federated server or Thanos has it).
"""

from __future__ import annotations

from typing import Final

from trainer.prometheus.recording_rules import NODE_USAGE

Rule = dict[str, str]

INTERVAL_SECONDS: Final = 300  # as the usage they are made of; an instant query looks five minutes back
HALF_HOUR: Final = "[29m59s]"
"""Six samples. Prometheus 2 counts one at the very beginning of a window, too, and would take seven for [30m]."""

DAY: Final = "[1d:30m]"
"""Of half hours that were recorded: 48 of them, none of which shares a moment with another."""

THREE_DAYS: Final = "[3d:30m]"

_NODE: Final = "by (cluster, node, resource)"
_ALL_NODES: Final = "by (cluster, resource)"

_ADDRESSES: Final = (
    "topk by (cluster, internal_ip) (1, "
    'group by (cluster, internal_ip, node) (kube_node_info{node!="",internal_ip!=""}))'
)
"""One node for each internal address: of an old and a new node that follow on each other under one address, either."""


def node_peaks() -> list[Rule]:
    """Usage, peaks, and how far the forecast was off."""
    actual, share = "forecast:node_usage:30m", "forecast:node_peak:1d / forecast:node_capacity"
    expected, bound = (f'forecast:node_model_usage:30m{{quantile="{q}"}}' for q in ("0.5", "0.95"))
    within, compared = "forecast:nodes_within_bound", "forecast:nodes_compared"
    return [
        rule(actual, f"max {_NODE} ({_by_name(f'avg_over_time({NODE_USAGE}{HALF_HOUR})')})"),
        rule("forecast:node_peak:1d", f"max_over_time({actual}{DAY})"),
        rule("forecast:node_capacity", f"max {_NODE} (forecast_node_capacity)"),
        rule("forecast:node_usage_share", f"{actual} / forecast:node_capacity"),
        # The coefficient of variation that a replay reports as "CV": 0 = all nodes have the same peak.
        rule("forecast:node_peak_spread", f"stddev {_ALL_NODES} ({share}) / avg {_ALL_NODES} ({share})"),
        rule("forecast:node_model_usage", "max by (cluster, node, resource, quantile) (forecast_node_model_usage)"),
        rule("forecast:node_model_usage:30m", f"avg_over_time(forecast:node_model_usage{HALF_HOUR})"),
        rule("forecast:node_error", f"({actual} - ignoring (quantile) {expected}) / forecast:node_capacity"),
        rule(within, f"sum {_ALL_NODES} ({actual} <= bool ignoring (quantile) {bound})"),
        rule(compared, f"count {_ALL_NODES} ({actual} and ignoring (quantile) {bound})"),
        *(
            rule(
                f"forecast:node_coverage:{name}", f"sum_over_time({within}{window}) / sum_over_time({compared}{window})"
            )
            for name, window in (("1d", DAY), ("3d", THREE_DAYS))
        ),
    ]


def _by_name(vector: str) -> str:
    """Nodes that usage is known of by internal address (`instance` of node-exporter) under the names that ours have.

    As the trainer and the scorer do it (trainer/prometheus/node_names.py). Without kube_node_info all stays as it is.
    """
    by_address = f'label_replace({vector}, "internal_ip", "$1", "node", "(.*)")'
    known = f'label_replace({_ADDRESSES}, "node", "$1", "internal_ip", "(.*)")'
    return (
        f"{by_address} * on (cluster, internal_ip) group_left (node) {_ADDRESSES}"
        f" or {vector} unless on (cluster, node) {known}"
    )


def rule(record: str, expression: str) -> Rule:
    """A recording rule."""
    return {"record": record, "expr": expression}
