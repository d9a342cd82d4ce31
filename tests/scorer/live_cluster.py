"""A small live cluster in objects, and a model that knows its services (service-0 to -5) and nodes (node-0 to -3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache

import numpy as np

from base.arrays import AnyFloats
from cluster.live.usage import NodeUsage
from cluster.model_watch import LoadedModel
from forecast.model import PeakModel
from forecast.resources import DISK, RESOURCES
from forecast.service_key import NO_OWNER, Owner, ServiceKey
from kube.objects.objects import NodeInfo, PodInfo, QosClass
from testing.fitted_models import fitted
from testing.objects import node_info
from tests.kube.api_objects import pod
from tests.synthetic import synthetic_history

N_RESOURCES = len(RESOURCES)
CAPACITY = 40.0


@lru_cache(maxsize=1)
def model() -> PeakModel:
    """Learned from 15 days; its first day is Tuesday, 2026-05-19."""
    return fitted(synthetic_history(n_days=15))


def assuming(amounts: Mapping[int, float], known: Mapping[int, float] | None = None) -> PeakModel:
    """The model with a disk capacity, by node, that is assumed or known; the other nodes have none of disk."""
    capacity, assumed = model().node_capacity.copy(), np.zeros_like(model().node_capacity)
    capacity[:, DISK] = np.nan
    for row, amount in {**amounts, **(known or {})}.items():
        capacity[row, DISK] = amount
    assumed[list(amounts), DISK] = 1
    return replace(model(), node_capacity=capacity, node_capacity_assumed=assumed)


def loaded(of: PeakModel | None = None, version: str = "v1") -> LoadedModel:
    return LoadedModel(version, of or model(), {})


def growing(evening: float = 9.0) -> LoadedModel:
    """Service 5 follows its load: two pods, and more between 19:00 and 21:00."""
    autoscaled = model().autoscaled.copy()
    autoscaled[5] = 1
    dated, day_type = model().replicas_dated.copy(), model().replicas_day_type.copy()
    for counts in (dated, day_type):
        counts[5] = 2.0
        counts[5, :, 38:42] = evening
    return loaded(replace(model(), autoscaled=autoscaled, replicas_dated=dated, replicas_day_type=day_type))


def at(hour: float, day: int = 0) -> float:
    """Unix seconds so many hours into the model's first day."""
    return model().calendar.midnight(model().first_day).timestamp() + 3600 * hour + 86_400 * day


def moment(hour: float, day: int = 0) -> datetime:
    return datetime.fromtimestamp(at(hour, day), UTC)


def service(number: int) -> ServiceKey:
    return ServiceKey("shop", "Deployment", f"service-{number}")


def node(name: str, size: float = CAPACITY, annotations: Mapping[str, str] | None = None) -> NodeInfo:
    amounts = {"cpu": size, "memory": size, "pods": 110.0}
    return node_info(
        name,
        annotations=annotations or {},
        allocatable=amounts,
        addresses=(f"10.0.0.{name.rpartition('-')[2]}",),
    )


def pod_of(
    number: int | None,
    name: str,
    on: str = "",
    *,
    cpu: float = 0.5,
    memory: float = 0.5,
    started: float | None = None,
    qos: QosClass = QosClass.BURSTABLE,
    terminating: bool = False,
    annotations: Mapping[str, str] | None = None,
) -> PodInfo:
    """A pod of service number such-and-such; None = a bare one, which no model knows."""
    owner = NO_OWNER if number is None else Owner("ReplicaSet", f"service-{number}-7d9f")
    made = pod(
        name,
        node=on,
        owner=owner,
        owner_uid="" if number is None else f"rs-{number}",
        labels={} if number is None else {"pod-template-hash": "7d9f"},
        requests={"cpu": cpu, "memory": memory},
        qos=qos,
        terminating=terminating,
    )
    return replace(made, started=started, annotations=annotations or {})


def measured(usage: Mapping[str, AnyFloats | Sequence[float] | float], sampled: float) -> NodeUsage:
    """The same for all resources where it is one number."""
    return NodeUsage(
        nodes=tuple(usage),
        usage=np.array([np.broadcast_to(amount, N_RESOURCES) for amount in usage.values()], dtype=np.float64),
        sampled=np.full(len(usage), sampled),
    )
