"""The scheduling loops put together from settings: tables, policies, lease, session, reports, and the loop itself."""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from fastapi import APIRouter
from kubernetes.client import ApiClient
from prometheus_client.registry import Collector

from forecast_scheduler.commands.policy.follow_policies import open_policies
from forecast_scheduler.commands.scorer.setup import Inputs, check_inputs, open_scorer
from forecast_scheduler.settings.document import Settings
from forecast_scheduler.settings.schedule_options import (
    schedule_policy,
    schedule_policy_defaults,
    sharing_options,
)
from kube.client.kubernetes_client import api_client
from kube.client.kubernetes_source import ResourceSource
from kube.decoding.decoding import Kind
from kube.events.event_recorder import api_server_post
from kube.session.api_session import ApiSession
from placement.index.index import INDEXED_KINDS
from placement.node_rule_upkeep import NodeRuleUpkeep
from placement.policies.policy import OnePolicy
from scheduler.figures import SchedulingFigures
from scheduler.gangs.group_creator import GroupCreator, suppose_groups
from scheduler.gangs.group_events import GroupEvents
from scheduler.gangs.status_writer import GroupStatusWriter
from scheduler.handle import LoopParts
from scheduler.leader_election.lease import Lease
from scheduler.loop import ScheduleLoop
from scheduler.metrics import SchedulingGauges, SchedulingMetrics
from scheduler.overcommit.eviction import api_server_evict
from scheduler.overcommit.overcommit_events import CONTROLLER
from scheduler.overcommit.sharing import NodeSharing
from scheduler.profiles.gpu.profile import GPU
from scheduler.profiles.gpu.upkeep import GpuUpkeep
from scheduler.profiles.job.upkeep import JobQueueView, JobUpkeep
from scheduler.queue.queued import WaitingPod
from scheduler.queue_upkeep import QueueUpkeep
from scheduler.reporting.logged_reports import LoggedReports
from scheduler.reporting.reports import Reports
from scheduler.reporting.scheduling_events import session_post
from scheduler.service.live import Bindings, LiveScheduling, Queue
from scheduler.settings import ScheduleSettings
from scheduler.tables import ScheduleTables, schedule_tables
from scorer.background import Background
from scorer.capacity_events import CapacityEvents
from scorer.every import Every
from scorer.scorer import Scorer

_UPKEEP_SECONDS: Final = 1.0
_SPARE_CONNECTIONS: Final = 64
"""Beside those of bindings: conditions, events, statuses."""


class LoopQueue(Queue, JobQueueView, Protocol):
    """What the status and the job profile ask of the queue."""

    def waiting(self) -> Sequence[WaitingPod]:
        """All pods in it."""


class Loop(Protocol):
    """What pops, places and binds. queue, bindings: for the status."""

    @property
    def queue(self) -> LoopQueue: ...

    @property
    def bindings(self) -> Bindings: ...

    def since_cycle(self) -> float | None:
        """Seconds since it last went round, idle or not; None = it has not begun."""

    def start(self) -> None:
        """Begin. It waits by itself until `LoopParts.waits_for` is "" and `may_write`."""

    def stop(self) -> None:
        """Pop no more, and wait for bindings under way, `binding_timeout` at most."""


def loop_of(parts: LoopParts) -> Loop:
    """The loop of the profiles in the settings; made before the cluster is read."""

    return ScheduleLoop(parts)


@dataclass(frozen=True, slots=True)
class LiveSchedule:
    """The background is not running yet, and nothing else but the watch; `running`: all of it does in the context.

    routers, bodies : of the profiles' own routes, and the schemas of what these answer
    """

    scorer: Scorer
    background: Background
    scheduling: LiveScheduling
    metrics: SchedulingMetrics
    collectors: tuple[Collector, ...]
    running: Callable[[], AbstractContextManager[None]]
    routers: tuple[APIRouter, ...] = ()
    bodies: tuple[type, ...] = ()


class _Background(Protocol):
    def start(self) -> None: ...

    def stop(self) -> None: ...


class _Care(Protocol):
    """What goes on around the rules or one profile in threads of its own, and what is told of it."""

    @property
    def jobs(self) -> Sequence[_Background]: ...

    @property
    def collectors(self) -> Sequence[Collector]: ...

    @property
    def routers(self) -> Sequence[APIRouter]: ...

    @property
    def bodies(self) -> Sequence[type]: ...


