"""What is wrong with the forecast, or is going to be wrong by it: hot nodes, the model, what is measured.

Thresholds are named and say why; the levels are those of docs/use/scorer.md, "When something is missing".
"""

from __future__ import annotations

from typing import Final

from dashboards.alerting.alert import Alert, Severity
from dashboards.alerting.causes import (
    JOB,
    OLD_SECONDS,
    REPLICA,
    USELESS_SECONDS,
    deaf_replica,
    failed_night,
    held_pods,
    named,
    old_model,
    refused_model,
    silent_api,
    unheard,
    unless,
    unmeasured,
)
from dashboards.alerting.peaks import THREE_DAYS
from scorer.load_scale import FULL_SHARE

_OVER: Final = FULL_SHARE
"""Of the upper bound (95 %), which holds on 19 days of 20: more than there is. CPU is throttled, memory is taken from
pods by force."""

_NAMED: Final = 10
"""Nodes that a notification names."""

LEAST_COVERAGE: Final = 0.85
"""A bound made for 0.95 that holds less than this over three days is broken; the gate of the nightly run asks the same
(docs/operate/train.md). One day says little, since what is odd about a day is odd on all nodes: in the sample's last
week, each day forecast the night before, the lowest day was at 0.83 (cpu), the lowest three days at 0.90."""

_HALF_HOURS: Final = 96
"""Two days: with less, the three are one odd day."""

_UNKNOWN: Final = 0.5
"""Share of pods. New services are some; half of all is another cluster's model, or names that do not meet."""

_WHY: Final = "The log says why, and so does `/v1/status`."
"""The extender has no such page; its decision log names level and reasons with each decision."""

_COUNTED: Final = "{{ $value }} node{{ if ne $value 1.0 }}s{{ end }}"
_REPLICAS: Final = "{{ $value }} replica{{ if ne $value 1.0 }}s{{ end }}"
_NODE_LABELS: Final = "(cluster, node, resource)"
_NODE: Final = f"by {_NODE_LABELS}"
_PLACING: Final = 'on (cluster) (forecast_leader or forecast_decisions_total{mode="active"})'
"""Clusters in which our loops or the extender place pods."""
_CLUSTER: Final = "by (cluster)"
_PROCESS: Final = f"by ({JOB})"


