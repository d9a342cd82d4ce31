"""What the history does not know: usage of single services, requests, capacities, and demand above a ceiling of
usage.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from base.arrays import AnyFloats, Bools, Floats
from forecast.assumed_capacity import ASSUMED_RESOURCES, assumed_capacities
from forecast.calendar import SLOTS_PER_DAY
from forecast.quantiles import nan_quantile
from forecast.resources import CPU, MEMORY, RESOURCES
from trainer.audit.finding import AuditEvidence, Finding, FindingKind, node_finding, service_finding

_METRICS = (
    "container_cpu_usage_seconds_total",
    "container_memory_working_set_bytes",
    "container_fs_reads_bytes_total and container_fs_writes_bytes_total",
    "container_network_receive_bytes_total and container_network_transmit_bytes_total",
    "a log collector that counts per pod (prometheus.log_source: vector, promtail or alloy)",
)

LEVEL_WIDTH: Final = 0.01
"""Width of the level at the top, as a share of the ceiling."""

LEAST_SHARE: Final = 0.05
"""Of the measured half hours that are at the ceiling: 72 minutes a day."""

_TOP_QUANTILE: Final = 0.999  # one wrong sample does not move the ceiling
_CROWDING = 2.0  # times as many values in the level as in the band of twice its width below; a smooth day has 1.4
_LOW, _LEAST_LOW = 0.8, 0.1  # a tenth is well below the ceiling: an even load is no limit
_LEAST_CORES = 0.01
_LEAST_SLOTS: Final = 7 * SLOTS_PER_DAY
FULL_NODE: Final = 0.95
_LEAST_FULL: Final = 0.01


def unmeasured_services(evidence: AuditEvidence) -> Finding | None:
    """Services without any usage of a resource that others have."""
    measured = _measured(evidence)
    some = measured[evidence.alive].any(axis=0)  # (n_resources,)
    touched = ~measured & some
    pods = np.nan_to_num(evidence.recent.replicas).mean(axis=(1, 2))
    lacking: Bools = np.asarray(touched[evidence.alive].any(axis=0))  # (n_resources,)
    return service_finding(
        FindingKind.UNMEASURED,
        evidence,
        touched,
        what=f"{{n}} were never measured in {_names(lacking)}: what they use is learned from their nodes' sums alone",
        advice=f"check that these have series for them: {_metrics(lacking)}. Pods on the host network have no "
        "network of their own",
        detail=lambda s, r: f"{RESOURCES[r].name} unknown, {pods[s]:.1f} pods on average",
        load_share=np.where(lacking, np.nan, 0.0),
    )


def per_node_only(evidence: AuditEvidence) -> Finding | None:
    """Resources that nodes have and no service has."""
    lacking = _nodes_measured(evidence) & ~_measured(evidence)[evidence.alive].any(axis=0)
    if not lacking.any():
        return None
    return Finding(
        FindingKind.PER_NODE_ONLY,
        n_services=int(evidence.alive.sum()),
        n_nodes=int(np.isfinite(evidence.recent.node_usage[:, lacking]).any(axis=(1, 2, 3)).sum()),
        load_share=np.where(lacking, 1.0, 0.0),
        what=f"only the sum of each node is known of {_names(lacking)}: regression tells services apart by the "
        "nodes they ran on, as far as pods move between nodes",
        advice=f"to know it per pod, scrape {_metrics(lacking)}",
    )


def unmeasured_resources(evidence: AuditEvidence) -> Finding | None:
    """Resources of which neither nodes nor services have any usage."""
    lacking = ~_nodes_measured(evidence) & ~_measured(evidence)[evidence.alive].any(axis=0)
    if not lacking.any():
        return None
    return Finding(
        FindingKind.UNMEASURED_RESOURCES,
        n_services=int(evidence.alive.sum()),
        n_nodes=len(evidence.history.nodes),
        load_share=np.where(lacking, np.nan, 0.0),
        what=f"neither services nor nodes were measured in {_names(lacking)}: no forecast, score or report knows it",
        advice=f"scrape {_metrics(lacking)}; and node-exporter on the nodes",
    )


def unknown_requests(evidence: AuditEvidence) -> Finding | None:
    """Finds services whose pods have no known request; CPU stands for all resources but memory, as in a cold start."""
    unknown = np.isnan(evidence.history.requests)  # (n_services, 2)
    touched = np.repeat(unknown[:, :1], len(RESOURCES), axis=1)
    touched[:, MEMORY] = unknown[:, 1] & _measured(evidence)[:, MEMORY].any()
    return service_finding(
        FindingKind.UNKNOWN_REQUESTS,
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


def unknown_capacity(evidence: AuditEvidence) -> Finding | None:
    """Finds nodes with usage of a resource whose limit is not known, and says what can be learned."""
    history = evidence.history
    used = np.isfinite(history.node_usage).any(axis=(2, 3))  # (n_nodes, n_resources)
    touched = np.isnan(history.capacity) & used
    lacking = [r for r in range(len(RESOURCES)) if touched[:, r].any()]
    n_learned = np.isfinite(assumed_capacities(history)).sum(axis=0) if lacking else None
    named = ", ".join(
        f"{RESOURCES[r].name} of {touched[:, r].sum()}"
        + (f" ({n_learned[r]} assumed from what they sustained)" if n_learned is not None and n_learned[r] else "")
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
        FindingKind.UNKNOWN_CAPACITY,
        evidence,
        touched,
        what=f"{{n}} have no known capacity: {named}; a resource without one is no limit",
        advice="; ".join(advice),
        detail=lambda n, _: ", ".join(RESOURCES[r].name for r in np.flatnonzero(touched[n])) + " unknown",
    )


def _measured(evidence: AuditEvidence) -> Bools:
    """(n_services, n_resources) whether any half hour of the last weeks was measured."""
    return np.asarray(np.isfinite(evidence.recent.usage_per_pod).any(axis=(2, 3)))


def _nodes_measured(evidence: AuditEvidence) -> Bools:
    """(n_resources,) whether any node was measured in the last weeks."""
    return np.asarray(np.isfinite(evidence.recent.node_usage).any(axis=(0, 2, 3)))


def _names(resources: Bools) -> str:
    return ", ".join(RESOURCES[r].name for r in np.flatnonzero(resources))


def _metrics(resources: Bools) -> str:
    return "; ".join(_METRICS[r] for r in np.flatnonzero(resources))


# Usage that stops at a ceiling, so that demand above it is not in the history.
#
# A CPU limit throttles a container in periods of 0.1 s. Where these were counted, trainer.audit.limits looks at the
# counts. Else means over half hours show a limit only where usage stays at it for whole half hours. That is clipping,
# and is found as in inverter power (pvanalytics, `features.clipping.levels`): many values in one narrow level at the
# top, few below it.


def ceiling(usage: AnyFloats) -> tuple[Floats, Floats]:
    """The ceiling of each series, and the share of its values at it: (n_series,) each; NaN, 0 where there is none.

    usage : (n_series, n_values), NaN = not measured
    """
    top = nan_quantile(usage, _TOP_QUANTILE)
    n_known = np.isfinite(usage).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        height = usage / np.where(top > 0, top, np.nan)[:, None]
        at_top = (height >= 1 - LEVEL_WIDTH).sum(axis=1) / n_known
        below = ((height >= 1 - 3 * LEVEL_WIDTH) & (height < 1 - LEVEL_WIDTH)).sum(axis=1) / n_known
        low = (height < _LOW).sum(axis=1) / n_known
        found = (
            (n_known >= _LEAST_SLOTS) & (at_top >= LEAST_SHARE) & (at_top >= _CROWDING * below) & (low >= _LEAST_LOW)
        )
    return np.where(found, top, np.nan), np.where(found, at_top, 0.0)


def cpu_ceilings(evidence: AuditEvidence) -> Finding | None:
    """Finds services whose pods stop at one level of CPU, of those whose throttling is not known."""
    usage, hits = evidence.recent.usage_per_pod[:, CPU], evidence.recent.limit_hits
    top, share = ceiling(usage.reshape(len(usage), -1))
    touched = np.zeros((len(usage), len(RESOURCES)), dtype=np.bool_)
    with np.errstate(invalid="ignore"):
        touched[:, CPU] = top >= _LEAST_CORES
    if hits is not None:
        touched[hits.seen.any(axis=1), CPU] = False
    return service_finding(
        FindingKind.CPU_CEILING,
        evidence,
        touched,
        what=f"{{n}} use the same CPU at their top in {100 * LEAST_SHARE:g} % of half hours or more, as under a CPU "
        "limit (or with a fixed number of busy threads): demand above is not in the history",
        advice="divide rate(container_cpu_cfs_throttled_periods_total[5m]) by rate(container_cpu_cfs_periods_total[5m])"
        " of these pods; where it is above a few per cent, raise or remove limits.cpu and keep requests.cpu",
        detail=lambda s, _: f"{100 * share[s]:.0f} % of half hours at {top[s]:.3g} cores per pod",
    )


def full_nodes(evidence: AuditEvidence) -> Finding | None:
    """Finds nodes whose CPU is used up now and then."""
    usage, capacity = evidence.recent.node_usage[:, CPU], evidence.recent.capacity_of_days[:, CPU]
    with np.errstate(invalid="ignore", divide="ignore"):
        n_full = (usage >= FULL_NODE * capacity[:, :, None]).sum(axis=(1, 2))
        share = n_full / np.maximum(np.isfinite(usage).sum(axis=(1, 2)), 1)
    touched = np.zeros((len(usage), len(RESOURCES)), dtype=np.bool_)
    touched[:, CPU] = share >= _LEAST_FULL
    return node_finding(
        FindingKind.FULL_NODES,
        evidence,
        touched,
        what=f"{{n}} use {100 * FULL_NODE:g} % of their CPU or more in {100 * _LEAST_FULL:g} % of half hours: their "
        "pods would have used more elsewhere",
        advice="forecasts of these pods are low until they ran on nodes with room: move some away (forecast-scheduler "
        "rebalance --plan), or add nodes (forecast-scheduler capacity --history DIR)",
        detail=lambda n, _: f"full in {100 * share[n]:.1f} % of half hours",
    )