@contextmanager
def _running(jobs: Sequence[_Background]) -> Iterator[None]:
    """They start in this order and stop in reverse."""
    with ExitStack() as stack:
        for job in jobs:
            job.start()
            stack.callback(job.stop)
        yield


@contextmanager
def open_schedule(
    settings: Settings, inputs: Inputs, make_loop: Callable[[LoopParts], Loop] = loop_of
) -> Iterator[LiveSchedule]:
    """A scheduler that follows its cluster while the context lasts. Raises InputError, see open_scorer."""
    check_inputs(inputs)
    ours, kubeconfig = settings.schedule, inputs.kubeconfig or settings.scorer.kubeconfig
    metrics, instance, api = SchedulingMetrics(), socket.gethostname(), api_client(kubeconfig)
    lease = _lease(ours, kubeconfig)
    may_write = _may_write(ours, lease)
    session = ApiSession(api, connections=ours.bindings_in_flight + _SPARE_CONNECTIONS, may_write=may_write)
    with ExitStack() as stack:
        defaults = schedule_policy_defaults(settings)
        followed = stack.enter_context(
            open_policies(_untold(settings), kubeconfig, has_api_server=not ours.dry_run, defaults=defaults)
        )
        provider = None if followed is None else followed.provider
        made: list[tuple[LoopParts, ResourceSource, Loop]] = []

        def attach(scorer: Scorer) -> Collection[Kind]:
            """All that follows the tables is there before the first object comes."""
            tables = schedule_tables(scorer, ours, settings.node_rules, None if ours.dry_run else session)
            if provider is not None:
                provider.read_labels_with(tables.view.index.namespaces.labels_of)
            source = tables.source(api)
            parts = LoopParts(
                settings=ours,
                scorer=scorer,
                tables=tables,
                policies=provider or OnePolicy(schedule_policy(settings)),
                session=session,
                reports=LoggedReports() if ours.dry_run else Reports(session, instance=instance),
                metrics=metrics,
                waits_for=lambda: _waits_for(scorer, source),
                may_write=may_write,
                instance=instance,
            )
            made.append((parts, source, make_loop(parts)))
            return INDEXED_KINDS

        scorer, background = stack.enter_context(open_scorer(settings, inputs, attach, policies=provider))
        ((parts, source, loop),) = made
        tables = parts.tables
        sharing = NodeSharing(
            scorer,
            tables.view.index.labels,
            sharing_options(ours, instance),
            evict=api_server_evict(api),
            post=None if ours.dry_run else api_server_post(api),
            fit=tables.fit,
            may_write=may_write,
            after=lambda: scorer.synced,
        )
        # At the end the loop is the first to stop; then what tells of it, the Lease, and the session last.
        jobs: list[_Background] = [session, *([] if lease is None else [lease]), source, parts.reports]
        jobs += [*_gang_jobs(tables, session, may_write, instance, ours.dry_run), tables.colocation, sharing]
        if not ours.dry_run:
            post = api_server_post(api)
            jobs.append(CapacityEvents(scorer, post, controller=CONTROLLER, instance=instance, may_write=may_write))
        cares = _cares(parts, loop, api)
        jobs += [job for care in cares for job in care.jobs]
        jobs.append(loop)
        scheduling = _scheduling(ours, loop, tables, lease, lambda: _not_listed(source))
        collectors = [SchedulingGauges(scheduling.state), _figures(loop, parts.reports), sharing.collector]
        if followed is not None:
            collectors.append(followed.collector)
        collectors += [collector for care in cares for collector in care.collectors]
        yield LiveSchedule(
            scorer,
            background,
            scheduling,
            metrics,
            tuple(collectors),
            running=lambda: _running(jobs),
            routers=tuple(router for care in cares for router in care.routers),
            bodies=tuple(body for care in cares for body in care.bodies),
        )


def _untold(settings: Settings) -> Settings:
    """A dry run writes no events, not even of policies."""
    if not settings.schedule.dry_run:
        return settings
    return settings.model_copy(update={"policies": settings.policies.model_copy(update={"events": False})})


def _lease(settings: ScheduleSettings, kubeconfig: Path | None) -> Lease | None:
    """None = it is not to be taken: a dry run must not keep a scheduler from its work."""
    if settings.dry_run or not settings.lease.enabled:
        return None
    # Connections of its own: a renewal must not wait for anything else.
    return Lease(api_client(kubeconfig), settings.lease)