def forecast_alerts(hot: float) -> list[Alert]:
    """Of every process that has a scorer inside; one alert whatever the number of parts and replicas.

    hot : of the expected peak, the setting `hot_share`. Memory counts here, too: it makes no node half hour of a replay
          hot, since it does not slow a node down before it runs out; a person wants to know before that
    """
    unknown = f"max {_PROCESS} (forecast_unknown_service_pods)"
    pods = f'max {_PROCESS} (forecast_cluster_objects{{kind="pods"}})'
    many = f"{unknown} / {pods} > {_UNKNOWN} and max {_PROCESS} (forecast_degradation_level) < 3"
    refused, drift = "forecast_model_refused == 1", "forecast_self_check_drift > 0"
    not_ready = f"forecast_ready == 0{unless(REPLICA, unheard(REPLICA))}"
    return [
        *_hot_spots(hot),
        *(
            Alert(
                "ForecastModelStale",
                severity,
                f"{old_model(limit=limit)}{unless('cluster', *causes)}",
                lasting,
                f"The model is {{{{ $value | humanizeDuration }}}} old in {named(old_model(JOB, limit))}",
                meaning,
                action="If a run failed as well, see ForecastTrainFailed. Otherwise models do not arrive: give trainer "
                "and services the same `models.location`.",
                commands=(
                    'forecast-scheduler models list --models ./models --prometheus "$PROMETHEUS"   # models.location',
                ),
                page="train.md",
            )
            for severity, limit, lasting, causes, meaning in (
                (
                    Severity.WARNING,
                    OLD_SECONDS,
                    "15m",
                    (failed_night(), refused_model()),
                    "A night was missed. Placing goes on with the last model, whose bounds widen with age.",
                ),
                (
                    Severity.CRITICAL,
                    USELESS_SECONDS,
                    "0m",  # it has been old for long
                    (),
                    "The last model is too old to be used. Placing is by requests.",
                ),
            )
        ),
        Alert(
            "ForecastModelRefused",
            Severity.WARNING,
            f"{refused_model()}{unless('cluster', old_model(limit=USELESS_SECONDS))}",
            "15m",
            f"A newer model was refused by {named(refused)}",
            "A published model is corrupt, of another release, or not signed by the configured key. The one before "
            f"stays in use. {_WHY}",
            action="Publish again (`forecast-scheduler train`), upgrade the older side, or find out who wrote to "
            "the store. `forecast-scheduler models rollback` makes an older model the latest.",
            page="security.md#signed-models",
        ),
        Alert(
            "ForecastCoverageBroken",
            Severity.WARNING,
            f"forecast:node_coverage:3d < {LEAST_COVERAGE}"
            f" and on (cluster, resource) count_over_time(forecast:nodes_compared{THREE_DAYS}) >= {_HALF_HOURS}",
            "1h",
            "{{ $labels.resource }}: usage was below its 0.95 bound in {{ $value | humanizePercentage }} of node half "
            "hours of three days only",
            f"Over three days less than {100 * LEAST_COVERAGE:.0f} % of usage was below the model's 0.95 bound. "
            "The load changed in a way that the model does not know: peaks may be higher than shown.",
            action="After a special day, nothing. Compare `forecast:node_error`: all nodes, the load as a whole "
            "changed; a few nodes, look at what runs there. The next nightly run learns the change.",
            page="train.md",
        ),
        *(
            Alert(
                "ForecastDegraded",
                severity,
                f"max {_CLUSTER} ({_degraded(above)})",
                lasting,
                f"Degradation level {{{{ $value }}}} in {named(_degraded(above))}",
                meaning,
                action="An old model and a lost API server have alerts of their own. So has missing usage, which "
                "explains level 1 alone. Level 3: no model was ever published where the service looks "
                "(`models.location`).",
            )
            for severity, above, lasting, meaning in (
                (
                    Severity.WARNING,
                    0,
                    "30m",
                    f"A fresh model or fresh usage is missing: 1 no live correction, 2 old model. {_WHY}",
                ),
                (
                    Severity.CRITICAL,
                    2,
                    "10m",
                    "Pods are placed by requests (3), or all nodes are alike (4).",
                ),
            )
        ),
        Alert(
            "ForecastNotReady",
            Severity.CRITICAL,
            f"count by (cluster) ({not_ready}){unless('cluster', silent_api('cluster'))}",
            "10m",
            f"{_REPLICAS} of {named(not_ready)} did not read the cluster",
            "These processes have no complete list of nodes and pods yet. They score and place nothing; an extender is "
            "neutral, so kube-scheduler goes on by itself.",
            action="Read the log: `list or watch of ...: 403` is a missing right, 404 a definition that is not "
            "installed. Apply `deploy/` again. Otherwise look at the API server.",
        ),
        Alert(
            "ForecastScorerDrift",
            Severity.WARNING,
            f"max {_CLUSTER} ({drift})",
            "5m",
            f"{{{{ $value }}}} differences between the cluster and the tables of {named(drift)}",
            "The hourly self-check found tables that differed from the cluster: a defect of ours. It made them "
            "anew, so placing is right again.",
            action="Report it with the log, which names what differed first (`the tables have drifted`). If it "
            "comes every hour, restart the process.",
            commands=('curl -s "$SCORER/v1/self-check"                       # or $SCHEDULER',),
        ),
        Alert(
            "ForecastUsageStale",
            Severity.WARNING,
            f"{unmeasured()}",
            "5m",
            f"No usage was measured for {{{{ $value | humanizeDuration }}}} by {named(unmeasured(JOB))}",
            "Prometheus gives no usage of nodes. Placing by the forecast goes on, but unexpected load is not avoided. "
            "While no process gets any, this alert stands for the nightly run and the autoscaler, too.",
            action="The log says why (`usage cannot be measured`). A process without `prometheus.url` keeps this "
            "alert: set it.",
            page="prometheus.md#when-it-does-not-work",
        ),
        Alert(
            "ForecastClusterStateStale",
            Severity.CRITICAL,
            f"{unheard('cluster')}{unless('cluster', held_pods())}",
            "2m",
            f"The API server was last heard of {{{{ $value | humanizeDuration }}}} ago by {named(unheard())}",
            "The processes cannot reach the API server, so they bind nothing and may lead nothing. Scores go on from "
            "the last state; after 15 minutes every node is neutral.",
            action="Check `kubectl get --raw /readyz`, NetworkPolicies, and the log: 401 or 403 is an expired "
            "token. Watches resume within 30 s.",
        ),
        Alert(
            "ForecastServicesUnknown",
            Severity.WARNING,
            f"max {_CLUSTER} ({many})",
            "1h",
            f"The model does not know the service of {{{{ $value | humanizePercentage }}}} of pods in {named(many)}",
            "The model does not know the services of most pods, so their requests count instead.",
            action="Train on this cluster, with all its namespaces; check kube-state-metrics. In a cluster that is "
            "mostly new the alert ends after some nights.",
            commands=('curl -s "$SCORER/v1/services"',),
        ),
    ]


