"""Names of the recorded metrics, and how to read them. The names are a contract: dashboards rely on them too.

    forecast:pod_usage{namespace, pod, resource}     resource: cpu, memory, disk, network, log
    forecast:node_usage{node, resource}
    forecast:pod_info{namespace, pod, uid, node, created_by_kind, created_by_name, host_network}

A rule group is evaluated every step at its own offset, so one sample always lies in the five minutes (the default
look-back of the server) before a tick; what is read is the mean over a step that ends up to one step before the tick.
Two Prometheus replicas record everything twice, with different external labels: the larger of two samples counts. We
take it, not the server: `max by` over all pods cost it five times as much as handing out the samples.
"""

from __future__ import annotations

POD_USAGE, NODE_USAGE, POD_INFO = "forecast:pod_usage", "forecast:node_usage", "forecast:pod_info"

_LOOK_BACK_SECONDS = 300


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
