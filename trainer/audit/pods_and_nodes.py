"""Whether the pods of a node and the node itself tell the same story: what pods use more, their node uses more, too.

A factor between the two says that one of them is read in part, twice, or in another unit. The base load of a node does
not disturb: it is the intercept, and only the slope is judged.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from base.arrays import Floats
from forecast.resources import CPU, MEMORY, RESOURCES
from trainer.audit.finding import AuditEvidence, Finding, FindingKind, node_finding

FACTORS: Final = (0.6, 1.6)
"""Cores of a node for each core of its pods. The kernel's work for pods costs a node up to a fifth more."""

LEAST_CORRELATION: Final = 0.9
"""Below it something besides pods moves the node, and the slope means nothing."""

_LEAST_SLOTS, _LEAST_NODES = 24, 3
_LEAST_MOVE = 0.05


def pods_and_nodes(evidence: AuditEvidence) -> Finding | None:
    """Finds resources in which nodes move by a multiple of what their pods move by, on most of the nodes."""
    slopes = np.stack([_slopes(evidence, resource) for resource in (CPU, MEMORY)])  # (2, n_nodes)
    named, touched = [], np.zeros((len(evidence.history.nodes), len(RESOURCES)), dtype=bool)
    for resource, of_nodes in zip((CPU, MEMORY), slopes, strict=True):
        known = np.isfinite(of_nodes)
        if known.sum() < _LEAST_NODES or not _unmeasured_nowhere(evidence, resource):
            continue
        factor = float(np.median(of_nodes[known]))
        if not FACTORS[0] <= factor <= FACTORS[1]:
            named.append(f"{RESOURCES[resource].name} of a node by {factor:.2f} for each 1 of its pods")
            touched[:, resource] = known
    return node_finding(
        FindingKind.PODS_AND_NODES,
        evidence,
        touched,
        what=f"{{n}} move in another measure than their pods: {' and '.join(named)} (median). Usage of pods is read in "
        "part, twice, or in another unit than that of nodes",
        advice="compare container_* and node_* on one node: is a label summed over that should be a maximum, is a unit "
        "other than cores and bytes used (prometheus.queries), do several clusters answer?",
        detail=lambda node, resource: f"{slopes[(CPU, MEMORY).index(resource), node]:.2f}",
    )


def _slopes(evidence: AuditEvidence, resource: int) -> Floats:
    """(n_nodes,) regression of a node's usage on that of its pods; NaN where it means nothing."""
    recent = evidence.recent
    out = np.full(len(recent.nodes), np.nan)
    for node in range(len(recent.nodes)):
        pods = recent.node_pod_usage[node, resource].ravel().astype(np.float64)
        whole = recent.node_usage[node, resource].ravel().astype(np.float64)
        both = np.isfinite(pods) & np.isfinite(whole)
        x, y = pods[both], whole[both]
        if len(x) < _LEAST_SLOTS or x.std() <= _LEAST_MOVE * x.mean() or not y.std():
            continue
        if np.corrcoef(x, y)[0, 1] >= LEAST_CORRELATION:
            out[node] = np.cov(x, y)[0, 1] / x.var(ddof=1)
    return out


def _unmeasured_nowhere(evidence: AuditEvidence, resource: int) -> bool:
    """Whether all living services are measured: else the slope is theirs, and they have a finding of their own."""
    measured = np.isfinite(evidence.recent.usage_per_pod[:, resource]).any(axis=(1, 2))
    return bool(np.all(measured | ~evidence.alive))
