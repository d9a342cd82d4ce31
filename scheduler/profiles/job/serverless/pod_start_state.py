"""How a pod on a virtual node fares, as its status says it."""

from __future__ import annotations

from enum import Enum
from typing import Final

from kube.objects.objects import Phase, PodInfo

_REASONS: Final = frozenset({"ProviderFailed", "NotFound", "UnexpectedAdmissionError"})
"""virtual-kubelet (node/pod.go, handleProviderError and updatePodStatus): the provider refused to create the pod, or
says that it knows of none. The pod fails if it is never restarted, else it stays pending and is tried again. The third
is what kubelets say."""

_STARTED: Final = (Phase.RUNNING, Phase.SUCCEEDED)
_MAY_BE_REJECTED: Final = (Phase.PENDING, Phase.FAILED)

_OUT_OF: Final = "OutOf"
"""Followed by what the node has too little of: it admits no more."""


class Failure(Enum):
    """Why a pod has not started."""

    REJECTED = "rejected"  # the provider says no
    STALLED = "stalled"  # it says nothing, for longer than start_timeout
    LOST = "lost"  # its node is gone, or not ready


def has_started(pod: PodInfo) -> bool:
    """Whether any of it has run, init containers included: these may have done what must not be done twice."""
    return pod.started is not None or pod.is_preparing or pod.phase in _STARTED


def is_rejected(pod: PodInfo) -> bool:
    """Whether the provider says that it does not run the pod. False once it has started."""
    if has_started(pod) or pod.terminating or pod.phase not in _MAY_BE_REJECTED:
        return False
    return pod.status_reason in _REASONS or pod.status_reason.startswith(_OUT_OF)
