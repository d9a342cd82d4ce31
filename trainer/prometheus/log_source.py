"""Where log bytes are read from: the counters of a log collector, or as a last resort a gauge of the kubelet.

    vector      vector_component_received_event_bytes_total of sources, tagged pod_namespace and pod_name by the
                kubernetes_logs source (https://vector.dev/docs/reference/configuration/sources/kubernetes_logs/)
    promtail    promtail_read_bytes_total{path}; a gauge by type, yet it grows with the file and restarts at rotation
    alloy       loki_source_file_read_bytes_total{path}, the same code in Grafana Alloy and Agent
    fluent-bit  fluentbit_input_bytes_total of the collector's pod: per node only, pods are not measured
    kubelet     kubelet_container_log_filesystem_used_bytes{namespace,pod,container}: size on disk, of which
                trainer.prometheus.kubelet_log_gauge takes differences; rate() would read a rotation as a reset

The kubelet keeps logs in /var/log/pods/<namespace>_<pod>_<uid>/<container>/<n>.log (BuildPodLogsDirectory in
pkg/kubelet/kuberuntime/helpers.go); neither namespace nor pod can contain "_".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class LogSource(Enum):
    """What counts log bytes. AUTO: the first one in this order whose query finds something, and after it the others."""

    AUTO = "auto"
    VECTOR = "vector"
    PROMTAIL = "promtail"
    ALLOY = "alloy"
    FLUENT_BIT = "fluent-bit"
    KUBELET = "kubelet"
    NONE = "none"


LOG_METRICS = {
    LogSource.VECTOR: 'vector_component_received_event_bytes_total{component_kind="source",pod_name!=""}',
    LogSource.PROMTAIL: "promtail_read_bytes_total",
    LogSource.ALLOY: "loki_source_file_read_bytes_total",
    LogSource.FLUENT_BIT: "fluentbit_input_bytes_total",
    LogSource.KUBELET: "kubelet_container_log_filesystem_used_bytes",
}
"""What must exist for a source to be there, in the order of preference."""

KUBELET_GAUGE = (
    "max by (namespace, pod, container) "
    '(kubelet_container_log_filesystem_used_bytes{pod!="",namespace=~"{namespaces}"})'
)


@dataclass(frozen=True, slots=True)
class LogQueries:
    """Query templates of one source; "" = the source has no such series. Per node, what pods log is added up where node
    is "".
    """

    pod: str = ""
    node: str = ""
    gauge: str = ""


def log_queries(source: LogSource) -> LogQueries:
    """The queries of a source (not of AUTO, which has to be resolved by looking)."""
    match source:
        case LogSource.VECTOR:
            return LogQueries(pod=_VECTOR)
        case LogSource.PROMTAIL:
            return LogQueries(pod=_by_path("promtail_read_bytes_total"))
        case LogSource.ALLOY:
            return LogQueries(pod=_by_path("loki_source_file_read_bytes_total"))
        case LogSource.FLUENT_BIT:
            return LogQueries(node=_FLUENT_BIT)
        case LogSource.KUBELET:
            return LogQueries(gauge=KUBELET_GAUGE)
        case _:
            return LogQueries()


def _named(vector: str, namespace: tuple[str, str, str], pod: tuple[str, str, str]) -> str:
    """Set namespace and pod from (replacement, source label, regular expression)."""
    for target, (value, source, regex) in (("namespace", namespace), ("pod", pod)):
        vector = f'label_replace({vector}, "{target}", "{value}", "{source}", "{regex}")'
    return vector


# The collector's own namespace and pod, which the scrape adds, are gone after the max.
_VECTOR = "sum by (namespace, pod) ({})".replace(
    "{}",
    _named(
        "max by (pod_namespace, pod_name, container_name, component_id) "
        '(rate(vector_component_received_event_bytes_total{component_kind="source",pod_name!="",'
        'pod_namespace=~"{namespaces}"}[{window}]))',
        ("$1", "pod_namespace", "(.*)"),
        ("$1", "pod_name", "(.*)"),
    ),
)


def _by_path(metric: str) -> str:
    regex = "/var/log/pods/([^_/]+)_([^_/]+)_.*"
    vector = f'max by (path) (rate({metric}{{path=~"/var/log/pods/({{namespaces}})_.+"}}[{{window}}]))'
    return f"sum by (namespace, pod) ({_named(vector, ('$1', 'path', regex), ('$2', 'path', regex))})"


# Inputs that read no logs, or what another Fluent Bit has counted already; they are named <plugin>.<number>.
_NO_LOGS = (
    "(cpu|mem|disk|netif|proc|thermal|health|dummy|random|statsd|collectd|forward|opentelemetry|prometheus_scrape|"
    "prometheus_remote_write|[a-z]+_exporter_metrics|[a-z]+_metrics)([.].*)?"
)
# One collector pod per node; kube_pod_info says which. topk leaves one node where a series lingers.
_FLUENT_BIT = (
    "sum by (node) (sum by (namespace, pod) (max by (namespace, pod, name) "
    f'(rate(fluentbit_input_bytes_total{{pod!="",name!~"{_NO_LOGS}"}}[{{window}}]))) '
    "* on (namespace, pod) group_left (node) "
    'topk by (namespace, pod) (1, group by (namespace, pod, node) (kube_pod_info{node!=""})))'
)
