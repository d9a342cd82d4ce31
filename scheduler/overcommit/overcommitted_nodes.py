"""Finds overcommitted nodes in the tables, every second, and counts each once.

    fits --requests pass allocatable for `grace_seconds`--> standing (counted, reported) --they fit again--> fits

A look costs a comparison of the tables (a millisecond at 5,000 nodes); the pods are only looked through while there is
something to find. With a grace of one second an overcommit is counted one to two seconds after it appears. A pod whose
kubelet has not answered counts as well, but for `answer_seconds` nobody goes for it: the kubelet rejects what does not
fit (`OutOfcpu`), in a second or two.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Protocol

import numpy as np

from base.arrays import Bools
from cluster.assuming_cluster import AssumingCluster
from kube.objects.objects import PodInfo
from placement.filters.domain import nodes_in
from placement.filters.node_resources_fit import NodeResourcesFit
from placement.index.node_labels import NodeLabels
from scheduler.overcommit.overcommit import (
    LastFitting,
    Overcommit,
    OvercommitCause,
    excess_units,
    holds,
    is_answered,
    overcommit_of,
)


class LockedTables(Protocol):
    """cluster.live_tables.LiveTables."""

    def reading(self) -> AbstractContextManager[AssumingCluster]:
        """Hold the tables unchanged."""


class OvercommitWatch:
    """Any thread may ask."""

    def __init__(
        self,
        tables: LockedTables,
        labels: NodeLabels,
        *,
        domain: str = "",
        shared: Collection[str] = (),
        fit: NodeResourcesFit | None = None,
        grace_seconds: float = 1.0,
        answer_seconds: float = 5.0,
        tell: Callable[[Overcommit], None] = lambda overcommit: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """
        labels         : those of the index that follows the tables
        domain, shared : see placement.filters.domain.Domain; nodes of other domains are not looked at
        grace_seconds  : what is over sooner does not count
        answer_seconds : how long a kubelet is waited for, from when its node is seen to be over
        tell           : called with every overcommit when it is counted; quick
        clock          : unix seconds
        """
        self._tables, self._labels, self._fit = tables, labels, fit or NodeResourcesFit()
        self._domain, self._shared = domain, frozenset(shared)
        self._grace, self._answer, self._tell, self._clock = grace_seconds, answer_seconds, tell, clock
        self._lock = threading.Lock()  # of all below; taken before that of the tables
        self._since: dict[str, float] = {}
        self._unanswered: dict[str, float] = {}  # UID -> since when, on a node that is over
        self._standing: dict[str, Overcommit] = {}
        self._last_fitting = LastFitting()
        self._counts: Counter[OvercommitCause] = Counter()

    def look(self) -> tuple[Overcommit, ...]:
        """Return the overcommits that stand now. New ones are counted and reported."""
        with self._lock:
            now = self._clock()
            with self._tables.reading() as cluster:
                found = self._find(cluster, now)
            before, self._standing = self._standing, {one.node: one for one in found}
            for one in found:
                earlier = before.get(one.node)
                if earlier is None or (
                    earlier.cause is OvercommitCause.SHRUNK and one.cause is not OvercommitCause.SHRUNK
                ):
                    self._counts[one.cause] += 1
                    self._tell(one)
            return tuple(found)

    @property
    def standing(self) -> tuple[Overcommit, ...]:
        """Those found by the last look."""
        return tuple(self._standing.values())

    @property
    def counts(self) -> Mapping[OvercommitCause, int]:
        """Overcommits since the start."""
        return dict(self._counts)

    # Inside

    def _find(self, cluster: AssumingCluster, now: float) -> list[Overcommit]:
        state = cluster.state
        over: Bools = np.asarray((excess_units(state, self._fit) > 0).any(axis=1))  # (n_rows,)
        # Assumed pods only make more of them: what fits with them fits without.
        self._last_fitting.see(state, ~over)
        over &= nodes_in(self._labels, {self._domain, *self._shared})
        rows = {state.names[row]: row for row in np.flatnonzero(over).tolist()}
        for name in self._since.keys() - rows.keys():
            del self._since[name]
        if not rows:
            self._unanswered.clear()
            return []
        kinds = [kind for kind in state.kinds if kind == "pods" or self._fit.counts(kind)]
        pods = _bound_pods(cluster, set(rows.values()))
        awaited = self._await((pod for on_node in pods.values() for pod in on_node), now)
        shared = nodes_in(self._labels, self._shared)
        found = []
        for name, row in rows.items():
            node = state.nodes[row]
            assert node is not None  # rows without one have no excess
            one = overcommit_of(
                node,
                pods[row],
                [kind for kind in kinds if kind not in self._fit.device_class_resources or node.allocatable.get(kind)],
                fitted_in=self._last_fitting.of(row, state),
                is_shared=bool(shared[row]),
            )
            if one is None:
                self._since.pop(name, None)  # it is for assumed pods
                continue
            since = self._since.setdefault(name, now)
            if since > now:
                since = self._since[name] = now  # the clock was set back
            if now - since >= self._grace:
                found.append(replace(one, awaited=awaited.intersection(pod.uid for pod in one.pods)))
        return found

    def _await(self, pods: Iterable[PodInfo], now: float) -> frozenset[str]:
        """UIDs of pods whose kubelets have not had the time to answer."""
        unanswered = {pod.uid: self._unanswered.get(pod.uid, now) for pod in pods if not is_answered(pod)}
        # min: the clock may have been set back.
        self._unanswered = {uid: min(since, now) for uid, since in unanswered.items()}
        return frozenset(uid for uid, since in self._unanswered.items() if now - since < self._answer)


def _bound_pods(cluster: AssumingCluster, rows: Collection[int]) -> Mapping[int, Sequence[PodInfo]]:
    """Pods that hold something there, by row; room that is only reserved is no reason to evict any. 100,000 seats are
    looked through in about 6 ms.
    """
    found: dict[int, list[PodInfo]] = {row: [] for row in rows}
    pods, assumed = cluster.state.pods, cluster.assumed
    for uid, seat in cluster.state.seat_of.items():
        if seat.node in found and uid not in assumed and not pods[uid].stands_in and holds(pods[uid]):
            found[seat.node].append(pods[uid])
    return found
