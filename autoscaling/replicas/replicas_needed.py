"""Replicas that the load ahead needs, by the arithmetic with which a HorizontalPodAutoscaler reads the same load as an
external metric: both ways of scaling ahead have one answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from autoscaling.replicas.horizontal_autoscalers import TOLERANCE, HorizontalAutoscaler, MetricTarget
from autoscaling.replicas.loads_ahead import LoadsAhead, ServiceLoadAhead
from base.arrays import Floats, Ints
from forecast.service_key import ServiceKey


def external_replicas(needed: Floats, current: Ints, *, up: float, down: float) -> Ints:
    """Replicas for an external metric with an AverageValue: arrays of one shape.

    GetExternalPerPodMetricReplicas in pkg/controller/podautoscaler/replica_calculator.go of Kubernetes 1.37: within the
    tolerance of what there is, nothing changes; beyond it, each pod gets its target at most.

    needed  : pods that the load would fill to their target; NaN = the metric is not there, so it wishes for nothing
    current : replicas that there are, ready or not; > 0
    up, down : tolerance above and below the target, as shares of it
    """
    ratio = needed / current
    is_within = (1 - down <= ratio) & (ratio <= 1 + up)
    wish = np.where(is_within, current, np.ceil(np.round(needed, 6)))
    return np.where(np.isfinite(needed), wish, 0).astype(np.int64)


@dataclass(frozen=True, slots=True)
class ReplicasNeeded:
    """ahead: within the lead; now: for the load that is measured. `ahead` is larger only while the load is to grow."""

    ahead: int
    now: int


LoadsByService = Mapping[ServiceKey, Mapping[str, ServiceLoadAhead]]
"""By resource: cpu, memory."""


def by_service(loads: LoadsAhead) -> LoadsByService:
    """The loads of each service."""
    found: dict[ServiceKey, dict[str, ServiceLoadAhead]] = {}
    for one in loads:
        key = ServiceKey(one.namespace, one.labels["kind"], one.labels["name"])
        found.setdefault(key, {})[one.labels["resource"]] = one
    return found


def replicas_needed(
    of: HorizontalAutoscaler, loads: Mapping[str, ServiceLoadAhead], requests: Mapping[str, float]
) -> ReplicasNeeded | None:
    """The largest wish of its metrics; None = no load of any is said, or its pods request nothing of what counts.

    requests : resource -> cores or bytes of one pod, of which a utilization is a share
    """
    found = [
        ReplicasNeeded(_wish(of, one.value / target), _wish(of, one.used / target))
        for metric in of.targets
        if (one := loads.get(metric.resource)) is not None and (target := _per_pod(metric, requests)) > 0
    ]
    if not found:
        return None
    return ReplicasNeeded(max(one.ahead for one in found), max(one.now for one in found))


def _per_pod(metric: MetricTarget, requests: Mapping[str, float]) -> float:
    """The target in base units; 0 = a share of a request that is not there."""
    value = metric.value if metric.share is None else metric.share * requests.get(metric.resource, 0.0)
    return value or 0.0


def _wish(of: HorizontalAutoscaler, needed: float) -> int:
    wish = external_replicas(np.array([needed]), np.array([of.current]), up=of.tolerance, down=TOLERANCE)
    return int(wish[0])
