"""Pods that our gate holds, since when it holds them alone, and who is removing it. Follows the tables.

held --claim--> being written --released(True)--> released --watch, bound or tried--> forgotten
  ^                   |                              |
  +---released(False)-+--lost, or 5 min without news-+

What we write about a pod comes back as events of the watch that say nothing new (`is_echo`). They are half of all
events of advised pods, and are not decoded.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from cluster.assuming_cluster import AssumingCluster
from cluster.follower import NodesAndPodsOnly
from cluster.tables.changes import Change, PodChange, one_by_one
from kube.objects.counted_pods import waits
from kube.objects.objects import PodInfo
from placement.gate_exemptions import ADVICE

_MODIFIED: Final = b'{"type":"MODIFIED"'
_UID: Final = b'"uid":"'
_UNTRIED: Final = b'"reason":"SchedulingGated"'
_GATE: Final = f'{{"name":"{ADVICE}"}}'.encode()
_NEWS: Final = (b'"deletionTimestamp":"', b'"nodeName":"')

_PAUSE_SECONDS: Final = 1.0
"""After a vain attempt: a pod that cannot be released must not keep the API server busy."""

_LOST_SECONDS: Final = 300.0
"""An API server that is back from an older backup has lost what was written: a pod that kube-scheduler has not even
tried for so long may still have its gate."""


@dataclass(slots=True)
class _Held:
    """
    since      : when this process first saw the pod held by our gate alone
    is_claimed : its gate is being removed
    again_at   : before that it is left alone, after a vain attempt to remove its gate
    """

    pod: PodInfo
    since: float
    is_claimed: bool = False
    again_at: float = float("-inf")


class GatedPods(NodesAndPodsOnly):
    """Implements Follower; what it says may be asked from any thread.

    Time is this process's own: the API server's has whole seconds, and another machine's clock.
    clock : seconds, monotonic
    wall  : unix seconds. Of pods that were there before this process only their creation is known, by another clock:
            where the clocks differ such pods are released earlier or later, once
    """

    def __init__(
        self,
        cluster: AssumingCluster,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._cluster, self._clock, self._wall = cluster, clock, wall
        self._began = wall()
        self._lock = threading.Lock()
        self._held: dict[str, _Held] = {}
        # As the tables have them, with our gate; and when it was removed, infinity = the watch has shown that it was.
        self._released: dict[str, tuple[PodInfo, float]] = {}

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

    def nominated(self, uid: str, node: str) -> None:
        """The node of a pod that was claimed is written; the event of it may be passed over as an echo."""
        with self._lock:
            if (held := self._held.get(uid)) is not None:
                held.pod = replace(held.pod, nominated_node=node)

    def released(self, uid: str, *, is_gone: bool, pause: bool = False) -> None:
        """The gate of a pod that was claimed is gone, or is still there for all that is known.

        pause : it is still there because it cannot be removed now; the pod is left alone for a second
        """
        with self._lock:
            if is_gone:
                if (held := self._held.pop(uid, None)) is not None:
                    self._released[uid] = (held.pod, self._clock())
            elif (held := self._held.get(uid)) is not None:
                held.is_claimed = False
                if pause:
                    held.again_at = self._clock() + _PAUSE_SECONDS

    def lost(self, uid: str) -> None:
        """Hold a released pod again, as the API server still has its gate."""
        with self._lock:
            if uid in self._released:
                self._hold_again(uid)

    def is_echo(self, line: bytes) -> bool:
        """Return whether an event of the watch only shows what was written by us: the nomination of a pod that we are
        about to release, or that our gate is gone, before kube-scheduler has tried the pod.

        What somebody else changes in this moment is seen with the next event of the pod, its binding.
        """
        if not line.startswith(_MODIFIED):
            return False
        uid = line.partition(_UID)[2].partition(b'"')[0].decode()
        with self._lock:
            is_released, held = uid in self._released, self._held.get(uid)
            if not is_released and (held is None or not held.is_claimed):
                return False
        has_gate = _GATE in line
        # After a release without an answer the watch has to say that the gate is gone.
        if not (is_released or has_gate) or _UNTRIED not in line or any(news in line for news in _NEWS):
            return False
        if not has_gate:
            with self._lock:
                if (released := self._released.get(uid)) is not None:
                    self._released[uid] = (released[0], float("inf"))
        return True

    def held_for(self, seconds: float) -> list[PodInfo]:
        """Return pods that our gate alone has held for so long and that are not claimed."""
        now = self._clock()
        with self._lock:
            for uid in [uid for uid, (_, at) in self._released.items() if now - at > _LOST_SECONDS]:
                self._hold_again(uid)
            return [
                one.pod
                for one in self._held.values()
                if now - one.since >= seconds and not one.is_claimed and now >= one.again_at
            ]

    def longest(self, is_left_out: Callable[[str], bool] = lambda uid: False) -> float:
        """Return the seconds for which the pod that has waited longest has been held; 0 = none is.

        is_left_out : whether a pod of this UID does not count
        """
        now = self._clock()
        with self._lock:
            return max((now - one.since for uid, one in self._held.items() if not is_left_out(uid)), default=0.0)

    def number(self, counts: Callable[[str], bool]) -> int:
        """Return how many held pods count, by their UIDs."""
        with self._lock:
            return sum(map(counts, self._held))

    # Implements Follower

    def apply(self, changes: Sequence[Change]) -> None:
        for change in one_by_one(changes):
            if isinstance(change, PodChange):
                self._look(change.pod.uid)

    def rebuild(self) -> None:
        """The tables could not follow: look at all pods."""
        with self._lock:
            known = {*self._held, *self._released}
        for uid in known.union(self._cluster.state.pods):
            self._look(uid)

    def _look(self, uid: str) -> None:
        pod = self._cluster.state.pods.get(uid)
        with self._lock:
            # One that is assumed has a node in the tables, and its gate until the watch shows that it is gone.
            is_open = pod is not None and (waits(pod) or uid in self._cluster.assumed) and not pod.terminating
            if pod is None or not is_open or pod.gates != (ADVICE,):
                self._held.pop(uid, None)
                self._released.pop(uid, None)
            elif uid in self._released:
                self._released[uid] = (pod, self._released[uid][1])
            elif uid in self._held:
                self._held[uid].pod = pod
            else:
                self._held[uid] = _Held(pod, self._clock() - self._age(pod))

    def _age(self, pod: PodInfo) -> float:
        """Seconds for which a pod that was there before this process has been held already."""
        return self._wall() - pod.created if 0.0 < pod.created < self._began - 1.0 else 0.0

    def _hold_again(self, uid: str) -> None:
        self._held[uid] = _Held(self._released.pop(uid)[0], self._clock())