def _degraded(above: int) -> str:
    """Parts of which a replica is at a higher level than this by no cause that has an alert of its own."""
    # Missing usage makes no higher level than 1 (cluster/degradation.py): it explains none without a model.
    causes = (old_model(REPLICA), *([] if above else [unmeasured(REPLICA)]))
    return f"max {_PROCESS} (forecast_degradation_level > {above}{unless(REPLICA, *causes)}{deaf_replica()})"


def _hot_spots(hot: float) -> list[Alert]:
    """One alert for a cluster, which names its nodes: an evening has one notification, two if it becomes critical."""
    expected, bound = (_too_full(quantile, limit) for quantile, limit in (("0.5", hot), ("0.95", _OVER)))
    return [
        Alert(
            "ForecastHotSpotTonight",
            severity,
            f"count by (cluster) (count by (cluster, node) ({too_full})) {placing} {_PLACING}",
            "15m",
            f"{_COUNTED} {words} of capacity today, the fullest: {_names(too_full)}",
            meaning,
            action="List the nodes. `relieve` says which pods to move off one and where they land; `--apply` moves "
            "them. Many hot nodes: `rebalance --plan` says how many moves help; else scale up.",
            commands=(
                'forecast-scheduler nodes --scorer "$SCORER"',
                "forecast-scheduler relieve worker-1 --config settings.yaml",
            ),
            page="../../EMERGENCY.md#a-node-is-hot-now",
        )
        for severity, too_full, placing, words, meaning in (
            (
                Severity.INFO,
                expected,
                "unless",
                f"will probably be over {hot:.0%}",
                "Nodes will probably be hot. No part of ours places pods in this cluster.",
            ),
            (
                Severity.WARNING,
                expected,
                "and",
                f"will probably be over {hot:.0%}",
                "Nodes will probably be hot. Their pods can be moved now, while it is quiet.",
            ),
            (
                Severity.CRITICAL,
                bound,
                "and",
                f"may be over {_OVER:.0%}",
                "Nodes may need more than they have: upper bounds (95 %) are over their capacity.",
            ),
        )
    ]


def _too_full(quantile: str, limit: float) -> str:
    """Nodes and resources whose peak of today, still to come, is over a share of a capacity that is known."""
    peak = f'max {_NODE} (forecast_node_predicted_peak{{quantile="{quantile}",day="today",as_of="now"}})'
    is_ahead = f'max {_NODE} (forecast_node_predicted_peak_timestamp_seconds{{day="today"}}) > time() - 1800'
    # An assumed capacity is what nodes have sustained, and no limit to wake a person for.
    assumed = f"on {_NODE_LABELS} forecast_node_capacity_assumed"
    share = f"({peak} / max {_NODE} (forecast_node_capacity) unless {assumed})"
    return f"{share} > {limit} and {is_ahead}"


def _names(too_full: str) -> str:
    """Template: the fullest nodes of the alert's cluster, each with resource, share and time of its highest peak."""
    of_cluster = 'on (cluster) label_replace(vector(1), "cluster", "%s", "", "")'
    of_each = f"({too_full}) == on (cluster, node) group_left () max by (cluster, node) ({too_full})"
    fullest = f"sort_desc(topk({_NAMED}, {of_each} and {of_cluster}))"
    at = "max(forecast_node_predicted_peak_timestamp_seconds{cluster='%s',node='%s',resource='%s',day='today'})"
    labels = "$node.Labels.cluster $node.Labels.node $node.Labels.resource"
    return (
        f"{{{{ range $i, $node := printf `{fullest}` $labels.cluster | query }}}}"
        "{{ if $i }}, {{ end }}{{ $node.Labels.node }} ({{ $node.Labels.resource }} "
        f'{{{{ $node.Value | humanizePercentage }}}}{{{{ with printf "{at}" {labels} | query }}}}'
        " around {{ . | first | value | humanizeTimestamp }}{{ end }}){{ end }}"
    )
