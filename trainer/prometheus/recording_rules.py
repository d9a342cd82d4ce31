"""Recording rules made from the same queries that are read raw, and the names of the recorded metrics: a contract with
dashboards.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from forecast.resources import RESOURCES
from trainer.prometheus.label_selectors import with_labels
from trainer.prometheus.log_source import LOG_METRICS, LogSource, log_queries
from trainer.prometheus.queries import Queries, fill, in_every_shape

# Names of the recorded metrics, and how to read them. The names are a contract: dashboards rely on them too.
#
#     forecast:pod_usage{namespace, pod, resource}     resource: cpu, memory, disk, network, log
#     forecast:node_usage{node, resource}
#     forecast:pod_info{namespace, pod, uid, node, created_by_kind, created_by_name, host_network}
#
# A rule group is evaluated every step at its own offset, so one sample always lies in the five minutes (the default
# look-back of the server) before a tick; what is read is the mean over a step that ends up to one step before the tick.
# Two Prometheus replicas record everything twice, with different external labels: the larger of two samples counts. We
# take it, not the server: `max by` over all pods cost it five times as much as handing out the samples.

POD_USAGE, NODE_USAGE, POD_INFO = "forecast:pod_usage", "forecast:node_usage", "forecast:pod_info"
_LOOK_BACK_SECONDS = 300

_COMMAND = "forecast-scheduler rules"


def recorded_pods(resource: str, step_seconds: int) -> str:
    """Template that reads the recorded usage of pods."""
    selector = f'{POD_USAGE}{{resource="{resource}",namespace=~"{{namespaces}}"}}'
    return _in_sight(selector, step_seconds)


def recorded_nodes(resource: str, step_seconds: int) -> str:
    """Template that reads the recorded usage of nodes."""
    selector = f'{NODE_USAGE}{{resource="{resource}"}}'
    return _in_sight(selector, step_seconds)


def recorded_info(step_seconds: int) -> str:
    """Template that reads the recorded pod_info."""
    selector = f'{POD_INFO}{{namespace=~"{{namespaces}}"}}'
    return _in_sight(selector, step_seconds)


def _in_sight(selector: str, step_seconds: int) -> str:
    # The instant selector is better where it reaches: it knows when a series has ended.
    return selector if step_seconds <= _LOOK_BACK_SECONDS else f"last_over_time({selector}[{{window}}])"


def rule_file(
    queries: Queries | None = None,
    step_seconds: int = 300,
    log_source: LogSource = LogSource.AUTO,
    cluster: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Content of a Prometheus rule file.

    cluster : labels that rules select and put on what they record, for a ruler that sees several clusters
    https://prometheus.io/docs/prometheus/latest/configuration/recording_rules/
    """
    queries = queries or Queries()
    logs = {"pod": queries.pod_log, "node": queries.node_log}
    if not any(logs.values()):
        logs = _logs(log_source)
    groups = []
    for kind, record in (("pod", POD_USAGE), ("node", NODE_USAGE)):
        rules: list[dict[str, Any]] = []
        for resource in RESOURCES:
            template = logs[kind] if resource.name == "log" else in_every_shape(queries, f"{kind}_{resource.name}")
            if template:
                expression = fill(template, window_seconds=step_seconds)
                rules.append({"record": record, "expr": expression, "labels": {"resource": resource.name}})
        groups.append((f"forecast-{kind}-usage", rules))
    info: dict[str, Any] = {"record": POD_INFO, "expr": fill(queries.pod_info, window_seconds=step_seconds)}
    groups.append(("forecast-pod-info", [info]))
    content = {"groups": [{"name": name, "interval": f"{step_seconds}s", "rules": rules} for name, rules in groups]}
    return of_cluster(content, cluster or {})


def of_cluster(content: dict[str, Any], cluster: Mapping[str, str]) -> dict[str, Any]:
    """The same rules for one cluster of several: they select its labels.

    Aggregations drop these, so the rules put them on what they record, where its readers look for them, and on alerts.
    """
    if not cluster:
        return content

    def narrowed(rule: dict[str, Any]) -> dict[str, Any]:
        labels = {**rule.get("labels", {}), **cluster}
        return {**rule, "expr": with_labels(rule["expr"], cluster), "labels": labels}

    return {"groups": [{**group, "rules": list(map(narrowed, group["rules"]))} for group in content["groups"]]}


def prometheus_rule(
    content: dict[str, Any], *, name: str = "forecast-scheduler", namespace: str = "monitoring"
) -> dict[str, Any]:
    """The same as an object for the Prometheus operator; kube-prometheus selects it by these labels."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": name, "namespace": namespace, "labels": {"prometheus": "k8s", "role": "alert-rules"}},
        "spec": content,
    }


def rule_file_text(*contents: dict[str, Any], made_by: str = _COMMAND) -> str:
    """YAML, one document for each, with a remark where it comes from. made_by: the command that writes it."""
    header = f"# Generated by `{made_by}`; names and labels are a contract, do not edit.\n"
    return header + yaml.safe_dump_all(contents, sort_keys=False, width=1_000)


def _logs(source: LogSource) -> dict[str, str]:
    """Log queries of a source; of AUTO those of all collectors, of which a pod takes the first that knows it."""
    sources = [one for one in LOG_METRICS if source in (one, LogSource.AUTO)]
    found = [log_queries(one) for one in sources]
    node = " or ".join(f"({queries.node})" for queries in found if queries.node)
    per_pod = [LOG_METRICS[one] for one, queries in zip(sources, found, strict=True) if queries.pod]
    if node and per_pod:
        # As when reading: nodes have a source of their own only if no collector reports by pod.
        node = f"({node}) unless on () ({' or '.join(per_pod)})"
    return {"pod": " or ".join(f"({queries.pod})" for queries in found if queries.pod), "node": node}
