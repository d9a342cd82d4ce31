"""Loops put together from settings, and served over HTTP while they run: those of `schedule`, and that of `advise`."""

from __future__ import annotations

import socket
import sys
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Final

from forecast_scheduler.commands.decision_recorder import open_recorder
from forecast_scheduler.commands.policy.followed_policies import open_policies
from forecast_scheduler.commands.schedule.drivers import Driver, OwnLoops
from forecast_scheduler.commands.schedule.leadership import leader_lease, leads_by, shard_leases
from forecast_scheduler.commands.schedule.upkeep import (
    gang_upkeep,
    live_scheduling,
    own_upkeep,
    reservation_upkeep,
)
from forecast_scheduler.commands.scorer.scorer_setup import Inputs, check_inputs, prepare_scorer
from forecast_scheduler.commands.serving_access import check_exposed, hosts_of, kubernetes_access
from forecast_scheduler.commands.shell import Shell
from forecast_scheduler.settings.document import Settings
from forecast_scheduler.settings.feature_options import (
    schedule_policy,
    schedule_policy_defaults,
    service_options,
)
from kube.client.kubernetes_source import ResourceSource, source_of
from kube.events.event_recorder import api_server_post
from kube.leader_election.lease import our_identity
from kube.session.api_session import ApiSession
from placement.index.index import INDEXED_KINDS
from placement.node_rule_upkeep import node_rule_upkeep
from placement.plugin_loading import used_plugins
from placement.policies.policy import OnePolicyForAll
from profiles.schedule_tables import schedule_tables
from scheduler.loop import ScheduleLoop
from scheduler.loop_upkeep import shard_upkeep, tenant_upkeep
from scheduler.process import Process
from scheduler.quota_queues.owner_shares import ShareGauges
from scheduler.reservation_status_writer import ReservationReports, ReservationWriter
from scheduler.scheduling_metrics import SchedulingMetrics
from scheduler.service.scheduling_app import create_app
from scheduler.shards.shard_leases import replica_name
from scorer.scorer import Scorer
from serving.server import ScorerServer
from serving.server_settings import ServingOptions
from serving.threads import Upkeep, joined, running

_SWITCH_SECONDS: Final = 0.001
"""Between threads. With Python's 5 ms binding, which waits for the API server in one thread, came to half of its rate
while another thread decided."""

_WATCH_CONNECTIONS: Final = 32
"""One for each kind that only these loops read, and some for evictions and events."""

_SPARE_CONNECTIONS: Final = 64
"""In addition to those of bindings: conditions, events, statuses."""


