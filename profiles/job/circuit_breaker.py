"""How a pod on a virtual node fares, and whether its provider gets more: a circuit breaker, which decides from reported
starts and failures.

    WORKS --a pod fails--> BACKS_OFF --30 s, 60 s, ... 10 min--> PROBES --a pod starts--> WORKS
                               ^------------its pod fails-----------+

While it backs off it gets no pods, and what fails then is of before. While it probes it gets one pod at a time, or the
pods of one gang, which start together or not at all. One
that fails although others have started since it was bound says nothing of the provider: what is wrong is the pod,
unless it is the third in a row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from kube.objects.objects import PodInfo, PodPhase
from placement.virtual_node_settings import Provider

_FACTOR: Final = 2.0

_IN_A_ROW: Final = 3
"""Failures without a start between them are the provider's, whatever started before."""

_REASONS: Final = frozenset({"ProviderFailed", "NotFound", "UnexpectedAdmissionError"})
"""virtual-kubelet (node/pod.go, handleProviderError and updatePodStatus): the provider refused to create the pod, or
says that it knows of none. The pod fails if it is never restarted, else it stays pending and is tried again. The third
is what kubelets say."""

_STARTED: Final = (PodPhase.RUNNING, PodPhase.SUCCEEDED)
_MAY_BE_REJECTED: Final = (PodPhase.PENDING, PodPhase.FAILED)

_OUT_OF: Final = "OutOf"
"""Followed by what the node has too little of: it admits no more."""


class Health(Enum):
    """How a provider is."""

    WORKS = "works"
    BACKS_OFF = "backs off"
    PROBES = "probes"


@dataclass(slots=True)
class ProviderHealth:
    """
    until   : unix seconds at which it is tried again, while it backs off
    pause   : seconds of the last backoff; 0 = there was none since a pod started
    probing : UIDs of pods that find out, while it probes
    probing_gang : key of the PodGroup that all of these are of; '' = of none
    """

    provider: Provider
    until: float = 0.0
    pause: float = 0.0
    is_backing_off: bool = False
    probing: set[str] = field(default_factory=set)
    probing_gang: str = ""
    _last_start: float = float("-inf")
    _in_a_row: int = 0

    def health(self, now: float) -> Health:
        if not self.is_backing_off:
            return Health.WORKS
        # A clock that was set back must not make a pause longer.
        is_pausing = 0 < self.until - now <= self.provider.backoff_longest
        return Health.BACKS_OFF if is_pausing else Health.PROBES

    def room(self, now: float, gang: str = "") -> int | None:
        """Pods of a gang ('' = of none) that it may be given at once; None = any number."""
        match self.health(now):
            case Health.WORKS:
                return None
            case Health.BACKS_OFF:
                return 0
            case Health.PROBES:
                if not self.probing:
                    return None if gang else 1
                return None if gang and gang == self.probing_gang else 0

    def seated(self, uid: str, now: float, gang: str = "") -> None:
        """A pod of a gang ('' = of none) is given to it."""
        if self.health(now) is Health.PROBES:
            if not self.probing - {uid}:
                self.probing_gang = gang
            elif gang != self.probing_gang:
                self.probing_gang = ""
            self.probing.add(uid)

    def left(self, uid: str) -> None:
        """A pod is not there any more, and what became of it says nothing."""
        self.probing.discard(uid)

    def started(self, uid: str, now: float) -> None:
        """A pod of it runs."""
        self._last_start, self._in_a_row = now, 0
        self.probing.discard(uid)
        if self.health(now) is not Health.BACKS_OFF:
            self.is_backing_off, self.pause = False, 0.0
            self.probing.clear()

    def failed(self, uid: str, since: float, now: float) -> bool:
        """A pod of it was rejected or has not started; returns whether it backs off from now on.

        since : unix seconds when it was bound
        """
        was_probe = uid in self.probing
        self.probing.discard(uid)
        self._in_a_row += 1
        if self.is_backing_off:
            if not was_probe:
                return False
        elif since < self._last_start <= now and self._in_a_row < _IN_A_ROW:
            return False
        longest = self.provider.backoff_longest
        self.pause = min(longest, self.pause * _FACTOR if self.pause else self.provider.backoff_initial)
        self.until, self.is_backing_off = now + self.pause, True
        self.probing.clear()
        return True


class StartFailure(Enum):
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
