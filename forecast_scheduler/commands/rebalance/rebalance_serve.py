"""The rebalancer put together from settings: tables, filters, records, executor, lease, page."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from base.periodic_task import PeriodicTask
from forecast_scheduler.commands.live_placing import Placing
from forecast_scheduler.commands.scorer.scorer_setup import Inputs, prepare_scorer
from forecast_scheduler.commands.serving_access import check_exposed, hosts_of, kubernetes_access
from forecast_scheduler.commands.shell import Shell
from forecast_scheduler.settings.document import Settings
from forecast_scheduler.settings.feature_options import change_windows, service_options
from kube.client.cluster_access import ClusterAccess
from kube.client.kubernetes_contract import Subscription
from kube.client.kubernetes_source import source_of
from kube.events.event_recorder import EventRecorder, session_post
from kube.leader_election.lease import Lease
from kube.session.api_session import ApiSession
from placement.disruption_budgets import WATCHED_BUDGETS, DisruptionBudgets
from placement.index.index import INDEXED_KINDS
from rebalancer.execution.move_events import report_move
from rebalancer.execution.move_metrics import ExecutionCollector, ExecutionFigures
from rebalancer.execution.move_rooms import MoveRooms
from rebalancer.execution.plan_executor import Executor
from rebalancer.execution.plan_records import PlanRecords
from rebalancer.plan_book import KeptPlans
from rebalancer.plan_maker import PlanMaker, PlanSources
from rebalancer.rebalance_settings import RebalanceMode, RebalanceOptions
from rebalancer.rebalancing import Rebalancing
from rebalancer.standing import RebalanceBody, RebalancingCollector, plan_router
from scorer.scorer import Scorer
from scorer.service.app import create_app
from serving.server import ScorerServer
from serving.threads import BackgroundThread, running

_STEP_SECONDS: Final = 0.5
_CONNECTIONS: Final = 32
_EVENTS_A_SECOND: Final = 5.0
_EVENTS_AT_ONCE: Final = 50.0


def serve(shell: Shell, settings: Settings, inputs: Inputs) -> None:
    """Rebalance until SIGTERM or Ctrl-C. Raises InputError, see PreparedScorer."""
    ours, access = settings.rebalance, inputs.access
    check_exposed(ours.serving)

    # The API server, and who leads
    api, instance = access.client(), socket.gethostname()
    lease = _lease(ours, access)
    leads: Callable[[], bool] = (lambda: True) if lease is None else lease.may_write
    session = ApiSession(api, connections=_CONNECTIONS, may_write=leads)

    # The scorer, and what plans are made and carried out with
    prepared = prepare_scorer(settings, inputs)
    scorer = prepared.scorer
    placing, budgets = Placing(scorer, settings), DisruptionBudgets()
    kept = KeptPlans(scorer.tables, ours.cooldown)
    changes = change_windows(settings)
    sources = PlanSources(
        placing.may_go,
        budgets,
        placing.annotations_of,
        kept.cooling_until,
        kept.nodes_left,
        excluded=settings.excluded,
        changes=changes,
    )
    hot = settings.hot_share
    maker = PlanMaker(scorer.tables, sources, ours, hot)
    records, figures = PlanRecords(session, why_foreign=kept.why_foreign), ExecutionFigures()
    events = EventRecorder(
        session_post(session),
        what="moves",
        instance=instance,
        controller="forecast-scheduler/rebalancer",
        action="Rebalancing",
        rate=_EVENTS_A_SECOND,
        burst=_EVENTS_AT_ONCE,
    )
    executor = Executor(
        session,
        records,
        ours.execution,
        report=partial(report_move, events),
        hindrance=lambda move: maker.hindrance(
            move.uid, lambda replicas: kept.book.beyond_budget(move, ours, kept.calendar(), replicas=replicas)
        ),
        figures=figures,
        rooms=MoveRooms(session, partial(_requests_of, scorer), count=figures.count_room, clock=time.time),
    )
    rebalancing = Rebalancing(
        scorer.tables, maker, kept, session, records, executor, ours, hot=hot, leads=leads, changes=changes
    )

    # What goes on around it
    watch = source_of(api, [Subscription(WATCHED_BUDGETS, budgets)])
    work = PeriodicTask(
        "rebalancing", _STEP_SECONDS, rebalancing.step, after=lambda: scorer.tables.synced and watch.synced
    )
    jobs: list[BackgroundThread] = [session, *([] if lease is None else [lease]), watch, events, work]

    # The service
    with prepared.following(INDEXED_KINDS):
        app = create_app(
            scorer,
            service_options(settings, ours.serving),
            access=kubernetes_access(ours.serving, access),
            collectors=[RebalancingCollector(lambda: rebalancing.state, ours.mode), ExecutionCollector(figures)],
            routers=[plan_router(lambda: rebalancing.state)],
            bodies=[RebalanceBody],
            hosts=hosts_of(ours.serving),
            hot=hot,
        )
        server = ScorerServer(app, ours.serving, on_started=lambda url: shell.say(f"rebalance: {url}"))
        with prepared.background, running(jobs):
            server.run()
    shell.say("rebalance: ended")


def _requests_of(scorer: Scorer, uid: str) -> Mapping[str, float] | None:
    """Return what a pod requests; None = it is not known."""
    with scorer.tables.reading() as cluster:
        pod = cluster.state.pods.get(uid)
        return None if pod is None else pod.requests


def _lease(options: RebalanceOptions, access: ClusterAccess) -> Lease | None:
    """None = nothing is written, or another replica is not minded."""
    if options.mode is RebalanceMode.OFF or not options.leader_election.enabled:
        return None
    return Lease(access.client(), options.leader_election)
