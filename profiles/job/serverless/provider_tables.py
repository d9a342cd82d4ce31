"""Virtual nodes, what pods of ours use of their providers, and how these fare; follows the cluster.

    Node  --node_ownership.py--> provider of each row
    pods  --assumed, bound, started, gone--> use (provider_use.py), starts and failures --> health (circuit_breaker.py)

Everything is called under the lock of the tables. What is remembered is of pods that sit: nothing else grows.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from base.arrays import Bools, Ints
from cluster.follower import NodesAndPodsOnly
from cluster.predicted.array_rows import grown
from cluster.tables.changes import Change, NodeAdded, NodeChanged, NodeRemoved, PodChange, one_by_one
from cluster.tables.state import ClusterState
from kube.objects.objects import PodInfo
from placement.pod_groups.group_of_pod import group_of
from placement.virtual_node_settings import Provider, ServerlessOptions
from placement.virtual_node_table import REAL, Claims
from profiles.job.circuit_breaker import (
    Health,
    ProviderHealth,
    StartFailure,
    has_started,
    is_rejected,
)
from profiles.job.serverless.provider_use import Limit, ProviderRequest, ProviderUse, wanted_by

logger = logging.getLogger(__name__)

LOST_SECONDS: Final = 10.0
"""Seconds for which a node may be gone or not ready before pods that have not started there are given up."""

_TELL_SECONDS: Final = 0.5
"""Thousands of pods may wait for each that starts: all of them are woken so often and no oftener."""


@dataclass(frozen=True, slots=True)
class NotStarted:
    """A pod that is not to be waited for any longer."""

    pod: PodInfo
    provider: str
    failure: StartFailure


@dataclass(frozen=True, slots=True)
class _Seated:
    """provider: its number; since: unix seconds when it was first seen there."""

    provider: int
    row: int
    wanted: ProviderRequest
    since: float


class ProviderTables(NodesAndPodsOnly):
    """Implements Follower.

    providers : by number, OTHER among them
    uses, healths : by number
    failures  : counted since the start, by name of the provider and kind of failure
    on_room   : called when a provider that was full or backed off may take pods again, twice a second at most; quick
    on_failed : called with each pod that was rejected or not started although its provider works, once; quick
    """

    def __init__(
        self,
        state: ClusterState,
        options: ServerlessOptions,
        *,
        is_ours: Callable[[PodInfo], bool],
        is_assumed: Callable[[str], bool] = lambda uid: False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """
        is_ours    : pods that count
        is_assumed : by UID: it is not bound yet, as far as is known
        clock      : unix seconds
        """
        self._state, self._claims, self._clock = state, Claims(options), clock
        self._is_ours, self._is_assumed = is_ours, is_assumed
        self.providers: Sequence[Provider] = self._claims.providers
        self.uses = [ProviderUse(provider) for provider in self.providers]
        self.healths = [ProviderHealth(provider) for provider in self.providers]
        self.failures: Counter[tuple[str, StartFailure]] = Counter()
        self.on_room: list[Callable[[], None]] = []
        self.on_failed: list[Callable[[PodInfo], None]] = []
        self._provider_of = np.zeros(0, dtype=np.int64)
        self._ready = np.zeros(0, dtype=bool)
        self._n_virtual = 0
        self._lost_since: dict[int, float] = {}  # rows of virtual nodes that are gone or not ready
        self._seated: dict[str, _Seated] = {}  # pods of ours on virtual nodes
        self._failed: set[str] = set()  # of these, those that count as failures already
        self._refused: set[int] = set()  # providers that had no room for a pod
        self._is_stale = self._is_to_be_told = False
        self._told_at = float("-inf")
        self.rebuild()

    # What is read

    def provider_of(self, n_rows: int) -> Ints:
        """(n_rows,) number of the provider of each row's node, REAL = a node of the cluster's own."""
        self._bring_up_to_date()
        self._ensure(n_rows)
        return self._provider_of[:n_rows]

    def ready(self, n_rows: int) -> Bools:
        """(n_rows,) of virtual nodes."""
        self._ensure(n_rows)
        return self._ready[:n_rows]

    @property
    def is_empty(self) -> bool:
        """Whether there is no virtual node."""
        return not self._n_virtual

    def provider_at(self, node: str) -> str:
        """Name of the provider of a node; '' = it is none of a provider, or not known."""
        row = self._state.row_of.get(node)
        number = REAL if row is None or row >= len(self._provider_of) else int(self._provider_of[row])
        return "" if number == REAL else self.providers[number].name

    def rows_of(self, provider: str, n_rows: int) -> Bools:
        """(n_rows,) nodes of the provider of this name."""
        numbers = [number for number, one in enumerate(self.providers) if one.name == provider]
        return np.isin(self.provider_of(n_rows), numbers)

    def limit(self, number: int, wanted: ProviderRequest, gang: str = "") -> Limit:
        """For how many more pods a provider has room now, and why for no more. gang: theirs; '' = they are of none."""
        self._bring_up_to_date()
        limit, health = self.uses[number].limit(wanted), self.healths[number]
        now = self._clock()
        allowed = health.room(now, gang)
        if allowed is None or allowed >= limit.room:
            return limit
        backs_off = health.health(now) is Health.BACKS_OFF
        return Limit(
            allowed, "backed off from after failures" if backs_off else "on probation with one pod or gang at a time"
        )

    def refused(self, number: int) -> None:
        """Note that a pod found no room there: `on_room` is called when there may be some."""
        self._refused.add(number)

    def not_started(self) -> list[NotStarted]:
        """Pods to be given up now; those that were not before count as failures from now on."""
        self._bring_up_to_date()
        now, found = self._clock(), []
        for number, use in enumerate(self.uses):
            for uid, since in list(use.starting.items()):
                pod, seated = self._state.pods[uid], self._seated[uid]
                if self._is_assumed(uid):
                    continue
                if since > now:
                    self._seated_since(uid, now)  # the clock was set back
                elif (failure := self._failure(pod, seated, now)) is not None:
                    self._count(pod, seated, failure, now)
                    found.append(NotStarted(pod, self.providers[number].name, failure))
        self._tell()
        return found

    def advance(self) -> None:
        """Let time pass: report providers whose backoff is over, and reports that came too soon before."""
        now = self._clock()
        self._has_room([n for n in self._refused if self.healths[n].is_backing_off and self.healths[n].room(now)])
        self._tell()

    # Implements Follower

    def apply(self, changes: Sequence[Change]) -> None:
        for change in one_by_one(changes):
            match change:
                case PodChange():
                    if self._is_ours(change.pod):
                        self._pod_changed(change)
                case NodeAdded(row) | NodeChanged(row) | NodeRemoved(row):
                    self._node_changed(row)
                case _:
                    pass
        self._tell()

    def rebuild(self) -> None:
        """From the tables as they are."""
        for row in range(self._state.n_rows):
            self._node_changed(row)
        self._recount()

    # Nodes

    def _node_changed(self, row: int) -> None:
        self._ensure(row + 1)
        nodes = self._state.nodes
        node = nodes[row] if row < len(nodes) else None
        before = int(self._provider_of[row])
        has_pods = row < self._state.n_rows and bool(self._state.pod_count[row])
        # While pods name a node that is gone it is still its provider's.
        number = before if node is None and has_pods else self._claims.of(node)
        if number != before:
            self._provider_of[row] = number
            self._n_virtual += (number != REAL) - (before != REAL)
            self._is_stale |= has_pods
        self._ready[row] = node is not None and node.ready
        if number == REAL or self._ready[row]:
            self._lost_since.pop(row, None)
        else:
            self._lost_since.setdefault(row, self._clock())

    def _ensure(self, n_rows: int) -> None:
        self._provider_of = grown(self._provider_of, n_rows, fill=REAL)
        self._ready = grown(self._ready, n_rows, fill=False)

    # Pods

    def _pod_changed(self, change: PodChange) -> None:
        pod, uid = change.pod, change.pod.uid
        before = self._seated.get(uid)
        row = -1 if change.after is None else change.after.node
        number = int(self._provider_of[row]) if 0 <= row < len(self._provider_of) else REAL
        if before is None and number == REAL:
            return
        now = self._clock()
        if before is not None and before.provider != number:
            self._leave(pod, before, now)
            before = None
        if number == REAL:
            return
        wanted = wanted_by(pod)
        if before is None:
            before = self._take(pod, number, row, wanted, now)
            if uid in self.uses[number].starting:
                self.healths[number].seated(uid, now, group_of(pod) or "")
        elif wanted != before.wanted or row != before.row:
            self.uses[number].remove(before.wanted)
            self.uses[number].add(wanted)
            before = self._seated[uid] = _Seated(number, row, wanted, before.since)
        self._look_at_start(pod, before, now)

    def _look_at_start(self, pod: PodInfo, seated: _Seated, now: float) -> None:
        use, health = self.uses[seated.provider], self.healths[seated.provider]
        if pod.uid not in use.starting:
            return
        if has_started(pod):
            del use.starting[pod.uid]
            health.started(pod.uid, now)
            self._has_room([seated.provider])
        elif pod.terminating:
            del use.starting[pod.uid]
            health.left(pod.uid)
            self._has_room([seated.provider])
        elif is_rejected(pod):
            self._count(pod, seated, StartFailure.REJECTED, now)

    def _take(self, pod: PodInfo, number: int, row: int, wanted: ProviderRequest, since: float) -> _Seated:
        seated = self._seated[pod.uid] = _Seated(number, row, wanted, since)
        self.uses[number].add(wanted)
        if not has_started(pod) and not pod.terminating:
            self.uses[number].starting[pod.uid] = since
        return seated

    def _leave(self, pod: PodInfo, seated: _Seated, now: float) -> None:
        """It sits there no more. pod: as it is now, or was last."""
        use, health, uid = self.uses[seated.provider], self.healths[seated.provider], pod.uid
        use.remove(seated.wanted)
        if use.starting.pop(uid, None) is not None:
            if has_started(pod):
                health.started(uid, now)
            elif is_rejected(pod):
                self._count(pod, seated, StartFailure.REJECTED, now)
        health.left(uid)
        self._has_room([seated.provider])
        self._failed.discard(uid)
        del self._seated[uid]

    def _seated_since(self, uid: str, since: float) -> None:
        before = self._seated[uid]
        self._seated[uid] = _Seated(before.provider, before.row, before.wanted, since)
        self.uses[before.provider].starting[uid] = since

    # Failures

    def _failure(self, pod: PodInfo, seated: _Seated, now: float) -> StartFailure | None:
        if is_rejected(pod):
            return StartFailure.REJECTED
        lost_since = self._lost_since.get(seated.row)
        if lost_since is not None and not 0 <= now - max(lost_since, seated.since) < LOST_SECONDS:
            return StartFailure.LOST
        overdue = now - seated.since >= self.providers[seated.provider].start_timeout
        return StartFailure.STALLED if overdue else None

    def _count(self, pod: PodInfo, seated: _Seated, failure: StartFailure, now: float) -> None:
        if pod.uid in self._failed:
            return
        self._failed.add(pod.uid)
        name = self.providers[seated.provider].name
        self.failures[name, failure] += 1
        health = self.healths[seated.provider]
        if health.failed(pod.uid, seated.since, now):
            fields = {"provider": name, "seconds": health.pause, "pod": f"{pod.namespace}/{pod.name}"}
            logger.warning("a provider gets no pods for now", extra=fields | {"failure": failure.value})
            self._refused.add(seated.provider)  # the queue is to hear when that is over
        elif health.health(now) is Health.WORKS:
            for listener in self.on_failed:
                listener(pod)

    # Notifying

    def _has_room(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            if number in self._refused and self.healths[number].room(self._clock()) != 0:
                self._refused.discard(number)
                self._is_to_be_told = True

    def _tell(self) -> None:
        now = self._clock()
        if self._is_to_be_told and not 0 <= now - self._told_at < _TELL_SECONDS:
            self._is_to_be_told, self._told_at = False, now
            for listener in self.on_room:
                listener()

    # Counting anew

    def _bring_up_to_date(self) -> None:
        """Nodes with pods turned out to be another provider's."""
        if self._is_stale:
            self._recount()

    def _recount(self) -> None:
        before, now = self._seated, self._clock()
        self._seated, self._is_stale = {}, False
        for use in self.uses:
            use.pods = use.cpu = use.memory = 0
            use.starting.clear()
        for pod, row in self._pods_on_virtual_nodes():
            known = before.pop(pod.uid, None)
            since = now if known is None else known.since
            self._take(pod, int(self._provider_of[row]), row, wanted_by(pod), since)
        for uid, seated in before.items():
            self.healths[seated.provider].left(uid)
        self._failed &= self._seated.keys()

    def _pods_on_virtual_nodes(self) -> Iterator[tuple[PodInfo, int]]:
        if self.is_empty:
            return
        pods = self._state.pods
        for uid, seat in self._state.seat_of.items():
            if self._provider_of[seat.node] != REAL and self._is_ours(pods[uid]):
                yield pods[uid], seat.node
