"""Pods that our gate holds, since when it holds them alone, and who is removing it. Follows the tables.

held --claim--> being written --released(True)--> released --watch--> forgotten
  ^                   |                              |
  +---released(False)-+------ not seen for long -----+
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kube.objects.objects import PodInfo
from kube.objects.pod_accounting import waits
from kube.tables.changes import Change, PodChange, one_by_one
from placement.advice_gate import ADVICE
from scorer.assuming_cluster import AssumingCluster
from scorer.follower import NodesAndPodsOnly

_LAG_SECONDS: Final = 5.0
"""Seconds in which the watch usually shows what was written."""


@dataclass(slots=True)
class _Held:
    """
    since      : when this process first saw the pod held by our gate alone
    is_claimed : its gate is being removed, or was
    released   : when it was; None = not yet
    """

    pod: PodInfo
    since: float
    is_claimed: bool = False
    released: float | None = None


class GatedPods(NodesAndPodsOnly):
    """Implements Follower; what it says may be asked from any thread.

    Time is this process's own: the API server's has whole seconds, and another machine's clock.
    clock : seconds, monotonic
    """

    def __init__(self, cluster: AssumingCluster, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._cluster, self._clock = cluster, clock
        self._lock = threading.Lock()
        self._held: dict[str, _Held] = {}

    def __len__(self) -> int:
        return len(self._held)

    def claim(self, uid: str) -> bool:
        """Return whether the caller is the one to remove the gate of a pod; it says `released` in any case."""
        with self._lock:
            held = self._held.get(uid)
            if held is None or held.is_claimed:
                return False
            held.is_claimed = True
            return True

    def released(self, uid: str, *, is_gone: bool) -> None:
        """The gate of a pod that was claimed is gone, or could not be removed."""
        with self._lock:
            if (held := self._held.get(uid)) is not None:
                held.is_claimed, held.released = is_gone, self._clock() if is_gone else None

    def held_for(self, seconds: float) -> list[PodInfo]:
        """Return pods that our gate alone has held for so long and that are not claimed."""
        now = self._clock()
        with self._lock:
            for one in self._held.values():
                if one.released is not None and now - one.released > _LAG_SECONDS:
                    one.is_claimed, one.released = False, None
            return [one.pod for one in self._held.values() if now - one.since >= seconds and not one.is_claimed]

    def longest(self) -> float:
        """Return the seconds for which the pod that has waited longest has been held; 0 = none is."""
        now = self._clock()
        with self._lock:
            return max((now - one.since for one in self._held.values() if one.released is None), default=0.0)

    # Implements Follower

    def apply(self, changes: Sequence[Change]) -> None:
        for change in one_by_one(changes):
            if isinstance(change, PodChange):
                self._look(change.pod.uid)

    def rebuild(self) -> None:
        """The tables could not follow: look at all pods."""
        for uid in {*self._held, *self._cluster.state.pods}:
            self._look(uid)

    def _look(self, uid: str) -> None:
        pod = self._cluster.state.pods.get(uid)
        with self._lock:
            # One that is assumed has a node in the tables, and its gate until the watch shows that it is gone.
            is_open = pod is not None and (waits(pod) or uid in self._cluster.assumed) and not pod.terminating
            if pod is None or not is_open or pod.gates != (ADVICE,):
                self._held.pop(uid, None)
            elif uid in self._held:
                self._held[uid].pod = pod
            else:
                self._held[uid] = _Held(pod, self._clock())