def _may_write(settings: ScheduleSettings, lease: Lease | None) -> Callable[[], bool]:
    if settings.dry_run:
        return lambda: False
    return (lambda: True) if lease is None else lease.may_write


def _gang_jobs(
    tables: ScheduleTables, session: ApiSession, may_write: Callable[[], bool], instance: str, is_dry_run: bool
) -> list[_Background]:
    """What creates PodGroups by annotation, writes statuses of groups, and lets their time pass."""
    if tables.gangs is None:
        return []
    gangs = tables.gangs
    events = GroupEvents(session_post(session), instance=instance)
    creator = GroupCreator(session, gangs, may_write=may_write)
    create = partial(suppose_groups, gangs) if is_dry_run else creator.step
    writer = GroupStatusWriter(session, tables.gangs, tell=events.tell, may_write=may_write)
    return [
        events,
        Every("pod-groups", _UPKEEP_SECONDS, tables.gangs.tick),
        Every("pod-groups-by-annotation", _UPKEEP_SECONDS, create),
        Every("pod-group-statuses", _UPKEEP_SECONDS, writer.step),
    ]


def _cares(parts: LoopParts, loop: Loop, api: ApiClient) -> list[_Care]:
    """Of the rules about nodes, of queues, and of the profiles that have some."""
    tables, post = parts.tables, None if parts.settings.dry_run else session_post(parts.session)
    cares: list[_Care] = [
        NodeRuleUpkeep(tables.rules, parts.scorer, api=api, after=lambda: parts.waits_for() == ""),
    ]
    if tables.queues is not None:
        cares.append(
            QueueUpkeep(
                tables.queues,
                parts.scorer,
                post=post,
                instance=parts.instance,
                may_write=parts.may_write,
                after=lambda: parts.waits_for() == "",
            )
        )
    if tables.jobs is not None and tables.queues is not None:
        cares.append(
            JobUpkeep(
                tables.jobs,
                tables.queues,
                parts.scorer,
                loop.queue,
                parts.session,
                parts.settings.job,
                api=api,
                post=post,
                instance=parts.instance,
                may_write=parts.may_write,
                after=lambda: parts.waits_for() == "",
            )
        )
    if tables.gpus is not None:
        cares.append(
            GpuUpkeep(
                tables.gpus,
                parts.scorer,
                tables.colocation,
                loop.queue,
                parts.session,
                api=api,
                scheduler_name=parts.settings.scheduler_names[GPU],
                has_tide=parts.settings.gpu.tide.enabled,
                evict=api_server_evict(api),
                post=post,
                instance=parts.instance,
                may_write=parts.may_write,
                after=lambda: parts.waits_for() == "",
            )
        )
    return cares


def _scheduling(
    settings: ScheduleSettings,
    loop: Loop,
    tables: ScheduleTables,
    lease: Lease | None,
    waits_for: Callable[[], str],
) -> LiveScheduling:
    queues = tables.queues
    scheduling = LiveScheduling(
        profiles=settings.scheduler_names,
        queue=loop.queue,
        bindings=loop.bindings,
        since_cycle=loop.since_cycle,
        assumed=tables.n_assumed,
        gangs=tables.groups_by_phase,
        gang_wait=tables.longest_gang_wait,
        lease=None if lease is None else lease.status,
        waits_for=waits_for,
        is_dry_run=settings.dry_run,
    )
    return scheduling if queues is None else replace(scheduling, queue_of=queues.name_of, shares=queues.reports)


def _figures(loop: Loop, reports: Reports | LoggedReports) -> SchedulingFigures:
    incoming, bindings = loop.queue.incoming, loop.bindings
    if isinstance(reports, LoggedReports):
        return SchedulingFigures(incoming=incoming, throttled=lambda: bindings.throttled)
    conditions, events = reports.conditions, reports.events
    return SchedulingFigures(
        incoming=incoming,
        throttled=lambda: bindings.throttled,
        conditions=lambda: conditions.figures,
        events=lambda: events.figures,
    )


def _waits_for(scorer: Scorer, source: ResourceSource) -> str:
    status = scorer.status()
    return (status.not_ready_because or "starting") if not status.ready else _not_listed(source)


def _not_listed(source: ResourceSource) -> str:
    for name, status in source.statuses().items():
        if not status.synced:
            return f"{name} have not been listed: {status.last_error or 'no answer yet'}"
    return ""
