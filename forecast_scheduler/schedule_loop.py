"""The loop of `schedule`: queue, cycle, preemption and binding around the tables, and when it may begin."""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from extender.framework.binding.cycles import BindingCycles
from extender.framework.binding.in_flight_limit import InFlightLimit
from extender.framework.binding.outcome import Reserved
from extender.framework.cache.assumptions import Assumptions
from extender.framework.cycle.cycle import SchedulingCycle
from extender.framework.events import ClusterEvent, EventKind
from extender.framework.filter_hints import FILTER_HINTS
from extender.framework.following import ClusterFollower
from extender.framework.leading.takeover import Takeover
from extender.framework.plugins import EnqueueExtensions
from extender.framework.preemption.executor import PreemptionExecutor
from extender.framework.profile import SchedulingProfile
from extender.framework.queue.scheduling_queue import SchedulingQueue
from extender.framework.queue.sorting import PrioritySort
from extender.framework.queue.unit import UnitOf, unit_by_owner
from extender.framework.scheduler import LoopOptions, Scheduler
from extender.framework.settling import Settling
from extender.framework.status import SUCCESS, Code, Status
from extender.framework.volumes.volume_binding import VolumeBinding
from extender.index.index import INDEXED_KINDS
from forecast_scheduler.schedule_options import queue_options
from forecast_scheduler.schedule_profiles import live_profiles
from scorer.cluster.objects import PodInfo
from scorer.every import Every

if TYPE_CHECKING:
    from forecast_scheduler.live_schedule import LoopParts

__all__ = ["ScheduleLoop"]


