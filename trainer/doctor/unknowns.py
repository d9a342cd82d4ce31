"""What the history does not know: usage of single services, requests, capacities."""

from __future__ import annotations

import numpy as np

from base.arrays import Bools
from forecast.assumed_capacity import ASSUMED_RESOURCES, assumed_capacities
from forecast.resources import MEMORY, RESOURCES
from trainer.doctor.evidence import Evidence
from trainer.doctor.finding import Finding, Kind, node_finding, service_finding

_METRICS = (
    "container_cpu_usage_seconds_total",
    "container_memory_working_set_bytes",
    "container_fs_reads_bytes_total and container_fs_writes_bytes_total",
    "container_network_receive_bytes_total and container_network_transmit_bytes_total",
    "a log collector that counts per pod (prometheus.log_source: vector, promtail or alloy)",
)


def unmeasured_services(evidence: Evidence) -> Finding | None:
    """Services without any usage of a resource that others have."""
    measured = _measured(evidence)
    some = measured[evidence.alive].any(axis=0)  # (n_resources,)
    touched = ~measured & some
    pods = np.nan_to_num(evidence.recent.replicas).mean(axis=(1, 2))
    lacking: Bools = np.asarray(touched[evidence.alive].any(axis=0))  # (n_resources,)
    return service_finding(
        Kind.UNMEASURED,
        evidence,
        touched,
        what=f"{{n}} were never measured in {_names(lacking)}: what they use is learned from their nodes' sums alone",
        advice=f"check that these have series for them: {_metrics(lacking)}. Pods on the host network have no "
        "network of their own",
        detail=lambda s, r: f"{RESOURCES[r].name} unknown, {pods[s]:.1f} pods on average",
        load_share=np.where(lacking, np.nan, 0.0),
    )


def per_node_only(evidence: Evidence) -> Finding | None:
    """Resources that nodes have and no service has."""
    lacking = _nodes_measured(evidence) & ~_measured(evidence)[evidence.alive].any(axis=0)
    if not lacking.any():
        return None
    return Finding(
        Kind.PER_NODE_ONLY,
        n_services=int(evidence.alive.sum()),
        n_nodes=int(np.isfinite(evidence.recent.node_usage[:, lacking]).any(axis=(1, 2, 3)).sum()),
        load_share=np.where(lacking, 1.0, 0.0),
        what=f"only the sum of each node is known of {_names(lacking)}: regression tells services apart by the "
        "nodes they ran on, as far as pods move between nodes",
        advice=f"to know it per pod, scrape {_metrics(lacking)}",
    )


def unmeasured_resources(evidence: Evidence) -> Finding | None:
    """Resources of which neither nodes nor services have any usage."""
    lacking = ~_nodes_measured(evidence) & ~_measured(evidence)[evidence.alive].any(axis=0)
    if not lacking.any():
        return None
    return Finding(
        Kind.UNMEASURED_RESOURCES,
        n_services=int(evidence.alive.sum()),
        n_nodes=len(evidence.history.nodes),
        load_share=np.where(lacking, np.nan, 0.0),
        what=f"neither services nor nodes were measured in {_names(lacking)}: no forecast, score or report knows it",
        advice=f"scrape {_metrics(lacking)}; and node-exporter on the nodes",
    )


def unknown_requests(evidence: Evidence) -> Finding | None:
    """Finds services whose pods have no known request; CPU stands for all resources but memory, as in a cold start."""
    unknown = np.isnan(evidence.history.requests)  # (n_services, 2)
    touched = np.repeat(unknown[:, :1], len(RESOURCES), axis=1)
    touched[:, MEMORY] = unknown[:, 1] & _measured(evidence)[:, MEMORY].any()
    return service_finding(
        Kind.UNKNOWN_REQUESTS,
        evidence,
        touched,
        what="{n} have pods without a known CPU or memory request: a cold start has nothing to scale by, and no "
        "request can be compared with usage",
        advice="set resources.requests in their pod templates (forecast-scheduler requests --history DIR recommends "
        "them). If they have some, scrape kube_pod_container_resource_requests of kube-state-metrics, or fill in "
        "pods.parquet",
        detail=lambda s, _: (
            " and ".join(name for name, lost in zip(("CPU", "memory"), unknown[s], strict=True) if lost)
            + " request unknown"
        ),
    )


def unknown_capacity(evidence: Evidence) -> Finding | None:
    """Finds nodes with usage of a resource whose limit is not known, and says what can be learned."""
    history = evidence.history
    used = np.isfinite(history.node_usage).any(axis=(2, 3))  # (n_nodes, n_resources)
    touched = np.isnan(history.capacity) & used
    lacking = [r for r in range(len(RESOURCES)) if touched[:, r].any()]
    n_learned = np.isfinite(assumed_capacities(history)).sum(axis=0) if lacking else None
    named = ", ".join(
        f"{RESOURCES[r].name} of {touched[:, r].sum()}"
        + (f" ({n_learned[r]} learned from what they sustained)" if n_learned is not None and n_learned[r] else "")
        for r in lacking
    )
    settings = [f"prometheus.{RESOURCES[r].name}_capacity" for r in lacking if r in ASSUMED_RESOURCES]
    kubernetes = [RESOURCES[r].name for r in lacking if r not in ASSUMED_RESOURCES]
    advice = []
    if settings:
        advice.append(
            f"set {', '.join(settings)} (bytes/s of one node) or the annotation forecast-scheduler.io/capacity of the "
            "nodes"
        )
    if kubernetes:
        advice.append(f"scrape kube_node_status_capacity ({', '.join(kubernetes)}), or fill in capacity.parquet")
    return node_finding(
        Kind.UNKNOWN_CAPACITY,
        evidence,
        touched,
        what=f"{{n}} have no known capacity: {named}; a resource without one is no limit",
        advice="; ".join(advice),
        detail=lambda n, _: ", ".join(RESOURCES[r].name for r in np.flatnonzero(touched[n])) + " unknown",
    )


def _measured(evidence: Evidence) -> Bools:
    """(n_services, n_resources) whether any half hour of the last weeks was measured."""
    return np.asarray(np.isfinite(evidence.recent.usage_per_pod).any(axis=(2, 3)))


def _nodes_measured(evidence: Evidence) -> Bools:
    """(n_resources,) whether any node was measured in the last weeks."""
    return np.asarray(np.isfinite(evidence.recent.node_usage).any(axis=(0, 2, 3)))


def _names(resources: Bools) -> str:
    return ", ".join(RESOURCES[r].name for r in np.flatnonzero(resources))


def _metrics(resources: Bools) -> str:
    return "; ".join(_METRICS[r] for r in np.flatnonzero(resources))
