"""Foresees storms, keeps room before each, and releases it after.

    CronJobs, past bursts --every minute, and when CronJobs are written--> demand --> storms ahead
    storms ahead --lead before the start--> room is kept (headroom_filter.py), topped up as other pods leave
                 --its pods have come, or its time is over--> released, and waiting jobs are tried again

One thread looks every few seconds; any may ask.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, Protocol

import numpy as np

from base.arrays import Bools, Floats
from base.periodic_task import PeriodicTask
from cluster.follower import Follower
from cluster.readable_tables import ReadableTables
from cluster.tables.state import ClusterState
from forecast.resources import CPU, MEMORY, RESOURCES
from forecast.service_key import ServiceKey
from kube.decoding.decoding import Kind
from kube.objects.objects import NodeInfo, PodInfo
from placement.filters.domain import DOMAIN_LABEL
from placement.filters.filter import Filter
from placement.virtual_node_table import is_labelled_virtual
from profiles.job.cron.cron_jobs import CronJobInfo
from profiles.job.job_metrics import StormMetrics
from profiles.job.job_settings import StormOptions
from profiles.job.jobs_plan_answers import DemandPoint, StormReport
from profiles.job.storm.headroom_filter import ReservedHeadroom, StormHeadroom
from profiles.job.storm.job_demand import ExpectedBurst, JobDemand, demand_ahead
from profiles.job.storm.storms import Storm, storms
from scheduler.scheduling_answers import moment

logger = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 5.0
_DEMAND_SECONDS: Final = 60.0
_LARGEST_SHARE: Final = 0.2
_MINUTE: Final = 60.0
_REPORTED_MINUTES: Final = 5
_MOST_REPORTED: Final = 1_000
_MOST_PLACES: Final = 100_000
_ROUNDING: Final = 1e-6
_KEEPS_OUT: Final = frozenset({"NoSchedule", "NoExecute"})


class FollowedTables(ReadableTables, Protocol):
    """cluster.live_tables.LiveTables."""

    def attach(self, kinds: Collection[Kind], follower: Follower) -> None:
        """Let further tables follow."""


class StormWatch:
    """`filter` is for the job profile. Made before the cluster is read, so that its tables follow from the start.

    listeners : called without a lock when room is released: the filter may let pods in that it rejected
    """

    def __init__(
        self,
        tables: FollowedTables,
        cron_jobs: Callable[[], Iterable[CronJobInfo]],
        run_seconds: Callable[[ServiceKey], float],
        options: StormOptions | None = None,
        *,
        changes: Callable[[], int] = lambda: 0,
        scheduler_names: Collection[str] = ("job-scheduler",),
        domains: Collection[str] = ("",),
        bursts: Callable[[float], Iterable[ExpectedBurst]] = lambda now: (),
        group_of: Callable[[PodInfo], str] = lambda pod: "",
        serverless_room: Callable[[Storm], int] = lambda storm: 0,
        is_virtual: Callable[[NodeInfo], bool] = is_labelled_virtual,
        due_of: Callable[[PodInfo], float] = lambda pod: np.inf,
        metrics: StormMetrics | None = None,
        after: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """
        cron_jobs       : CronJobs.all
        run_seconds     : that the pods of a service take
        changes         : CronJobs.changes: another number = it is time to look again
        domains         : whose nodes jobs may use; '' = nodes without the label
        bursts          : what is expected in addition to CronJobs, as of some unix seconds; group_of: which of them a
                          pod is of
        serverless_room : how many more pods of a storm virtual nodes take now; under the lock of the tables
        due_of          : unix seconds, the latest moment at which a pod may start; inf = it does not say
        after           : whether the cluster and the CronJobs have been read
        clock           : unix seconds
        """
        self.options, self.metrics = options or StormOptions(), metrics or StormMetrics()
        self.listeners: list[Callable[[], None]] = []
        self._tables, self._cron_jobs, self._run_seconds = tables, cron_jobs, run_seconds
        self._changes, self._seen_changes = changes, -1
        self._names, self._domains, self._bursts = frozenset(scheduler_names), frozenset(domains), bursts
        self._serverless_room, self._is_virtual, self._clock = serverless_room, is_virtual, clock
        self._reported: set[str] = set()  # UIDs of CronJobs that were logged already
        self._demand: JobDemand | None = None
        self._made_at = -np.inf
        self._ahead: tuple[Storm, ...] = ()
        self._reports: tuple[StormReport, ...] = ()
        with tables.reading() as cluster:
            state = cluster.state
            self.headroom = StormHeadroom(
                state,
                due_of=due_of,
                group_of=group_of,
                is_virtual=lambda row: (node := state.nodes[row]) is not None and is_virtual(node),
                clock=clock,
            )
            tables.attach((), self.headroom)
        self._upkeep = PeriodicTask(
            "storm-watch", _LOOK_SECONDS, self.keep_up, after=after, largest_share=_LARGEST_SHARE
        )

    @property
    def filter(self) -> Filter:
        return self.headroom

    def start(self) -> None:
        self._upkeep.start()

    def stop(self) -> None:
        self._upkeep.stop()

    def keep_up(self) -> None:
        """Look ahead anew if a minute has passed or CronJobs have changed, and see to the room of storms near."""
        now, changes = self._clock(), self._changes()
        self._let_go(lambda held: now < held.release)  # whatever becomes of looking ahead
        is_old = not 0 <= now - self._made_at < _DEMAND_SECONDS or now // _MINUTE != self._made_at // _MINUTE
        if is_old or changes != self._seen_changes:
            self._seen_changes = changes  # read before the CronJobs are: what comes meanwhile is for the next look
            self._look_ahead(now)
        self._let_go(lambda held: self._is_on(held, now))
        has_room = False
        with self._tables.reading() as cluster:
            self._hold_new(now)
            if self.headroom.held and self.options.enabled:
                eligible, taken = self._eligible(cluster.state), 0.0
                for held in sorted(self.headroom.held, key=lambda one: one.storm.start):
                    awaited = self._awaited(held, now)
                    outside, taken = self._outside(held.storm, awaited, taken)
                    has_room |= self.headroom.keep(held, awaited - outside, eligible, self.options.most_room)
            self._reports = tuple(self._report(cluster.state))
            self._count_reserved()
        if has_room:
            self._tell()

    # What is known

    @property
    def demand(self) -> JobDemand | None:
        """Return the demand of the next day; None = not computed yet."""
        return self._demand

    @property
    def ahead(self) -> tuple[Storm, ...]:
        """Storms of the next day, by their start; one that is under way may be missing."""
        return self._ahead

    def demand_points(self) -> Sequence[DemandPoint]:
        """What is expected to be created, per five minutes."""
        demand = self._demand
        if demand is None:
            return ()
        series = np.stack([demand.arrivals, demand.arriving_cpu, demand.arriving_memory])
        n = series.shape[1] // _REPORTED_MINUTES
        sums = series[:, : n * _REPORTED_MINUTES].reshape(3, n, _REPORTED_MINUTES).sum(axis=2)
        seconds = _MINUTE * _REPORTED_MINUTES
        return [DemandPoint(moment(demand.start + seconds * at), seconds, *sums[:, at].tolist()) for at in range(n)]

    def storm_reports(self) -> Sequence[StormReport]:
        """Storms that are near, and those ahead."""
        return self._reports

    def expected_use(self, moments: Floats) -> Floats:
        """(n_resources, n_points) base units that jobs which do not exist yet are expected to request at these unix
        seconds, (n_points,); 0 beyond the next day."""
        used, demand = np.zeros((len(RESOURCES), len(moments))), self._demand
        if demand is None:
            return used
        minute = np.floor((moments - demand.start) / _MINUTE)
        known = (minute >= 0) & (minute < len(demand.pods))
        at = minute[known].astype(np.int64)
        used[CPU, known], used[MEMORY, known] = demand.cpu[at], demand.memory[at]
        return used

    # Inside

    def _let_go(self, is_on: Callable[[ReservedHeadroom], bool]) -> None:
        """Of storms that are not on any more."""
        with self._tables.reading():
            over = [held for held in self.headroom.held if not is_on(held)]
            for held in over:
                self.headroom.drop(held)
        now = self._clock()
        for held in over:
            if held.storm.start <= now:  # else it was called off
                self.metrics.storms.inc()
                self.metrics.expected_pods.inc(held.storm.pods)
                self.metrics.arrived_pods.inc(len(held.arrived))
        if any(held.on for held in over):
            self._tell()

    def _tell(self) -> None:
        for listener in self.listeners:
            listener()

    def _look_ahead(self, now: float) -> None:
        with self._tables.reading() as cluster:
            most_pods = _places(cluster.state)
        demand = demand_ahead(
            self._cron_jobs(),
            self._bursts(now),
            self._run_seconds,
            now,
            scheduler_names=self._names,
            default_zone=self.options.zone,
            most_pods=max(most_pods, self.options.threshold),
            failed=self._log_failure,
        )
        self._demand, self._made_at = demand, now
        self._ahead = tuple(storms(demand, self.options.threshold))
        for ahead, minutes in (("1m", 1), ("1h", 60)):
            self.metrics.expected_arrivals.labels(ahead).set(float(demand.arrivals[1 : 1 + minutes].sum()))

    def _log_failure(self, job: CronJobInfo, error: Exception) -> None:
        if job.uid not in self._reported and len(self._reported) < _MOST_REPORTED:
            self._reported.add(job.uid)
            logger.error("a CronJob cannot be foreseen", extra={"cron_job": str(job.service)}, exc_info=error)

    def _is_on(self, held: ReservedHeadroom, now: float) -> bool:
        """Whether its time is not over, and it is still foreseen if it is yet to come."""
        if held.storm.start > now:
            return any(held.storm.is_same(one) for one in self._ahead)
        return now < held.release

    def _hold_new(self, now: float) -> None:
        """Those that are near, and what is known by now of those that are held and yet to come."""
        lasting = max(self.options.grace, _MINUTE) - _MINUTE
        taken = set()
        for held in [held for held in self.headroom.held if held.storm.start > now]:
            one = next(one for one in self._ahead if held.storm.is_same(one))
            if one.start in taken:
                self.headroom.drop(held)  # two have become one
            else:
                self.headroom.update(held, one, one.until + lasting)
                taken.add(one.start)
        for storm in self._ahead:
            release = storm.until + lasting
            if storm.start in taken or not storm.start - self.options.lead <= now < release:
                continue
            if not any(one.storm.start <= storm.start < one.storm.until for one in self.headroom.held):
                self.headroom.hold(storm, release)

    def _awaited(self, held: ReservedHeadroom, now: float) -> int:
        """Return pods that come soon, side by side, in addition to those that are there."""
        storm, grace = held.storm, max(self.options.grace, _MINUTE)
        # Those that are late are of before: they are awaited for as long as they may be after its end.
        at_once = storm.most_at_once(now - grace, now + self.options.lead + grace)
        return max(0, min(at_once - len(held.running), storm.pods - len(held.arrived)))

    def _outside(self, storm: Storm, awaited: int, taken: float) -> tuple[int, float]:
        """How many of the pods awaited virtual nodes take, and how much of their room is taken then.

        taken: share of it that storms before are to take. A share, not pods: those of one storm may be the larger ones.
        """
        room = self._serverless_room(storm)
        must_leave = -(-awaited * storm.only_outside // storm.pods)
        may_leave = awaited * storm.may_leave // storm.pods
        outside = max(must_leave, min(may_leave, int(room * (1 - taken) + _ROUNDING)))
        return outside, min(1.0, taken + outside / room) if room > 0 else taken

    def _eligible(self, state: ClusterState) -> Bools:
        """(n_rows,) nodes of ours that are no provider's and take pods without tolerations."""
        return np.fromiter(
            (node is not None and self._is_eligible(node) for node in state.nodes), dtype=bool, count=state.n_rows
        )

    def _is_eligible(self, node: NodeInfo) -> bool:
        is_open = node.ready and not node.unschedulable and not any(one.effect in _KEEPS_OUT for one in node.taints)
        return is_open and node.labels.get(DOMAIN_LABEL, "") in self._domains and not self._is_virtual(node)

    def _report(self, state: ClusterState) -> Iterable[StormReport]:
        near: list[tuple[Storm, ReservedHeadroom | None]] = [(held.storm, held) for held in self.headroom.held]
        ahead = [one for one in self._ahead if not any(storm.start <= one.start < storm.until for storm, _ in near)]
        for one, held in sorted([*near, *((one, None) for one in ahead)], key=lambda pair: pair[0].start):
            pods = 0 if held is None else held.pods
            yield StormReport(
                start=moment(one.start),
                end=moment(one.until),
                pods=one.pods,
                cpu_cores=one.cpu,
                memory_bytes=one.memory,
                reserved_cpu_cores=pods * one.pod_request.get("cpu", 0.0),
                reserved_memory_bytes=pods * one.pod_request.get("memory", 0.0),
                state=_state(held),
                services=one.sources[:20],
            )

    def _count_reserved(self) -> None:
        for kind in ("cpu", "memory", "pods"):
            amount = sum(
                held.pods * (1.0 if kind == "pods" else held.storm.pod_request.get(kind, 0.0))
                for held in self.headroom.held
            )
            self.metrics.reserved.labels(kind).set(amount)


def _places(state: ClusterState) -> int:
    """Pods that all nodes together may have."""
    return int(np.minimum(state.allocatable_units[state.alive, state.kinds["pods"]], _MOST_PLACES).sum())


def _state(held: ReservedHeadroom | None) -> str:
    if held is None:
        return "expected"
    if len(held.arrived) >= held.storm.pods:
        return "has come"
    return f"room is kept for {held.pods} pods, {len(held.arrived)} have come"