def serve(
    shell: Shell,
    settings: Settings,
    inputs: Inputs,
    *,
    name: str = "schedule",
    driver: Driver | None = None,
    serving: ServingOptions | None = None,
) -> None:
    """Run loops until SIGTERM or Ctrl-C. Raises InputError, see PreparedScorer.

    name    : of the command
    driver  : None = our own loops
    serving : the settings that say where they serve; None = settings.schedule.serving
    """
    serving, driver = serving or settings.schedule.serving, driver or OwnLoops(settings.schedule)
    check_exposed(serving)
    check_inputs(inputs)
    sys.setswitchinterval(_SWITCH_SECONDS)
    ours, access = settings.schedule, inputs.access

    # The API server, and who leads
    api, identity = access.client(connections=_WATCH_CONNECTIONS), our_identity()
    lease = leader_lease(ours, access, driver.may_lead, identity)
    leads = leads_by(ours, lease)
    held = shard_leases(ours, access, identity, leads) if driver.may_share else None
    # Where replicas share the nodes each of them writes that lives; what only one may do asks `leads`, too.
    may_write = leads if held is None else partial(held.leases.holds, replica_name(ours.leader_election, identity))
    session = ApiSession(api, connections=ours.bindings_in_flight + _SPARE_CONNECTIONS, may_write=may_write)

    with ExitStack() as stack:
        # Policies, and the scorer
        written = _without_events(settings) if ours.dry_run else settings
        defaults = schedule_policy_defaults(settings)
        followed = stack.enter_context(
            open_policies(written, access, has_api_server=not ours.dry_run, defaults=defaults)
        )
        provider = None if followed is None else followed.provider
        places = ours.scheduler_names.values() if driver.places_reservations else ()
        prepared = prepare_scorer(settings, inputs, policies=provider, places=places)
        scorer = prepared.scorer

        # All that follows the tables is there before the first object comes
        plugins = replace(used_plugins(settings.plugins), binds=driver.binds)
        claims = None if ours.dry_run else session
        tables = schedule_tables(scorer, ours, settings.node_rules, claims, held, plugins=plugins)
        if provider is not None:
            provider.read_labels_with(tables.view.index.namespaces.labels_of)
        source = tables.source(api)
        waits_for = partial(_waits_for, scorer, source)
        process = Process(
            api, session, lease, leads, may_write, waits_for, socket.gethostname(), is_dry_run=ours.dry_run
        )

        # What becomes of decisions
        recorder, of_decisions = None, list[Upkeep]()
        if driver.records:
            recorder, collector = stack.enter_context(
                open_recorder(
                    ours.decisions, api_server_post(api), controller=driver.controller, is_shadow=driver.is_shadow
                )
            )
            of_decisions.append(Upkeep(collectors=(collector,)))
        reservations = prepared.reservations if driver.places_reservations else None
        driven = driver.drive(process, scorer, tables, recorder, provider, reservations)
        role, writer = driven.role, None
        if reservations is not None:
            may_note = lambda: leads() and process.is_read()  # noqa: E731
            writer = ReservationWriter(session, scorer.tables.reading, reservations, may_write=may_note)
            role = replace(role, reports=ReservationReports(role.reports, writer.note))

        # The loop
        profiles = (tables.common, *tables.profiles.values())
        sources = [source_of(api, one.subscriptions) for one in profiles]
        metrics = SchedulingMetrics()
        loop = ScheduleLoop(
            process,
            scorer,
            tables,
            ours,
            provider or OnePolicyForAll(schedule_policy(settings)),
            role,
            metrics,
            read_again=[
                partial(one.read_again, its) for one, its in zip(profiles, sources, strict=True) if one.read_again
            ],
        )
        of_driver = driven.upkeep(loop.judge)  # it listens to new pods: before the first list
        stack.enter_context(prepared.following(INDEXED_KINDS, is_known=driven.is_known))
        scheduling = live_scheduling(ours, loop, tables, process, partial(_not_listed, source), driven.abilities)

        # What goes on around it: at the end the loop stops first; then its reports, the Lease, and the session last
        around = [Upkeep((session,) if lease is None else (session, lease))]
        if tables.shards is not None:
            around.append(shard_upkeep(tables.shards, ours, loop, after=process.is_read))
        around.append(Upkeep((source, role.reports)))
        if tables.gangs is not None:
            around.append(gang_upkeep(tables.gangs, process))
        around.append(of_driver)
        if reservations is not None and writer is not None:
            around.append(reservation_upkeep(reservations, writer))
        around.append(node_rule_upkeep(tables.rules, scorer, api=api, after=process.is_read))
        if tables.queues is not None:
            around.append(Upkeep(collectors=(ShareGauges(tables.queues.shares),)))
        if tables.tenants is not None:
            around.append(tenant_upkeep(tables.tenants, scorer, process))
        for one, its in zip(profiles, sources, strict=True):
            around += [Upkeep((its,)), one.upkeep(process, loop.queue)]
        around.append(own_upkeep(loop, scheduling))
        of_policies = () if followed is None else (followed.collector,)
        upkeep = joined([*around, *of_decisions, Upkeep(collectors=(*of_policies, *plugins.collectors()))])

        # The service
        app = create_app(
            scorer,
            scheduling,
            metrics,
            service_options(settings, serving),
            access=kubernetes_access(serving, access),
            collectors=upkeep.collectors,
            routers=upkeep.routers,
            bodies=upkeep.bodies,
            hosts=hosts_of(serving),
            judge=loop.judge,
            hot=settings.hot_share,
        )
        server = ScorerServer(app, serving, on_started=lambda url: shell.say(f"{name}: {url}"))
        with prepared.background, running(upkeep.threads):
            server.run()
    shell.say(f"{name}: ended")


def _without_events(settings: Settings) -> Settings:
    """A dry run writes no events, not even of policies."""
    return settings.model_copy(update={"policies": settings.policies.model_copy(update={"events": False})})


def _waits_for(scorer: Scorer, source: ResourceSource) -> str:
    status = scorer.status()
    return (status.not_ready_because or "starting") if not status.ready else _not_listed(source)


def _not_listed(source: ResourceSource) -> str:
    for name, status in source.statuses().items():
        if not status.synced:
            return f"{name} have not been listed: {status.last_error or 'no answer yet'}"
    return ""
