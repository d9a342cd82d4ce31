"""The autoscaler put together from settings: tables, usage of pods, hands, lease, metrics API."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from autoscaling.autoscale_settings import ExternalMetricsOptions
from autoscaling.autoscaler import Autoscaler, AutoscalingCollector, Hand
from autoscaling.nodes.buffer_hand import BufferHand
from autoscaling.nodes.guard_hand import GuardHand, nodes_now
from autoscaling.replicas.external_metrics import external_metrics_app, follow_front_proxy
from autoscaling.replicas.loads_ahead import LoadsAhead
from autoscaling.replicas.min_replicas_hand import MinReplicasHand
from autoscaling.replicas.used_now import LastReading
from autoscaling.requests.pod_resources import OptedPod
from autoscaling.requests.resize_hand import ResizeHand
from autoscaling.requests.resizing import free_on_nodes
from base.errors import ForecastError, InputError
from base.periodic_task import PeriodicTask
from forecast.service_key import ServiceKey
from forecast_scheduler.commands.scorer.scorer_setup import Inputs, live_usage, prepare_scorer
from forecast_scheduler.commands.scorer.usage_sources import PrometheusPods
from forecast_scheduler.commands.serving_access import check_exposed, hosts_of, kubernetes_access
from forecast_scheduler.commands.shell import Shell
from forecast_scheduler.settings.document import Settings
from forecast_scheduler.settings.feature_options import change_windows, service_options
from kube.client.cluster_access import ClusterAccess
from kube.events.event_recorder import EventRecorder, session_post
from kube.leader_election.lease import Lease
from kube.session.api_session import ApiSession
from kube.session.session_calls import call
from scorer.scorer import Scorer
from scorer.service.app import create_app
from serving.server import ScorerServer
from serving.threads import BackgroundThread, running
from trainer.prometheus.metrics_store import MetricsStore

_CONNECTIONS: Final = 16
_STOP_SECONDS: Final = 5.0
_RELEASE_SECONDS: Final = 300.0
_READ_SECONDS: Final = 60.0
_EVENTS_A_SECOND, _EVENTS_AT_ONCE = 1.0, 60.0
"""As many as writes of minReplicas."""


def serve(shell: Shell, settings: Settings, inputs: Inputs) -> None:
    """Run until SIGTERM or Ctrl-C. Raises InputError, see PreparedScorer."""
    ours, access = settings.autoscale, inputs.access
    check_exposed(ours.serving)
    prepared = prepare_scorer(settings, inputs)
    scorer = prepared.scorer
    lease = Lease(access.client(), ours.leader_election) if ours.leader_election.enabled else None
    leads: Callable[[], bool] = (lambda: True) if lease is None else lease.may_write
    session = ApiSession(access.client(), connections=_CONNECTIONS, may_write=leads)
    pods = _pods(settings, prepared.store, scorer)
    events = _events(session)

    def loads() -> LoadsAhead:
        return autoscaler.loads()

    every = _hands(settings, session, scorer, pods, loads, events, releases=False)
    hands = [hand for hand, is_enabled in every if is_enabled]
    if not hands:
        off = "autoscale.buffers, autoscale.guard, autoscale.min_replicas and requests.resize are off"
        shell.say(f"autoscale: writes nothing, since {off}")
    autoscaler = Autoscaler(scorer.tables, pods, session, hands, ours, leads=leads, excluded=settings.excluded)

    def may_begin() -> bool:
        # Before the model is there, a new leader would take back what the last one wrote.
        return scorer.tables.synced and not scorer.tables.awaits_model()

    work = PeriodicTask("autoscaling", ours.every, autoscaler.step, after=may_begin)
    jobs: list[BackgroundThread] = [session, *([] if lease is None else [lease]), events, _Ending(autoscaler), work]
    with prepared.following(), ExitStack() as stack:
        app = create_app(
            scorer,
            service_options(settings, ours.serving),
            access=kubernetes_access(ours.serving, access),
            collectors=[AutoscalingCollector(lambda: autoscaler.state, autoscaler.loads, hands)],
            hosts=hosts_of(ours.serving),
            hot=settings.hot_share,
        )
        also = ""
        if ours.external_metrics.enabled:
            url = stack.enter_context(_external_metrics(ours.external_metrics, access, autoscaler.loads))
            also = f", external metrics: {url}"
        server = ScorerServer(app, ours.serving, on_started=lambda url: shell.say(f"autoscale: {url}{also}"))
        with prepared.background, running(jobs):
            server.run()
    shell.say("autoscale: ended")


def release_all(shell: Shell, settings: Settings, inputs: Inputs) -> None:
    """Take back all that any autoscaler has written, whatever is enabled now.

    Raises ForecastError where something is left; every hand is tried before. Raises InputError, see PreparedScorer.
    """
    session = ApiSession(inputs.access.client(), connections=_CONNECTIONS)
    prepared = prepare_scorer(settings, inputs, predicts=False)
    scorer = prepared.scorer
    with prepared.following(), running([session]):
        _await_cluster(scorer)  # requests grow only into what nodes have left
        left: list[str] = []
        for hand, _ in _hands(settings, session, scorer, None, LoadsAhead, _events(session), releases=True):
            try:
                call(session, hand.retreat(), _RELEASE_SECONDS, "taking back what was written")
            except TimeoutError:
                left.append(f"{hand.name}: not finished after {_RELEASE_SECONDS:.0f} s: run it again")
            except ForecastError as error:
                left.append(f"{hand.name}: {error}")
            else:
                shell.say(f"{hand.name}: taken back")
    if left:
        raise ForecastError("; ".join(left))


def _await_cluster(scorer: Scorer) -> None:
    """Wait until nodes and pods are read. Without them all the same: then no request grows, and that is told."""
    until = time.monotonic() + _READ_SECONDS
    while not scorer.tables.synced and time.monotonic() < until:
        time.sleep(0.1)


def _events(session: ApiSession) -> EventRecorder:
    return EventRecorder(
        session_post(session),
        what="minReplicas",
        instance=socket.gethostname(),
        controller="forecast-scheduler/autoscaler",
        action="Scaling",
        rate=_EVENTS_A_SECOND,
        burst=_EVENTS_AT_ONCE,
    )


def _hands(
    settings: Settings,
    session: ApiSession,
    scorer: Scorer,
    pods: LastReading | None,
    loads: Callable[[], LoadsAhead],
    events: EventRecorder,
    *,
    releases: bool,
) -> Sequence[tuple[Hand, bool]]:
    """All hands there are, and whether the settings let each act. pods: None = usage of pods is not measured;
    releases: whether nothing of ours is to be left"""
    ours, tables = settings.autoscale, scorer.tables

    def cores(pod: OptedPod) -> float | None:
        return None if pods is None else pods.cores(pod.namespace, pod.name)

    def services(uids: Collection[str]) -> Mapping[str, ServiceKey]:
        with tables.reading() as cluster:
            seats, of = cluster.state.seat_of, cluster.state.services
            return {uid: of[seats[uid].service] for uid in uids if uid in seats}

    return (
        (BufferHand(session, ours.buffers), ours.buffers.enabled),
        (GuardHand(session, lambda: nodes_now(tables), ours.guard), ours.guard.enabled),
        (
            ResizeHand(
                session,
                settings.requests,
                free=lambda: free_on_nodes(tables),
                namespace=ours.leader_election.namespace,
                hot=settings.hot_share,
                measured=cores,
                services=services,
                excluded=settings.excluded,
                changes=change_windows(settings),
            ),
            settings.requests.resize.enabled,
        ),
        (
            MinReplicasHand(
                session,
                ours.min_replicas,
                loads=loads,
                nodes=lambda: nodes_now(tables),
                events=events,
                excluded=settings.excluded,
                keeps_marks=not releases,
            ),
            ours.min_replicas.enabled,
        ),
    )


@dataclass(frozen=True, slots=True)
class _Ending:
    """Stops after the work and before the lease and the session: implements Background."""

    autoscaler: Autoscaler

    def start(self) -> None:
        """Nothing is to be done."""

    def stop(self) -> None:
        """Take back what was written."""
        self.autoscaler.end()


def _pods(settings: Settings, store: MetricsStore | None, scorer: Scorer) -> LastReading | None:
    replicas, clock = settings.autoscale.replicas, scorer.tables.clock
    if store is None:
        return None
    source = PrometheusPods(live_usage(settings, store), replicas.resources, replicas.window, clock=clock)
    return LastReading(source, clock=clock, fresh=replicas.fresh + replicas.window)


@contextmanager
def _external_metrics(
    options: ExternalMetricsOptions, access: ClusterAccess, loads: Callable[[], LoadsAhead]
) -> Iterator[str]:
    """Serve the metrics API in a thread of its own while the context lasts; yields where."""
    serving = options.serving
    if serving.tls_cert is None:
        raise InputError(
            "kube-apiserver calls the external metrics API by HTTPS only, and there is no certificate: set "
            "autoscale.external_metrics.serving.tls_cert and tls_key (docs/use/autoscaling.md)"
        )
    if not options.client_config_map and serving.client_ca is None:
        raise InputError(
            "nothing says who may ask the external metrics API: set autoscale.external_metrics.client_config_map, or "
            "serving.client_ca beside it"
        )
    with ExitStack() as stack:
        if options.client_config_map:
            proxy = stack.enter_context(follow_front_proxy(access.client(), options.client_config_map))
            serving = serving.replace(client_ca=proxy.authority, client_names=proxy.names)
        server = ScorerServer(external_metrics_app(loads), serving)
        thread = threading.Thread(target=server.run, name="external-metrics", daemon=True)
        thread.start()
        try:
            yield server.url
        finally:
            server.stop()
            thread.join(_STOP_SECONDS)
