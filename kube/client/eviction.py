"""Evict a pod through the API server, which asks its disruption budgets.

https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/; what is answered when is in
pkg/registry/core/pod/storage/eviction.go of Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec
from kubernetes import client

from kube.client.api_answer import NO_ANSWER, ApiAnswer
from kube.client.kubernetes_client import send
from kube.client.pod_writes import PodIdentity, pod_path
from kube.objects.objects import PodInfo


class Evicted(Enum):
    """What became of it."""

    GOING = "evicted"  # it terminates, or is gone
    REFUSED = "refused"  # not now: a disruption budget, or something else that speaks of this pod
    NOT_NOW = "failed"  # nothing was done, and no other pod would fare better
    UNKNOWN = "unknown"  # no answer: it may have been done


@dataclass(frozen=True, slots=True)
class Eviction:
    """outcome, and why, for people; '' = as asked."""

    outcome: Evicted
    why: str = ""


Evict = Callable[[PodInfo], Eviction]


def eviction_path(pod: PodIdentity) -> str:
    """Return where to post it."""
    return f"{pod_path(pod)}/eviction"


def eviction_body(pod: PodIdentity, *, dry_run: bool = False) -> bytes:
    """Return an Eviction with the UID as precondition: a later pod of the same name stays.

    dry_run : budgets are asked, and nothing is done
    """
    options: dict[str, Any] = {"preconditions": {"uid": pod.uid}} | ({"dryRun": ["All"]} if dry_run else {})
    return msgspec.json.encode(
        {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"namespace": pod.namespace, "name": pod.name},
            "deleteOptions": options,
        }
    )


def eviction_of(answer: ApiAnswer) -> Eviction:
    """Return what an answer means.

    429 is said both by a disruption budget and by a server that has too much to do; only the first names its cause. 409
    is another pod of the name by now, or a budget that changed meanwhile: the next look shows which.
    """
    status, why = answer.status, answer.text[:300]
    if answer.is_success or status == 404:
        return Eviction(Evicted.GOING)
    causes = answer.causes
    if status == 429 and any(cause.reason == "DisruptionBudget" for cause in causes):
        return Eviction(Evicted.REFUSED, next((cause.message for cause in causes if cause.message), why)[:300])
    if status == 500 and "PodDisruptionBudget" in why:
        return Eviction(Evicted.REFUSED, why)  # more than one covers the pod
    if status == NO_ANSWER or status >= 500 or status == 408:
        return Eviction(Evicted.UNKNOWN, why)
    if status == 403:
        return Eviction(Evicted.NOT_NOW, f"{why}: grant create on pods/eviction")
    if status in (401, 409, 429):
        return Eviction(Evicted.NOT_NOW, why)
    return Eviction(Evicted.REFUSED, why)


def api_server_evict(api: client.ApiClient, *, seconds: float = 5.0) -> Evict:
    """Through the official client's connections, for a thread that may wait. No retries: the next look decides."""

    def evict(pod: PodInfo) -> Eviction:
        if pod.stands_in:  # none of the callers chooses one
            return Eviction(Evicted.REFUSED, f"{pod.name} holds the room of a Reservation, and is no pod")
        return eviction_of(send(api, "POST", eviction_path(pod), eviction_body(pod), seconds=seconds))

    return evict
