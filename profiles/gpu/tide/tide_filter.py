"""Filter TideRoom: training pods are not placed into GPUs that inference will need before they could be drained.

    GPUs that training holds in the pool, with the pod   <=   capacity - the highest need of inference within its lead

Nothing else waits for it: inference may go anywhere, and preempts by priority where it has to. Before the first plan
nothing is rejected. Once the last one is too old it is as if there were no forecast.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from typing import Final

import numpy as np

from base.arrays import Floats, Ints
from kube.objects.objects import PodInfo
from placement.cluster_events import ClusterEvent, EventKind, Hint
from placement.devices.declared_devices import PodGpus
from placement.filters.filter import ClusterView, PlainFilter, Rejection
from placement.filters.rejections import found
from placement.plugins import NodePreference, Preferred
from profiles.gpu.gpu_settings import TideOptions
from profiles.gpu.tide.gpu_demand import TideDemand
from profiles.gpu.tide.gpu_holders import TideTable
from profiles.gpu.tide.training_annotations import Role, role_of, training_terms

_ENDLESS: Final = 2**31 - 1
_SMALL: Final = 1e-6
_REASON: Final = "node(s) kept GPUs for inference that is predicted to need them"
_NOW: Final = "node(s) kept GPUs for inference: there is no forecast of what it will need"
_STALE: Final = "node(s) kept GPUs for inference: what it will need was not planned for a while"
_STALE_LOOKS: Final = 10
_STALE_SECONDS: Final = 600.0
"""At least: while the API server does not answer a look takes minutes."""
_WOKEN_SLOTS: Final = 50
"""Half hours that the longest drain time touches, which is a little more than a day."""


class TideRoom(PlainFilter, NodePreference):
    """Implements Filter and NodePreference. Under the lock of the tables.

    `use` is called by the thread that plans, and replaces one reference.
    """

    name = "TideRoom"
    woken_by = frozenset(
        {
            EventKind.NODE_ADDED,
            EventKind.NODE_CHANGED,
            EventKind.POD_LEFT,
            EventKind.POD_CHANGED,
            EventKind.UNSCHEDULED_POD_CHANGED,
            EventKind.FORECAST_CHANGED,
            EventKind.TIMEOUT,
        }
    )

    def __init__(
        self,
        table: TideTable,
        pod_gpus: PodGpus,
        options: TideOptions,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """clock: unix seconds"""
        self._table, self._pod_gpus, self._options, self._clock = table, pod_gpus, options, clock
        self._stale_after = max(_STALE_LOOKS * options.every, _STALE_SECONDS)
        self._used: tuple[TideDemand, float] | None = None  # and when it was made, unix seconds

    def use(self, demand: TideDemand) -> bool:
        """Go by this from now on. Whether training pods may find more room than before."""
        before, now = self._used, self._clock()
        self._used = demand, now
        return before is None or self._is_stale(before[1], now) or _has_more_room(before[0], demand)

    def left(self, pod: PodInfo) -> Floats | None:
        """(n_pools,) GPUs that training may take besides what it has; None = as many as there are."""
        used = self._used
        if used is None or role_of(pod.annotations) is not Role.TRAINING:
            return None
        (demand, made), terms, now = used, training_terms(pod.annotations), self._clock()
        others, is_stale = self._table.others(), self._is_stale(made, now)
        need = others if is_stale else self._planned_need(demand, now, terms.grace, len(others))
        if is_stale or not demand.forecast:
            need = need + np.ceil(self._options.blind_margin * need - _SMALL)
        need = np.maximum(need, others)
        return np.asarray(self._table.capacity() - need - self._table.training())

    # Filter, NodePreference

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Evaluated per pool. Evicting other training helps where there is some."""
        left = self.left(pod)
        if left is None:
            return ()
        gpus, pool = self._pod_gpus(pod, None), self._table.pool_of_rows(view.n_rows)
        lacking = left < gpus - _SMALL
        could = lacking & (left + self._table.training() >= gpus - _SMALL)
        inside = pool >= 0
        reason = self._reason()
        rejections: list[Rejection] = []
        for pools, preemptible in ((lacking & could, True), (lacking & ~could, False)):
            nodes = np.zeros(view.n_rows, dtype=bool)
            nodes[inside] = pools[pool[inside]]
            rejections += found(nodes, view, reason, preemptible=preemptible)
        return rejections

    def ignores_like_pods(self, pod: PodInfo, view: ClusterView) -> bool:
        return True

    def room(self, pod: PodInfo, view: ClusterView, rows: Ints) -> Ints:
        """(n_nodes,) pods like it that its pool has room for; `prefer` bounds what all nodes of it get together."""
        left = self.left(pod)
        gpus = self._pod_gpus(pod, None)
        if left is None or gpus <= 0:
            return np.full(len(rows), _ENDLESS, dtype=np.int64)
        pool = self._table.pool_of_rows(view.n_rows)[rows]
        fits = np.floor((left + _SMALL) / gpus).astype(np.int64)
        return (
            np.where(pool >= 0, np.maximum(fits[np.maximum(pool, 0)], 0), _ENDLESS)
            if len(fits)
            else np.full(len(rows), _ENDLESS, dtype=np.int64)
        )

    def prefer(self, pod: PodInfo, n_pods: int, view: ClusterView, rows: Ints) -> Preferred:
        """All nodes, but only as many pods at once as the pool with the least room takes."""
        room = self.room(pod, view, rows)
        return Preferred(rows, int(min(n_pods, max(1, room.min()))))

    def tells_apart(self, pod: PodInfo) -> Hashable:
        """Like pods have their annotations in common."""
        return None

    def hint(self, pod: PodInfo, event: ClusterEvent) -> Hint:
        """Return what the event may do: room comes from released GPUs, nodes, and the forecast."""
        if event.kind is EventKind.POD_LEFT and event.pod is not None and self._pod_gpus(event.pod, None) <= 0:
            return Hint.SKIP
        return Hint.QUEUE if event.kind in self.woken_by else Hint.SKIP

    # Inside

    def _is_stale(self, made: float, now: float) -> bool:
        return now - made > self._stale_after

    def _planned_need(self, demand: TideDemand, now: float, grace: float | None, n_pools: int) -> Floats:
        """(n_pools,) without what training holds. Of pools that came since the plan it is not known."""
        ahead = demand.slots(now, now + self._options.lead(grace))
        need = demand.need[:, ahead].max(axis=1) - demand.unmoved
        return np.concatenate([need, np.zeros(n_pools - len(need))])

    def _reason(self) -> str:
        if self._used is None:
            return _NOW
        demand, made = self._used
        if self._is_stale(made, self._clock()):
            return _STALE
        return _REASON if demand.forecast else _NOW


def _has_more_room(before: TideDemand, now: TideDemand) -> bool:
    """For some drain time: how long it is differs from pod to pod."""
    if len(before.capacity) != len(now.capacity) or (now.forecast and not before.forecast):
        return True
    had, has = _least_room(before), _least_room(now)
    n = min(had.shape[1], has.shape[1])
    return bool((has[:, :n] > had[:, :n] + _SMALL).any())


def _least_room(demand: TideDemand) -> Floats:
    """(n_pools, n_slots) the least of it from now until the end of each half hour."""
    room = demand.capacity[:, None] - demand.need[:, :_WOKEN_SLOTS] + demand.unmoved[:, None]
    return np.asarray(np.minimum.accumulate(room, axis=1))
