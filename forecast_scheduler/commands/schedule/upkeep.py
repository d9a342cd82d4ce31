"""What goes on around a loop of `schedule` and `advise`, and what the service says of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from base.periodic_task import PeriodicTask
from kube.events.event_recorder import EventRecorder, session_post
from placement.reservations.reservations import ReservationCollector, Reservations
from scheduler.gangs.directory import GangDirectory
from scheduler.gangs.group_creator import GroupCreator, suppose_groups
from scheduler.gangs.group_events import tell_of_group
from scheduler.gangs.group_status_writer import GroupStatusWriter
from scheduler.loop import ScheduleLoop
from scheduler.process import Process
from scheduler.reservation_status_writer import ReservationWriter
from scheduler.schedule_settings import LoopSettings
from scheduler.scheduling_metrics import SchedulingFigures, SchedulingGauges
from scheduler.scheduling_tables import ScheduleTables
from scheduler.service.live_answers import LiveScheduling
from serving.threads import Upkeep

_UPKEEP_SECONDS: Final = 1.0


def gang_upkeep(gangs: GangDirectory, process: Process) -> Upkeep:
    """Return what creates PodGroups by annotation, writes statuses of groups, and lets their time pass."""
    events = EventRecorder(
        session_post(process.session),
        what="gangs",
        instance=process.instance,
        controller="forecast-scheduler.io/gangs",
        rate=5.0,
        burst=100.0,
    )
    creator = GroupCreator(process.session, gangs, may_write=process.leads)
    create = partial(suppose_groups, gangs) if process.is_dry_run else creator.step
    writer = GroupStatusWriter(process.session, gangs, tell=partial(tell_of_group, events), may_write=process.leads)
    return Upkeep(
        (
            events,
            PeriodicTask("pod-groups", _UPKEEP_SECONDS, gangs.tick),
            PeriodicTask("pod-groups-by-annotation", _UPKEEP_SECONDS, create),
            PeriodicTask("pod-group-statuses", _UPKEEP_SECONDS, writer.step),
        )
    )


def reservation_upkeep(reservations: Reservations, writer: ReservationWriter) -> Upkeep:
    """Return what writes the statuses of Reservations, and their metrics."""
    return Upkeep((PeriodicTask("reservations", _UPKEEP_SECONDS, writer.step),), (ReservationCollector(reservations),))


def own_upkeep(loop: ScheduleLoop, scheduling: LiveScheduling) -> Upkeep:
    """Return the loop as a thread, with the metrics of its state and of what it decides."""
    figures = SchedulingFigures(incoming=loop.queue.incoming, throttled=lambda: loop.bindings.throttled)
    return Upkeep((loop,), (SchedulingGauges(scheduling.state), figures))


def live_scheduling(
    settings: LoopSettings,
    loop: ScheduleLoop,
    tables: ScheduleTables,
    process: Process,
    waits_for: Callable[[], str],
    abilities: Callable[[], Mapping[str, Any]],
) -> LiveScheduling:
    """What the service says of the loop; see LiveScheduling for the words."""
    queues = tables.queues
    scheduling = LiveScheduling(
        profiles=settings.scheduler_names,
        queue=loop.queue,
        bindings=loop.bindings,
        since_cycle=loop.since_cycle,
        assumed=tables.n_assumed,
        gangs=tables.groups_by_phase,
        gang_wait=tables.longest_gang_wait,
        lease=None if process.lease is None else process.lease.status,
        waits_for=waits_for,
        is_dry_run=process.is_dry_run,
        abilities=abilities,
    )
    return scheduling if queues is None else replace(scheduling, queue_of=queues.name_of, shares=queues.reports)
