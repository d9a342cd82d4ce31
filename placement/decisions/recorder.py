"""Brings advice and binding together: what was advised on a pod is kept until the watch shows where the pod went.

    advised(advice) --kept by uid--> bound(pod) ----> log, events
                       |                  |
                       expire: 10 min     without advice: counted

A pod has no advice when another replica gave it, or when kube-scheduler did not ask because one node was left.
Only references are kept and handed on; ranks are worked out where lines are written, in another thread.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kube.objects.objects import PodInfo
from placement.decisions.decision import Advice, Binding, slimmed

MAX_PENDING = 20_000
MAX_PENDING_NODES = 500_000
"""Node names and points kept for pods that are not bound yet, 80 MB at most; beyond it the oldest keep the best two."""

PATIENCE_SECONDS = 600.0
"""Seconds that kube-scheduler waits for volumes (bindTimeoutSeconds); a pod not placed by then is asked about anew."""

_EARLY_SECONDS = 30.0
_MAX_EARLY = 1_000


class DecisionSink(Protocol):
    """A log, or events."""

    def take(self, binding: Binding) -> None:
        """Must not wait."""


@dataclass(frozen=True, slots=True)
class RecorderFigures:
    """Pods since the start, but for `pending`.

    advised     : answers to /prioritize; a pod that is tried again counts again
    as_advised, elsewhere : bound where we would have it, and to another node
    not_advised : bound without our advice
    expired     : advised on, and neither bound nor asked about again for ten minutes
    dropped     : forgotten because too many waited
    pending     : now
    levels      : of as_advised and elsewhere, by the rung of the degradation ladder the advice came from
    """

    advised: int
    as_advised: int
    elsewhere: int
    not_advised: int
    expired: int
    dropped: int
    pending: int
    levels: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Pending:
    advice: Advice
    kept_nodes: int
    at: float


class DecisionRecorder:
    """Any thread may call; each call takes some microseconds and never waits for disk or network."""

    def __init__(
        self,
        sinks: Sequence[DecisionSink],
        *,
        version: str,
        clock: Callable[[], float] = time.time,
        max_pending: int = MAX_PENDING,
        max_pending_nodes: int = MAX_PENDING_NODES,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        """
        sinks   : each gets every decision
        version : of this program
        clock   : unix seconds
        """
        self._sinks, self._version, self._clock = tuple(sinks), version, clock
        self._max_pending, self._max_nodes, self._patience = max_pending, max_pending_nodes, patience
        self._lock = threading.Lock()
        self._pending: OrderedDict[str, _Pending] = OrderedDict()  # the oldest first
        self._whole: OrderedDict[str, None] = OrderedDict()  # those of them whose lists are kept
        self._kept_nodes = 0
        self._early: OrderedDict[str, tuple[str, float]] = OrderedDict()  # bound before its advice arrived: node, at
        self._levels: Counter[str] = Counter()
        self._advised = self._as_advised = self._elsewhere = self._not_advised = self._expired = self._dropped = 0

    def advised(self, advice: Advice) -> str | None:
        """Keep what kube-scheduler was advised, or in shadow mode would have been. Its lists must not change any more.

        Returns the node where the pod is already, None = it is not bound yet.
        """
        now = self._clock()
        with self._lock:
            self._advised += 1
            self._forget_old(now)
            early = self._early.pop(advice.uid, None)
            if early is None:
                self._keep(advice, now)
        if early is None:
            return None
        # An answer that was late, or a watch that was quick.
        self._hand_on(Binding(advice, early[0], early[1], self._version))
        return early[0]

    def bound(self, pod: PodInfo, why_elsewhere: Callable[[Advice], str] = lambda advice: "") -> Advice | None:
        """The pod is on a node now; to be called once for each pod. Returns what was advised, if anything was.

        why_elsewhere : asked where the pod is on another node than the advised one
        """
        if not pod.node:
            return None
        now = self._clock()
        with self._lock:
            pending = self._pop(pod.uid)
            if pending is None:
                self._remember_early(pod, now)
        if pending is None:
            return None
        because = "" if pod.node == pending.advice.best else why_elsewhere(pending.advice)
        self._hand_on(Binding(pending.advice, pod.node, now, self._version, because))
        return pending.advice

    def expire(self, now: float) -> None:
        """Forget what has waited too long. `advised` does so as well; this is for quiet times."""
        with self._lock:
            self._forget_old(now)

    def figures(self) -> RecorderFigures:
        with self._lock:
            return RecorderFigures(
                self._advised,
                self._as_advised,
                self._elsewhere,
                self._not_advised,
                self._expired,
                self._dropped,
                len(self._pending),
                dict(self._levels),
            )

    def _keep(self, advice: Advice, now: float) -> None:
        self._pop(advice.uid)
        n_nodes = len(advice.nodes)
        self._pending[advice.uid] = _Pending(advice, n_nodes, now)
        self._whole[advice.uid] = None
        self._kept_nodes += n_nodes
        while len(self._pending) > self._max_pending:
            self._pop(next(iter(self._pending)))
            self._dropped += 1
        while self._kept_nodes > self._max_nodes:
            uid, _ = self._whole.popitem(last=False)
            whole = self._pending[uid]
            self._kept_nodes -= whole.kept_nodes
            self._pending[uid] = _Pending(slimmed(whole.advice), 0, whole.at)

    def _pop(self, uid: str) -> _Pending | None:
        pending = self._pending.pop(uid, None)
        if pending is not None:
            self._whole.pop(uid, None)
            self._kept_nodes -= pending.kept_nodes
        return pending

    def _remember_early(self, pod: PodInfo, now: float) -> None:
        """Pods that were there before we looked are no business of ours, and a pod counts once."""
        if now - pod.created > self._patience or pod.uid in self._early:
            return
        self._early[pod.uid] = (pod.node, now)
        if len(self._early) > _MAX_EARLY:
            self._early.popitem(last=False)
            self._not_advised += 1

    def _forget_old(self, now: float) -> None:
        while self._pending and now - next(iter(self._pending.values())).at > self._patience:
            self._pop(next(iter(self._pending)))
            self._expired += 1
        while self._early and now - next(iter(self._early.values()))[1] > _EARLY_SECONDS:
            self._early.popitem(last=False)
            self._not_advised += 1

    def _hand_on(self, binding: Binding) -> None:
        with self._lock:
            self._levels[binding.advice.level] += 1
            if binding.node == binding.advice.best:
                self._as_advised += 1
            else:
                self._elsewhere += 1
        for sink in self._sinks:
            sink.take(binding)