class ScheduleLoop:
    """Implements Loop. Made before the cluster is read."""

    def __init__(self, parts: LoopParts) -> None:
        self._parts = parts
        settings, tables = parts.settings, parts.tables
        self._limit = InFlightLimit(settings.bindings_in_flight, clock=time.monotonic)
        self._takeover = Takeover(
            leads=lambda: settings.dry_run or parts.may_write(),
            waits_for=parts.waits_for,
            read_again=(parts.scorer.read_again, *(() if tables.gpus is None else (tables.gpus.read_again,))),
            begin=self._begin,
        )
        self._volumes: VolumeBinding | None = None
        with parts.scorer.reading() as cluster:
            if not settings.dry_run:  # else nobody is told where volumes are to go
                self._volumes = VolumeBinding(
                    parts.session, tables.view, locked=parts.scorer.reading, keep=cluster.keep
                )
            self._profiles = live_profiles(parts, self._limit, self._volumes)
            jobs, units = tables.jobs, _Owners() if tables.gangs is None else tables.gangs  # an empty one is false
            self.queue = SchedulingQueue(
                sort=PrioritySort() if jobs is None else jobs.sort,
                gate=self._gate,
                hints=self._hints,
                units=units if jobs is None else jobs.units(units),
                flows=None if jobs is None else jobs.flows,
                options=queue_options(settings),
                clock=time.time,
            )
            self._follower = ClusterFollower(cluster, tables.view.index, self.queue, self._profiles)
            self._hints_of = {name: _hints_of(profile) for name, profile in self._profiles.items()}
            self.bindings = BindingCycles(
                parts.session,
                lambda pod: self._profiles[pod.scheduler_name].binding,
                limit=self._limit,
                observe=parts.metrics.observe_stage,
            )
            assumptions = Assumptions(
                cluster,
                seconds=settings.assume_timeout,
                binding_seconds=settings.binding_timeout,
                ask=self._ask,
                clock=time.time,
            )
            executor = PreemptionExecutor(
                parts.session,
                tables.nominated,
                locked=parts.scorer.reading,
                failed=self._try_again,
                evicted=parts.metrics.evicted,
                tell=lambda pod, reason, note: parts.reports.preempted(pod, note),
                may_write=parts.may_write,
            )
            cycle = SchedulingCycle(
                tables.view,
                cluster,
                self._profiles,
                tables.gangs,
                preempt=executor.carry_out,
                withdraw=executor.withdraw,
                observe=parts.metrics.observe_stage,
            )
            self._settling = Settling(
                parts.scorer,
                self.queue,
                self._follower,
                assumptions,
                self.bindings,
                telling=parts.reports,
                metrics=parts.metrics,
            )
            self._scheduler = Scheduler(
                parts.scorer,
                tables.view,
                self.queue,
                self._follower,
                cycle,
                self._settling,
                telling=parts.reports,
                may_schedule=self._takeover.may_decide,
                policies=lambda: getattr(parts.policies, "policies", None),
                metrics=parts.metrics,
                options=LoopOptions(batch=settings.batch, bounded_scan=settings.bounded_scan, gather=settings.gather),
            )
            # After all tables that gate and hints read.
            parts.scorer.attach(INDEXED_KINDS, self._follower)
            if self._volumes is not None:
                parts.scorer.attach((), self._volumes.waits)
            if tables.gangs is not None:
                tables.gangs.listeners.append(self._group_changed)
                tables.gangs.late_listeners.append(self._gang_is_late)
            tables.ended.append(self._nomination_ended)
            tables.colocation.listeners.append(self._forecast_changed)
            if jobs is not None:
                jobs.listen(self._forecast_changed)
            if tables.gpus is not None:
                tables.gpus.listen(self._forecast_changed, self._try_again)
        self._upkeep = Every("scheduling-upkeep", 1.0, self._keep_up, after=lambda: parts.waits_for() == "")

    def since_cycle(self) -> float | None:
        """See Loop."""
        return self._scheduler.since_round()

    def start(self) -> None:
        """See Loop."""
        self._upkeep.start()
        self._scheduler.start()

    def stop(self) -> None:
        """See Loop."""
        self._scheduler.stop()
        self._upkeep.stop()
        self.bindings.stop(self._parts.settings.binding_timeout)

    # Inside

    def _gate(self, pod: PodInfo) -> Status:
        """What all PreEnqueue plugins say."""
        if pod.gates:
            return Status(Code.UNRESOLVABLE, "SchedulingGates", f"waits for its gates: {', '.join(pod.gates[:5])}")
        for plugin in self._profiles[pod.scheduler_name].pre_enqueue:
            status = plugin.pre_enqueue(pod)
            if not status.is_success:
                return status
        return SUCCESS

    def _hints(self, pod: PodInfo) -> Mapping[str, EnqueueExtensions]:
        return self._hints_of[pod.scheduler_name]

    def _keep_up(self) -> None:
        self._scheduler.tick()
        with self._parts.scorer.reading():
            self._parts.tables.sitting.settle()  # so that whoever preempts next need not

    def _begin(self) -> None:
        """All is read, and what a process before this one has nominated counts."""
        with self._parts.scorer.reading() as cluster:
            waiting = [pod for pod in cluster.state.pods.values() if self._follower.is_to_be_placed(pod)]
            self._parts.tables.nominated.start_over(waiting)
        # What was read is long-lived: searched for cycles again and again it would cost a tenth of the time.
        gc.collect()
        gc.freeze()

    def _ask(self, reserved: Sequence[Reserved]) -> None:
        if not self._parts.settings.dry_run:  # else nobody has bound them
            self._settling.ask_about(reserved)

    def _try_again(self, pod: PodInfo) -> None:
        """Its preemption failed, or what kept it out of the queue is no more, which no event tells."""
        with self._parts.scorer.reading():
            self.queue.happened(ClusterEvent(EventKind.UNSCHEDULED_POD_CHANGED, pod=pod))

    def _group_changed(self, group: str) -> None:
        self.queue.happened(ClusterEvent(EventKind.GROUP_CHANGED, group=group))
        self.queue.wake_units([group])

    def _gang_is_late(self, group: str) -> None:
        """Write the reason into the members' conditions at the timeout, not when the queue is next looked through."""
        gangs = self._parts.tables.gangs
        assert gangs is not None
        with self._parts.scorer.reading():  # a member that is given a node now is taken out of the reports after this
            for pod in gangs.waiting(group):
                status = gangs.gate(pod)
                if not status.is_success:
                    self._parts.reports.failed(pod, status.reason)

    def _forecast_changed(self) -> None:
        with self._parts.scorer.reading():  # hints read what the lock guards
            self.queue.happened(ClusterEvent(EventKind.FORECAST_CHANGED))

    def _nomination_ended(self, pod: PodInfo, node: str) -> None:
        """Others may have the room that was kept."""
        self.queue.happened(ClusterEvent(EventKind.POD_LEFT, pod=replace(pod, node=node)))


def _hints_of(profile: SchedulingProfile) -> Mapping[str, EnqueueExtensions]:
    """Of all plugins that may reject a pod of the profile: their own, else what is known of kube-scheduler's."""
    own = [one for one in (*profile.filters, *profile.post_filters) if isinstance(one, EnqueueExtensions)]
    return {**FILTER_HINTS, **{one.name: one for one in own}}


class _Owners:
    """Units where PodGroups are not heeded."""

    def unit_of(self, pod: PodInfo) -> UnitOf:
        """See Units."""
        return unit_by_owner(pod)
