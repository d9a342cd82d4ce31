"""Keeps our gate on pods that the quota of their tenant does not admit, however long that takes.

kube-scheduler knows no ElasticQuotas: a pod whose gate is gone gets a node. So it counts as using its quota from the
moment at which its gate is removed, and no other pod is promised the same room.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final

from kube.objects.objects import PodInfo
from placement.gate_exemptions import ADVICE
from tenants.quota_tree import NO_QUOTA
from tenants.quotas import Quotas

logger = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 5.0
_MANY: Final = 4096
_UNREAD_SECONDS: Final = 60.0


def is_released(pod: PodInfo) -> bool:
    """Return whether the advisor has removed its gate: kube-scheduler may bind the pod at any moment."""
    return ADVICE in pod.annotations and not pod.gates


class QuotaGate:
    """For any thread.

    reading : takes the lock of the tables
    leads   : only the leader knows what was advised and is not bound yet
    is_read : whether the quotas were listed once. Until then no pod is released, for a minute at most: where they
              cannot be listed, quotas must not keep pods from starting
    clock   : seconds, monotonic
    """

    def __init__(
        self,
        quotas: Quotas,
        *,
        reading: Callable[[], AbstractContextManager[object]],
        leads: Callable[[], bool],
        is_read: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._quotas, self._reading, self._leads, self._clock = quotas, reading, leads, clock
        # When a pod was last kept, and at which version of the ledger: nothing is asked again until that changes.
        self._kept: dict[str, tuple[int, float]] = {}
        self._most_kept = _MANY  # of which those that are gone are looked for
        self._is_read, self._began, self._has_complained = is_read, clock(), False

    def acts_alone(self) -> None:
        """At the end, when this replica leads no more and no other does: what it knows of the quotas counts."""
        self._leads = lambda: True
        self._kept.clear()

    def keeps(self, uid: str) -> bool:
        """Return whether the pod was kept when it was last asked about."""
        return uid in self._kept

    def why(self, pod: PodInfo) -> str:
        """Return why a pod that was kept is not admitted now; '' = it was not kept, or would be admitted."""
        if pod.uid not in self._kept:
            return ""
        with self._reading():
            found = self._quotas.denial(pod)
            return "" if found is None else self._quotas.sentence(pod, found)

    def admit(self, pod: PodInfo) -> bool:
        """Return whether the gate of a pod may go, and count on it from now on."""
        version, now = self._quotas.ledger.version, self._clock()
        if not self._is_read() and not self._has_waited(now):
            return False
        kept_at, kept_since = self._kept.get(pod.uid, (-1, now))
        if kept_at == version and now - kept_since < _LOOK_SECONDS:
            return False
        with self._reading():
            if self._quotas.tree.row_of(pod) != NO_QUOTA:
                if not self._leads() or self._quotas.denial(pod) is not None:
                    self._forget_long_gone(now)
                    self._kept[pod.uid] = version, now
                    return False
                self._quotas.ledger.promise(pod.uid)
            self._kept.pop(pod.uid, None)
        return True

    def released(self, pod: PodInfo) -> None:
        """Count on a pod whose gate was removed with advice, also if it loses its node in the tables again."""
        if self._quotas.tree.row_of(pod) != NO_QUOTA:
            with self._reading():
                self._kept.pop(pod.uid, None)
                self._quotas.ledger.promise(pod.uid)

    def withdraw(self, uid: str) -> None:
        """The gate is still there after all."""
        with self._reading():
            self._quotas.ledger.withdraw(uid)

    def _has_waited(self, now: float) -> bool:
        if now - self._began < _UNREAD_SECONDS:
            return False
        if not self._has_complained:
            self._has_complained = True
            logger.error("quotas were not read, pods are released without them (grant list and watch on elasticquotas)")
        return True

    def _forget_long_gone(self, now: float) -> None:
        if len(self._kept) > self._most_kept:
            self._kept = {uid: kept for uid, kept in self._kept.items() if now - kept[1] < 2 * _LOOK_SECONDS}
            self._most_kept = max(_MANY, 2 * len(self._kept))  # not with each pod while so many are kept
