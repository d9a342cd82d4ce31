"""The scheduling loops put together from settings: tables, policies, lease, session, reports, and the loop itself."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Protocol

from fastapi import APIRouter
from kubernetes.client import ApiClient
from prometheus_client.registry import Collector

from base.periodic_task import PeriodicTask
from forecast_scheduler.commands.decision_recorder import open_recorder
from forecast_scheduler.commands.policy.followed_policies import open_policies
from forecast_scheduler.commands.schedule.leadership import leader_lease, leads_by, shard_leases
from forecast_scheduler.commands.scorer.scorer_setup import Inputs, check_inputs, prepare_scorer
from forecast_scheduler.settings.document import Settings
from forecast_scheduler.settings.feature_options import (
    schedule_policy,
    schedule_policy_defaults,
    sharing_options,
)
from kube.client.eviction import api_server_evict
from kube.client.kubernetes_client import api_client
from kube.client.kubernetes_source import ResourceSource, source_of
from kube.events.event_recorder import api_server_post, session_post
from kube.leader_election.lease import Lease, our_identity
from kube.session.api_session import ApiSession
from placement.decisions.recorder import DecisionRecorder
from placement.index.index import INDEXED_KINDS
from placement.node_rule_upkeep import node_rule_upkeep
from placement.plugin_loading import used_plugins
from placement.policies.policy import OnePolicyForAll
from placement.policies.provider import PolicyProvider
from placement.reservations.reservations import ReservationCollector
from profiles.schedule_settings import ScheduleSettings
from profiles.schedule_tables import schedule_tables
from scheduler.assembly import loop_role
from scheduler.binding.binding_cycles import BindingCycles
from scheduler.gangs.group_creator import GroupCreator, suppose_groups
from scheduler.gangs.group_events import GroupEvents
from scheduler.gangs.group_status_writer import GroupStatusWriter
from scheduler.handle import Surroundings
from scheduler.loop import ScheduleLoop
from scheduler.loop_parts import Advised, LoopParts, LoopReports, LoopRole
from scheduler.loop_upkeep import ShardUpkeep, tenant_upkeep
from scheduler.overcommit.repair_loop import CONTROLLER, RepairLoop
from scheduler.placing_core import PlacingCore
from scheduler.pod_reports import LoggedReports, Reports
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.quota_queues.owner_shares import ShareGauges
from scheduler.reservation_status_writer import ReservationReports, ReservationWriter
from scheduler.scheduling_metrics import ReportFigures, SchedulingFigures, SchedulingGauges, SchedulingMetrics
from scheduler.scheduling_tables import ScheduleTables
from scheduler.service.live_answers import LiveScheduling
from scheduler.shards.shard_leases import replica_name
from scorer.background import CapacityEvents, ScorerBackground
from scorer.scorer import Scorer
from serving.threads import BackgroundThread, Upkeep, running

_UPKEEP_SECONDS: Final = 1.0
_WATCH_CONNECTIONS: Final = 32
"""One for each kind that only these loops read, and some for evictions and events."""

_SPARE_CONNECTIONS: Final = 64
"""In addition to those of bindings: conditions, events, statuses."""


class Loop(BackgroundThread, Protocol):
    """scheduler.loop.ScheduleLoop."""

    @property
    def queue(self) -> SchedulingQueue:
        """Return the queue of the pods that wait."""

    @property
    def bindings(self) -> BindingCycles:
        """Return the binding cycles, which know what is under way."""

    @property
    def core(self) -> PlacingCore:
        """Return queue and follower around the tables."""

    def since_cycle(self) -> float | None:
        """Return seconds since it last went round, idle or not; None = it has not begun."""


@dataclass(frozen=True, slots=True)
class LiveSchedule:
    """The background is not running yet, and nothing else but the watch; `running`: all of it does in the context.

    routers, bodies : of routes of profiles and of the driver, and the schemas of what crosses these
    """

    scorer: Scorer
    background: ScorerBackground
    scheduling: LiveScheduling
    metrics: SchedulingMetrics
    collectors: tuple[Collector, ...]
    running: Callable[[], AbstractContextManager[None]]
    routers: tuple[APIRouter, ...] = ()
    bodies: tuple[type, ...] = ()


@dataclass(frozen=True, slots=True)
class Process:
    """What there is of a process before its loop is made. See LoopParts for the words.

    lease    : by which this replica leads; None = without one it always does
    recorder : None = decisions are not recorded
    policies : None = the settings name none
    """

    settings: ScheduleSettings
    scorer: Scorer
    tables: ScheduleTables
    session: ApiSession
    api: ApiClient
    leads: Callable[[], bool]
    lease: Lease | None
    instance: str
    recorder: DecisionRecorder | None
    policies: PolicyProvider | None = None


@dataclass(frozen=True, slots=True)
class Driven:
    """What becomes of the decisions of a loop, and what goes on beside it.

    jobs, collectors : in addition to those that every loop has
    decisions        : see LoopParts
    routers, bodies  : see LiveSchedule
    abilities        : what /readyz says in addition
    """

    role: LoopRole
    reports: LoopReports
    decisions: Advised | None
    jobs: Sequence[BackgroundThread]
    collectors: Sequence[Collector]
    routers: Sequence[APIRouter] = ()
    bodies: Sequence[type] = ()
    abilities: Callable[[], Mapping[str, Any]] = dict


class Driver(Protocol):
    """Which loops run: our own, or those of the advisor.

    controller : who decides, as events name it
    records    : decisions are recorded
    is_shadow  : and only compared
    places_reservations : Reservations get their nodes here
    may_share   : replicas may place at once, each on its shards, if the settings say so
    binds       : pods are bound here
    """

    controller: str
    records: bool
    is_shadow: bool
    places_reservations: bool
    may_share: bool
    binds: bool

    def drive(self, process: Process) -> Driven:
        """Return what becomes of decisions; called before the cluster is read."""

    def may_lead(self) -> bool:
        """Return whether this replica can do what a leader has to. For any thread, after `drive`."""


class OwnLoops:
    """Implements Driver: pods are bound, or in a dry run only reported."""

    controller = CONTROLLER
    is_shadow = False

    def __init__(self, settings: ScheduleSettings) -> None:
        self.records = not settings.dry_run  # the pods of a dry run are never bound
        self.places_reservations = self.may_share = self.binds = not settings.dry_run
        self._owns_nodes: Callable[[], bool] = lambda: True

    def drive(self, process: Process) -> Driven:
        settings, scorer, api, leads = process.settings, process.scorer, process.api, process.leads
        shards = process.tables.shards
        if shards is not None:
            self._owns_nodes = shards.ownership.owns_any
        post = None if settings.dry_run else api_server_post(api)
        sharing = RepairLoop(
            scorer.tables,
            process.tables.view.index.labels,
            sharing_options(settings, process.instance),
            evict=api_server_evict(api),
            post=post,
            fit=process.tables.fit,
            may_write=leads,
            after=lambda: scorer.tables.synced,
        )
        jobs: list[BackgroundThread] = [sharing]
        if post is not None:
            jobs.append(
                CapacityEvents(scorer, post, controller=self.controller, instance=process.instance, may_write=leads)
            )
        reports: Reports | LoggedReports = LoggedReports()
        if not settings.dry_run:
            reports = Reports(process.session, instance=process.instance, decisions=process.recorder)
        figures = [sharing.collector, *_figures_of(reports)]
        return Driven(loop_role(settings, shards), reports, process.recorder, jobs, figures)

    def may_lead(self) -> bool:
        """A replica that owns no node could place none of the pods that only the leader decides about."""
        return self._owns_nodes()


@contextmanager
def open_schedule(
    settings: Settings,
    inputs: Inputs,
    make_loop: Callable[[LoopParts], Loop] = ScheduleLoop,
    *,
    driver: Driver | None = None,
) -> Iterator[LiveSchedule]:
    """Loops that follow their cluster while the context lasts. driver: None = our own loops.

    Raises InputError, see PreparedScorer.
    """
    driver = driver or OwnLoops(settings.schedule)
    check_inputs(inputs)
    ours, kubeconfig = settings.schedule, inputs.kubeconfig or settings.scorer.kubeconfig
    metrics, instance = SchedulingMetrics(), socket.gethostname()
    api = api_client(kubeconfig, connections=_WATCH_CONNECTIONS)
    identity = our_identity()
    lease = leader_lease(ours, kubeconfig, driver.may_lead, identity)
    leads = leads_by(ours, lease)
    held = shard_leases(ours, kubeconfig, identity, leads) if driver.may_share else None
    # Where replicas share the nodes each of them writes that lives; what only one may do asks `leads`, too.
    may_write = leads if held is None else partial(held.leases.holds, replica_name(ours.lease, identity))
    session = ApiSession(api, connections=ours.bindings_in_flight + _SPARE_CONNECTIONS, may_write=may_write)
    with ExitStack() as stack:
        defaults = schedule_policy_defaults(settings)
        followed = stack.enter_context(
            open_policies(_untold(settings), kubeconfig, has_api_server=not ours.dry_run, defaults=defaults)
        )
        provider = None if followed is None else followed.provider
        places = ours.scheduler_names.values() if driver.places_reservations else ()
        prepared = prepare_scorer(settings, inputs, policies=provider, places=places)
        scorer, background = prepared.scorer, prepared.background
        # All that follows the tables is there before the first object comes.
        plugins = replace(used_plugins(settings.plugins), binds=driver.binds)
        claims = None if ours.dry_run else session
        tables = schedule_tables(scorer, ours, settings.node_rules, claims, held, plugins=plugins)
        if provider is not None:
            provider.read_labels_with(tables.view.index.namespaces.labels_of)
        recorder: DecisionRecorder | None = None
        collectors: list[Collector] = list(plugins.collectors())
        if driver.records:
            recorder, of_decisions = stack.enter_context(
                open_recorder(
                    ours.decisions, api_server_post(api), controller=driver.controller, is_shadow=driver.is_shadow
                )
            )
            collectors.append(of_decisions)
        driven = driver.drive(Process(ours, scorer, tables, session, api, leads, lease, instance, recorder, provider))
        source = tables.source(api)
        writer: ReservationWriter | None = None
        if driver.places_reservations:
            writer = ReservationWriter(
                session,
                scorer.tables.reading,
                prepared.reservations,
                may_write=lambda: leads() and _waits_for(scorer, source) == "",
            )
        parts = LoopParts(
            settings=ours,
            role=driven.role,
            scorer=scorer,
            tables=tables,
            policies=provider or OnePolicyForAll(schedule_policy(settings)),
            session=session,
            reports=driven.reports if writer is None else ReservationReports(driven.reports, writer.note),
            metrics=metrics,
            waits_for=lambda: _waits_for(scorer, source),
            may_write=may_write,
            instance=instance,
            decisions=driven.decisions,
            reservations=None if writer is None else prepared.reservations,
        )
        loop = make_loop(parts)
        stack.enter_context(prepared.following(INDEXED_KINDS))
        # At the end the loop is the first to stop; then its reports, the Lease, and the session last.
        jobs: list[BackgroundThread] = [session, *([] if lease is None else [lease])]
        if tables.shards is not None:
            shards = ShardUpkeep(
                tables.shards, ours, loop.core, since_round=loop.since_cycle, after=lambda: parts.waits_for() == ""
            )
            jobs.append(shards)
            collectors.append(shards.collector)
        jobs += [source, driven.reports]
        jobs += [*_gang_jobs(tables, session, leads, instance, ours.dry_run), *driven.jobs]
        if writer is not None:
            jobs.append(PeriodicTask("reservations", _UPKEEP_SECONDS, writer.step))
            collectors.append(ReservationCollector(prepared.reservations))
        upkeep = list(_upkeep(parts, loop, api, leads))
        jobs += [thread for one in upkeep for thread in one.threads]
        jobs.append(loop)
        scheduling = _scheduling(ours, loop, tables, lease, lambda: _not_listed(source), driven.abilities)
        collectors += [SchedulingGauges(scheduling.state), _figures_of_loop(loop), *driven.collectors]
        if followed is not None:
            collectors.append(followed.collector)
        collectors += [collector for one in upkeep for collector in one.collectors]
        yield LiveSchedule(
            scorer,
            background,
            scheduling,
            metrics,
            tuple(collectors),
            running=lambda: running(jobs),
            routers=(*driven.routers, *(router for one in upkeep for router in one.routers)),
            bodies=(*driven.bodies, *(body for one in upkeep for body in one.bodies)),
        )


def _untold(settings: Settings) -> Settings:
    """A dry run writes no events, not even of policies."""
    if not settings.schedule.dry_run:
        return settings
    return settings.model_copy(update={"policies": settings.policies.model_copy(update={"events": False})})


def _gang_jobs(
    tables: ScheduleTables, session: ApiSession, leads: Callable[[], bool], instance: str, is_dry_run: bool
) -> list[BackgroundThread]:
    """What creates PodGroups by annotation, writes statuses of groups, and lets their time pass."""
    if tables.gangs is None:
        return []
    gangs = tables.gangs
    events = GroupEvents(session_post(session), instance=instance)
    creator = GroupCreator(session, gangs, may_write=leads)
    create = partial(suppose_groups, gangs) if is_dry_run else creator.step
    writer = GroupStatusWriter(session, tables.gangs, tell=events.tell, may_write=leads)
    return [
        events,
        PeriodicTask("pod-groups", _UPKEEP_SECONDS, tables.gangs.tick),
        PeriodicTask("pod-groups-by-annotation", _UPKEEP_SECONDS, create),
        PeriodicTask("pod-group-statuses", _UPKEEP_SECONDS, writer.step),
    ]


def _upkeep(parts: LoopParts, loop: Loop, api: ApiClient, leads: Callable[[], bool]) -> Iterator[Upkeep]:
    """Yield what goes on around the rules about nodes, queues, tenants, and each profile."""
    tables, scorer = parts.tables, parts.scorer
    around = Surroundings(
        session=parts.session,
        queue=loop.queue,
        evict=api_server_evict(api),
        post=None if parts.settings.dry_run else session_post(parts.session),
        instance=parts.instance,
        may_write=leads,
        after=lambda: parts.waits_for() == "",
    )
    yield node_rule_upkeep(tables.rules, scorer, api=api, after=around.after)
    if tables.queues is not None:
        yield Upkeep(collectors=(ShareGauges(tables.queues.shares),))
    if tables.tenants is not None:
        yield tenant_upkeep(tables.tenants, scorer, around)
    for profile in (tables.common, *tables.profiles.values()):
        upkeep = profile.upkeep(around)
        if profile.subscriptions:
            source = source_of(api, profile.subscriptions)
            profile.on_source(source)
            upkeep = replace(upkeep, threads=(source, *upkeep.threads))
        yield upkeep


def _scheduling(
    settings: ScheduleSettings,
    loop: Loop,
    tables: ScheduleTables,
    lease: Lease | None,
    waits_for: Callable[[], str],
    abilities: Callable[[], Mapping[str, Any]],
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
        abilities=abilities,
    )
    return scheduling if queues is None else replace(scheduling, queue_of=queues.name_of, shares=queues.reports)


def _figures_of_loop(loop: Loop) -> SchedulingFigures:
    incoming, bindings = loop.queue.incoming, loop.bindings
    return SchedulingFigures(incoming=incoming, throttled=lambda: bindings.throttled)


def _figures_of(reports: Reports | LoggedReports) -> list[Collector]:
    """Return what became of conditions and events; a dry run writes none."""
    if isinstance(reports, LoggedReports):
        return []
    return [ReportFigures(lambda: reports.conditions.figures, lambda: reports.events.figures)]


def _waits_for(scorer: Scorer, source: ResourceSource) -> str:
    status = scorer.status()
    return (status.not_ready_because or "starting") if not status.ready else _not_listed(source)


def _not_listed(source: ResourceSource) -> str:
    for name, status in source.statuses().items():
        if not status.synced:
            return f"{name} have not been listed: {status.last_error or 'no answer yet'}"
    return ""
