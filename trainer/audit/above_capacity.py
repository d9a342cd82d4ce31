"""Nodes that used more than they have, though less than what cleaning removes; and which cause the figures speak for.

Disk, network and log have the capacity that people set, so that may be wrong. CPU and memory have the one of
Kubernetes: there the pods of the node, and the days, tell causes apart.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from base.arrays import Bools
from forecast.assumed_capacity import ASSUMED_RESOURCES
from forecast.resources import CPU, MEMORY, RESOURCES
from trainer.audit.finding import AuditEvidence, Finding, FindingKind, node_finding

_ABOVE: Final = 1.02  # rates of short steps round up
_LEAST_HALF_HOURS: Final = 4
_QUIET_DAYS: Final = 3
"""Days below capacity at the end of a history, which a node that was always above has by chance seldom."""

_OTHER_MACHINE = (
    "only until {last}, so the machine was another one then, and its capacity of today is held against it: nothing is "
    "to be done once these days are older than four weeks"
)
_PODS_AGREE = (
    "and so did their pods alone, so either the capacity is too small (compare kube_node_status_capacity with the "
    "machine) or the name stands for nodes of several clusters in one store (set prometheus.cluster)"
)
_NODE_ALONE = (
    "and their pods did not, so the node's own series are counted twice (two exporters on a node, replicas that are "
    "not deduplicated) or in another unit: compare prometheus.queries.node_{resource} with the machine"
)


def above_capacity(evidence: AuditEvidence) -> Finding | None:
    """Finds nodes that used more than they have, and says what the figures speak for."""
    recent = evidence.recent
    limit = _ABOVE * recent.capacity_of_days[..., None]  # (n_nodes, n_resources, n_days, 1)
    with np.errstate(invalid="ignore"):
        above = np.asarray(recent.node_usage > limit)
        pods_above = np.asarray(recent.node_pod_usage > limit)
    n_above = above.sum(axis=(2, 3))
    touched = n_above >= _LEAST_HALF_HOURS
    causes = [
        cause
        for r in (CPU, MEMORY)
        if touched[:, r].any()
        for cause in _causes(evidence, r, above, pods_above, touched)
    ]
    if set_by_people := [RESOURCES[r].name for r in ASSUMED_RESOURCES if touched[:, r].any()]:
        keys = ", ".join(f"prometheus.{name}_capacity" for name in set_by_people)
        causes.append(
            f"{', '.join(set_by_people)}: correct {keys} or the annotation forecast-scheduler.io/capacity, or the unit "
            "of the node's query"
        )
    return node_finding(
        FindingKind.ABOVE_CAPACITY,
        evidence,
        touched,
        what=f"{{n}} used more than their capacity in {_LEAST_HALF_HOURS} half hours or more",
        advice="; ".join(causes),
        detail=lambda n, r: f"{n_above[n, r]} half hours above",
    )


def _causes(evidence: AuditEvidence, r: int, above: Bools, pods_above: Bools, touched: Bools) -> list[str]:
    """Return the causes of one resource, those of most nodes first.

    above, pods_above : (n_nodes, n_resources, n_days, 48) whether the node, and its pods alone, used more
    touched           : (n_nodes, n_resources)
    """
    by_cause: dict[str, list[int]] = {}
    for node in np.flatnonzero(touched[:, r]).tolist():
        days = above[node, r].any(axis=1)
        last = int(np.flatnonzero(days)[-1])
        if last < len(days) - _QUIET_DAYS and days[: last + 1].sum() >= _QUIET_DAYS:
            cause = _OTHER_MACHINE.format(last=evidence.recent.days[last])
        elif 2 * pods_above[node, r].sum() >= above[node, r].sum():
            cause = _PODS_AGREE
        else:
            cause = _NODE_ALONE.format(resource=RESOURCES[r].name)
        by_cause.setdefault(cause, []).append(node)
    ordered = sorted(by_cause.items(), key=lambda item: -len(item[1]))
    return [f"{RESOURCES[r].name}: {_nodes(evidence, nodes)} used more {cause}" for cause, nodes in ordered]


def _nodes(evidence: AuditEvidence, nodes: list[int]) -> str:
    first = evidence.recent.nodes[nodes[0]]
    return first if len(nodes) == 1 else f"{len(nodes)} nodes such as {first}"
