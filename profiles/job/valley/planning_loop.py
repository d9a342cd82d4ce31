"""Plans the starts of the jobs that the gate holds, again and again, and has the queue ask the gate about those whose
start has changed. Members of a PodGroup are one job: what they use together, as soon as the first is due, as long as
the longest runs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from typing import Final, Protocol

import numpy as np

from base.arrays import Floats
from base.periodic_task import PeriodicTask
from cluster.predicted.pod_bounds import bounded_requests
from cluster.predicted.predicted_cluster import PredictedCluster
from cluster.readable_tables import ReadableTables
from cluster.tracking import TrackedCluster
from forecast.calendar import SLOTS_PER_DAY
from forecast.service_key import ServiceKey
from kube.objects.counted_pods import FINISHED, waits
from kube.objects.objects import NodeInfo, PodInfo
from placement.cluster_events import ClusterEvent, EventKind
from placement.usable_forecast import usable_forecast
from profiles.job.job_metrics import ValleyMetrics
from profiles.job.job_settings import ValleyOptions
from profiles.job.valley.forecast_error import (
    ClusterErrors,
    ForecastDeviation,
    expected_load,
    is_real,
    usable_rows,
)
from profiles.job.valley.start_plan import ExpectedLoad, PlannedStart, WaitingJob, plan_starts
from profiles.job.valley.valley_gate import HeldJobPod, ValleyGate, held_as

logger = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 1.0
_LARGEST_SHARE: Final = 0.2
_RESERVED_SHARE: Final = 0.1
"""Of the time that a job may wait."""

_AT_ONCE: Final = 100
"""Pods that the gate is asked about while the lock is held."""

_PODS_PER_LOOK: Final = 1_000
"""Pods whose use is looked up while the lock is held."""


class GatedQueue(Protocol):
    """scheduler.queue.scheduling_queue.SchedulingQueue."""

    def happened(self, event: ClusterEvent) -> None:
        """Under the lock of the tables."""


@dataclass(frozen=True, slots=True)
class PlannedPod:
    """A pod that waits for its start. run_seconds: expected; due: its latest start, unix seconds."""

    pod: PodInfo
    start: float
    due: float
    run_seconds: float
    why: str


@dataclass(frozen=True, slots=True)
class _Looked:
    """What is needed of one pod. due: unix seconds, its latest start; requests: cores and bytes, as far as a node has
    them."""

    pod: PodInfo
    requests: tuple[float, float]
    use: Floats
    run_seconds: float
    due: float


class Planner:
    """One thread plans; any may look."""

    def __init__(
        self,
        tables: ReadableTables,
        queue: GatedQueue,
        gate: ValleyGate,
        run_seconds: Callable[[PodInfo, ServiceKey], float],
        options: ValleyOptions,
        *,
        is_ours: Callable[[NodeInfo], bool] = is_real,
        further: Callable[[Floats], Floats] | None = None,
        metrics: ValleyMetrics | None = None,
        after: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.time,
        stopwatch: Callable[[], float] = time.perf_counter,
    ) -> None:
        """
        run_seconds : how long a pod is expected to run
        is_ours     : nodes that jobs may use
        further     : what jobs that do not exist yet are expected to use, (n_resources, n_points) base units at
                      (n_points,) unix seconds: storms to come
        after       : whether the cluster has been read
        """
        self._tables, self._queue, self._gate, self._options = tables, queue, gate, options
        self._is_ours = is_ours
        self._run_seconds, self._further, self._metrics = run_seconds, further, metrics or ValleyMetrics()
        self._clock, self._stopwatch = clock, stopwatch
        self._errors = ClusterErrors(tables.reading, is_ours)
        self._planned_at: float | None = None
        self._zone: tzinfo = UTC
        self._pods: tuple[PlannedPod, ...] = ()
        self._load: ExpectedLoad | None = None
        self._upkeep = PeriodicTask("job-plan", _LOOK_SECONDS, self.keep_up, after=after, largest_share=_LARGEST_SHARE)

    def start(self) -> None:
        self._upkeep.start()

    def stop(self) -> None:
        self._upkeep.stop()

    def keep_up(self) -> None:
        """Plan if there are new jobs, or the last plan is some seconds old."""
        now = self._clock()
        is_old = self._planned_at is None or not 0 <= now - self._planned_at < self._options.every
        if is_old or self._gate.has_new:
            self.plan()

    def planned(self) -> tuple[PlannedPod, ...]:
        """Return jobs that waited for their starts at the last plan, by start: without released ones that wait for a
        node.
        """
        return self._pods

    @property
    def load(self) -> ExpectedLoad | None:
        """What the last plan went by; None = there was no forecast."""
        return self._load

    def plan(self) -> None:
        """Plan, and let the gate go by it."""
        began, now = self._stopwatch(), self._clock()
        self._planned_at = now
        held = self._gate.take_held()
        load, looked = self._look(held, now)
        self._forget(held, looked, now)
        if load is None:
            self._use({}, [one.pod for one in looked], has_forecast=False)
            self._pods, self._load = (), None
            self._metrics.held.set(0)
            return
        before = self._gate.plan
        by_key: dict[str, list[_Looked]] = {}
        for one in looked:
            by_key.setdefault(held_as(one.pod), []).append(one)
        self._let_go_unplanned(held, {key: one for key, one in by_key.items() if key not in before}, now)
        jobs = [self._job(key, together, before.get(key), now) for key, together in by_key.items()]
        starts = plan_starts(
            jobs, load, now, margin=self._options.margin, least_gain=self._options.least_gain, zone=self._zone
        )
        plan = {one.uid: one for one in starts}
        changed = [one.pod for one in looked if _start(before, one.pod) != plan[held_as(one.pod)].start]
        self._use(plan, changed, has_forecast=True)
        planned = [
            PlannedPod(one.pod, start.start, one.due, one.run_seconds, start.why)
            for one in looked
            for start in (plan[held_as(one.pod)],)
            if start.start > now  # else it was released, and stays so
        ]
        self._pods, self._load = tuple(sorted(planned, key=lambda one: (one.start, one.pod.uid))), load
        self._metrics.held.set(len(planned))
        self._metrics.plan_seconds.observe(self._stopwatch() - began)

    # Inside

    def _let_go_unplanned(
        self, held: Mapping[str, HeldJobPod], new: Mapping[str, Sequence[_Looked]], now: float
    ) -> None:
        """Groups that had to wait too long for their first plan: to take single members back would tear them apart. And
        those of which a member sits since before this process began."""
        groups = {key: together for key, together in new.items() if key != together[0].pod.uid}
        for together in groups.values():
            if min(held[one.pod.uid].since for one in together) + self._options.first_wait <= now:
                with self._tables.reading():
                    for one in together:
                        self._gate.let_go(one.pod)
        if not groups:
            return
        with self._tables.reading() as cluster:
            sitting = list(cluster.state.seat_of)
        for start in range(0, len(sitting), _PODS_PER_LOOK):
            with self._tables.reading() as cluster:
                for uid in sitting[start : start + _PODS_PER_LOOK]:
                    pod = cluster.state.pods.get(uid)
                    if pod is not None and held_as(pod) in groups:
                        self._gate.let_go(pod)

    def _job(self, key: str, together: Sequence[_Looked], planned: PlannedStart | None, now: float) -> WaitingJob:
        start = None if planned is None else planned.start
        if any(self._gate.is_let_go(one.pod) for one in together):
            start = now if start is None else min(start, now)
        due = min(one.due for one in together)
        may_wait = min(one.due - one.pod.created for one in together)
        cpu, memory = (sum(one.requests[at] for one in together) for at in range(2))
        return WaitingJob(
            uid=key,
            use=together[0].use if len(together) == 1 else np.sum([one.use for one in together], axis=0),
            run_seconds=max(one.run_seconds for one in together),
            due=due,
            planned=start,
            requests=(cpu, memory),
            reserve=min(self._options.reserve, max(0.0, _RESERVED_SHARE * may_wait)),
            n_pods=len(together),
        )

    def _look(self, held: dict[str, HeldJobPod], now: float) -> tuple[ExpectedLoad | None, list[_Looked]]:
        """The load ahead, and those that wait still; None = there is no forecast."""
        uids, looked = list(held), list[_Looked]()
        load: ExpectedLoad | None = None
        cache: dict[tuple[object, ...], tuple[Floats, float]] = {}
        with self._tables.reading() as cluster:
            predicted = usable_forecast(cluster)
            if predicted is not None:
                rows = usable_rows(cluster, predicted, self._is_ours)
                load = expected_load(cluster, predicted, rows, now, hours=self._options.hours, step=self._options.step)
                self._zone = predicted.horizon.zone
        if load is not None and predicted is not None:
            load = _with_error(load, predicted, self._errors.of(predicted, now))
        if load is not None and self._further is not None:
            load = _with_further(load, self._further)
        for start in range(0, len(uids), _PODS_PER_LOOK):
            with self._tables.reading() as cluster:
                for uid in uids[start : start + _PODS_PER_LOOK]:
                    pod = cluster.state.pods.get(uid)
                    if pod is None or not waits(pod) or pod.terminating or uid in cluster.state.seat_of:
                        continue
                    use, seconds = self._use_of(pod, cluster, cache)
                    requests = bounded_requests(pod.requests, cluster.most_of(pod))
                    looked.append(_Looked(pod, requests, use, seconds, self._gate.due_of(pod)))
        return load, looked

    def _use_of(
        self, pod: PodInfo, cluster: TrackedCluster, cache: dict[tuple[object, ...], tuple[Floats, float]]
    ) -> tuple[Floats, float]:
        service, predicted = cluster.state.service_key(pod), cluster.predicted
        requests = pod.requests
        key = (service, requests.get("cpu"), requests.get("memory"), tuple(sorted(pod.annotations.items())))
        known = cache.get(key)
        if known is None:
            seconds = self._run_seconds(pod, service)
            use = np.zeros(0) if predicted is None else _use(predicted, cluster.profile(pod))
            known = cache[key] = (use, seconds)
        return known

    def _forget(self, held: dict[str, HeldJobPod], looked: Sequence[_Looked], now: float) -> None:
        waiting = {one.pod.uid for one in looked}
        left = [uid for uid in held if uid not in waiting]
        for uid in left:
            self._gate.forget(uid)
            planned = _start(self._gate.plan, held[uid].pod)  # at which the queue lets it go by itself
            let_go = min(now, held[uid].until, now if planned is None else planned)
            self._metrics.held_seconds.observe(max(0.0, let_go - held[uid].since))
        known = self._gate.all_let_go()
        for start in range(0, len(left), _PODS_PER_LOOK):
            with self._tables.reading() as cluster:
                for uid in left[start : start + _PODS_PER_LOOK]:
                    pod = cluster.state.pods.get(uid)
                    if pod is not None:
                        self._gate.let_go(pod)  # it has a node, but its binding may fail
        for start in range(0, len(known), _PODS_PER_LOOK):
            with self._tables.reading() as cluster:
                for uid in known[start : start + _PODS_PER_LOOK]:
                    pod = cluster.state.pods.get(uid)
                    if pod is None or pod.phase in FINISHED:
                        self._gate.gone(uid)

    def _use(self, plan: dict[str, PlannedStart], changed: Sequence[PodInfo], *, has_forecast: bool) -> None:
        self._gate.use(plan, has_forecast=has_forecast)
        for start in range(0, len(changed), _AT_ONCE):
            with self._tables.reading():
                for pod in changed[start : start + _AT_ONCE]:
                    self._queue.happened(ClusterEvent(EventKind.UNSCHEDULED_POD_CHANGED, pod=pod))


def _use(predicted: PredictedCluster, profile: int) -> Floats:
    """(n_resources,) of one pod at its highest in the horizon: a run's curve is 0 before and after."""
    return np.asarray(predicted.load.usage_of(profile).max(axis=1), dtype=np.float64)


def _start(plan: Mapping[str, PlannedStart], pod: PodInfo) -> float | None:
    planned = plan.get(held_as(pod))
    return None if planned is None else planned.start


def _with_error(load: ExpectedLoad, predicted: PredictedCluster, error: ForecastDeviation | None) -> ExpectedLoad:
    if error is None:
        return load
    moments = load.first + load.step * (np.arange(load.share.shape[1]) + 0.5)
    slots = np.array([int(predicted.horizon.position(float(moment))) % SLOTS_PER_DAY for moment in moments])
    return replace(load, error=error.of_share(load.share, load.capacity, slots))


def _with_further(load: ExpectedLoad, further: Callable[[Floats], Floats]) -> ExpectedLoad:
    moments = load.first + load.step * np.arange(load.share.shape[1], dtype=np.float64)
    known = load.capacity > 0
    more = (
        further(np.asarray(moments, dtype=np.float64))
        * np.where(known, 1 / np.where(known, load.capacity, 1.0), 0.0)[:, None]
    )
    return replace(load, share=load.share + more)
