"""Which pods count, and for what: decided from the pod, its service and its rollout alone."""

from __future__ import annotations

from typing import Final

from forecast.service_key import ServiceKey
from kube.objects.objects import PodInfo, PodPhase

FINISHED: Final = frozenset({PodPhase.SUCCEEDED, PodPhase.FAILED})
"""Phases in which a pod holds no resources any more."""

WAITING_SECONDS: Final = 600.0


def sits(pod: PodInfo) -> bool:
    """Whether it holds resources on its node; a terminating pod does until it has gone."""
    return bool(pod.node) and pod.phase not in FINISHED


def waits(pod: PodInfo) -> bool:
    """Whether it is still to be bound to a node."""
    return not pod.node and pod.phase not in FINISHED


def serves(pod: PodInfo, *, superseded: bool, now: float) -> bool:
    """Whether it counts as a replica: it shares the service's load, or will once it is bound and ready.

    A pod that has found no node for WAITING_SECONDS does not: it may never, and those that run carry its share.
    """
    overdue = waits(pod) and now >= pod.created + WAITING_SECONDS
    return not (pod.terminating or superseded or overdue or pod.phase in FINISHED)


def seat_weight(service: ServiceKey, *, serves: bool) -> float:
    """1 if the forecast counts the pod; pods that come with the node are part of the node's base load instead."""
    return 1.0 if serves and not service.belongs_to_node else 0.0


def same_requests(a: PodInfo | None, b: PodInfo | None) -> bool:
    """Whether two states of a pod add the same to the columns of its node."""
    return (
        a is not None
        and b is not None
        and a.requests == b.requests
        and a.nonzero_requests == b.nonzero_requests
        and a.qos == b.qos
    )
