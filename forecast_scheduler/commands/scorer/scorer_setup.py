"""A scorer put together from settings: a cluster to follow, models to read, usage to measure, and a clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from base.errors import ForecastError, InputError
from base.progress import silent
from cluster.live.usage import UsageSource
from cluster.model_watch import ModelWatch
from cluster.tables.cluster_file import ClusterObjects, read_cluster_file
from forecast.calendar import Calendar
from forecast.published_models import Registry
from forecast_scheduler.commands.model_registry import open_registry
from forecast_scheduler.commands.scorer.placers import attach_usable_nodes
from forecast_scheduler.commands.scorer.usage_sources import PrometheusUsage, RecordedUsage
from forecast_scheduler.settings.document import Settings
from forecast_scheduler.settings.feature_options import scorer_options
from kube.decoding.decoding import SCORED_KINDS, Kind
from kube.decoding.watched_kinds import UndecodableObject
from kube.leader_election.lease import running_time
from kube.objects.watched_objects import version_number
from placement.policies.provider import PolicyProvider
from placement.reservations.reservations import Reservations
from placement.reservations.watched_reservations import WATCHED_RESERVATIONS
from scorer.background import ScorerBackground
from scorer.scorer import Scorer
from trainer.prometheus.live_usage import LiveUsage
from trainer.prometheus.prometheus_connection import PrometheusConnection

if TYPE_CHECKING:
    from kube.client.kubernetes_source import ResourceSource

_FORBIDDEN: Final = "403 "


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a scorer works on.

    cluster    : file as kubectl exports it; None = follow the API server
    kubeconfig : of that API server; None = in-cluster, else kubectl's default
    models     : None = where the settings say
    prometheus : URL; None = where the settings say, if anywhere
    history    : recorded usage to play as if it were measured now
    objects    : of the cluster file, where it was read already
    at         : the moment to start at, None = now; naive: local time by the settings, else the history, else the model
    """

    cluster: Path | None = None
    kubeconfig: Path | None = None
    models: str | None = None
    prometheus: str | None = None
    history: Path | None = None
    at: datetime | None = None
    objects: ClusterObjects | None = None


def clock_from(at: datetime | None, calendar: Calendar) -> Callable[[], float]:
    """A clock that runs on from a moment (naive: local time of the calendar); None = the real one."""
    if at is None:
        return time.time
    aware = at if at.tzinfo is not None else at.replace(tzinfo=calendar.zone)
    start, began = aware.timestamp(), time.monotonic()
    return lambda: start + time.monotonic() - began


@dataclass(frozen=True, slots=True)
class PreparedScorer:
    """A scorer that has not read its cluster yet: tables that are to follow it from the start are attached now."""

    scorer: Scorer
    background: ScorerBackground
    inputs: Inputs
    kubeconfig: Path | None
    reservations: Reservations

    @contextmanager
    def following(
        self,
        kinds: Collection[Kind] = (),
        on_file: Callable[[ClusterObjects], object] = lambda objects: None,
    ) -> Iterator[None]:
        """Follow the cluster while the context lasts.

        kinds   : of objects that attached tables need in addition to the scorer's
        on_file : called with the objects of a cluster file before nodes and pods are read, for tables that watch
                  further resources
        Raises InputError: a file that cannot be read, an API server that cannot be reached.
        """
        inputs, kinds = self.inputs, (*SCORED_KINDS, *kinds)
        if inputs.cluster is not None:
            objects = inputs.objects or read_cluster_file(inputs.cluster)
            _load_file(self.scorer, inputs.cluster, objects, kinds, on_file, self.reservations)
            yield
            return
        sources = _follow(self.scorer, self.kubeconfig, kinds, self.reservations)
        try:
            yield
        finally:
            for source in sources:
                source.stop()


@contextmanager
def open_scorer(
    settings: Settings, inputs: Inputs, *, policies: PolicyProvider | None = None
) -> Iterator[tuple[Scorer, ScorerBackground]]:
    """A scorer that follows its cluster while the context lasts, without further tables. See prepare_scorer."""
    prepared = prepare_scorer(settings, inputs, policies=policies)
    with prepared.following():
        yield prepared.scorer, prepared.background


def prepare_scorer(
    settings: Settings,
    inputs: Inputs,
    *,
    predicts: bool = True,
    policies: PolicyProvider | None = None,
    places: Collection[str] = (),
) -> PreparedScorer:
    """A scorer of the settings; its background is not running yet.

    predicts : whether it looks for models and measures usage; else it only knows the cluster
    policies : which pod is scored how; None = all as the settings say
    places   : scheduler names whose Reservations this process finds nodes for
    Raises InputError: files that cannot be read, contradicting inputs.
    """
    check_inputs(inputs)
    registry = open_registry(settings.models, inputs.models) if predicts else None
    calendar = Calendar(settings.time_zone) if settings.time_zone else Calendar()
    usage: Callable[[Callable[[], float]], UsageSource | None]
    if inputs.history is not None:
        from forecast_scheduler.commands.history_directory import open_history  # brings pyarrow

        history = open_history(settings, inputs.history, silent).history()
        calendar = history.calendar
        usage = lambda clock: RecordedUsage(history, clock=clock)  # noqa: E731
    else:
        usage = lambda clock: _prometheus(settings, inputs.prometheus, clock)  # noqa: E731
        if inputs.at is not None and not settings.time_zone and registry is not None:
            calendar = _calendar_in_use(registry)
    clock = clock_from(inputs.at, calendar)
    options = scorer_options(settings)
    scorer = Scorer(
        options, usage=usage(clock) if predicts else None, policies=policies, clock=clock, steady=running_time
    )
    models = ModelWatch(registry) if registry is not None else None
    background = ScorerBackground(scorer, models, clock=clock)
    attach_usable_nodes(scorer, settings, policies)
    reservations = Reservations(
        scorer.tables.changing,
        clock=clock,
        default_name=settings.schedule.scheduler_name,
        places=places,
    )
    return PreparedScorer(scorer, background, inputs, inputs.kubeconfig or settings.scorer.kubeconfig, reservations)


def check_inputs(inputs: Inputs) -> None:
    """Raises InputError where they contradict each other."""
    if inputs.cluster is not None and inputs.kubeconfig is not None:
        raise InputError("--cluster and --kubeconfig name two clusters: pass one of them")
    if inputs.cluster is None and (inputs.at is not None or inputs.history is not None):
        raise InputError("--at and --history are for a cluster from a file: pass --cluster FILE, too")
    if inputs.history is not None and inputs.prometheus is not None:
        raise InputError("--history and --prometheus both say what is used now: pass one of them")


def _calendar_in_use(registry: Registry) -> Calendar:
    """That of the model in use, whose local time answers are in; UTC where there is none that can be read."""
    try:
        return Calendar(registry.load().manifest.time_zone)
    except ForecastError:
        return Calendar()


def _load_file(
    scorer: Scorer,
    path: Path,
    objects: ClusterObjects,
    kinds: Collection[Kind],
    on_file: Callable[[ClusterObjects], object],
    reservations: Reservations,
) -> None:
    try:
        on_file(objects)
        reserved = objects.of(WATCHED_RESERVATIONS)
    except UndecodableObject as error:
        raise InputError(f"cluster file {path}: {error}; mend the object or leave it out") from error
    for kind, others in objects.others.items():
        if kind in kinds:
            scorer.tables.replace(kind, others)
    scorer.tables.replace(Kind.REPLICA_SETS, objects.replica_sets)
    scorer.tables.replace(Kind.JOBS, objects.jobs)
    scorer.tables.replace(Kind.NODES, objects.nodes)
    scorer.tables.replace(Kind.PODS, objects.pods)
    reservations.replace(reserved)
    words = {"cluster": f"file {path.name}, as it was exported"}
    scorer.tables.follow(lambda: (True, None, words))


def _follow(
    scorer: Scorer, kubeconfig: Path | None, kinds: Collection[Kind], reservations: Reservations
) -> tuple[ResourceSource, ...]:
    from kube.client.api_server_version import ApiServerVersion
    from kube.client.kubernetes_client import api_client, check_access
    from kube.client.kubernetes_source import KubernetesSource, source_of

    api = api_client(kubeconfig, connections=len(kinds) + 2)  # each watch has one
    check_access(api, kinds)
    version = ApiServerVersion(api, scorer.tables.follow_version)
    tables = scorer.tables
    source = KubernetesSource(api, tables, kinds=kinds, version=version.read, is_known=tables.is_known)
    reserved = source_of(api, (reservations.subscription(),))

    def reserved_known() -> bool:
        """Room that is not known yet would be given away. Without the right to read it, that is all there is."""
        status = reserved.statuses()[WATCHED_RESERVATIONS.plural]
        return status.synced or status.last_error.startswith(_FORBIDDEN)

    def how_it_goes() -> tuple[bool, float | None, Mapping[str, str]]:
        status = source.status()
        contacts = [status[kind].last_contact for kind in (Kind.NODES, Kind.PODS)]
        known = [contact for contact in contacts if contact is not None]
        words = {kind.value: one.last_error or ("watched" if one.synced else "listing") for kind, one in status.items()}
        return source.synced and reserved_known(), min(known) if len(known) == len(contacts) else None, words

    anew = (Kind.NODES.value, Kind.PODS.value)

    def read_again() -> Callable[[], bool]:
        done, reserved_done = source.list_again(anew), reserved.list_again((WATCHED_RESERVATIONS.plural,))
        return lambda: done() and (reserved_done() or not reserved.synced)

    def number(version: str) -> int:
        return version_number(version) or 0

    scorer.tables.follow(
        how_it_goes,
        read_again,
        lambda: number(source.status()[Kind.PODS].resource_version),
        lambda: number(source.status()[Kind.PODS].event_version),
    )
    source.start()
    reserved.start()
    return source, reserved


def live_usage(settings: Settings, url: str | None) -> LiveUsage | None:
    """What Prometheus measures now; None = no server is named. url: None = where the settings say"""
    address = url or settings.prometheus.url
    if address is None:
        return None
    # A measurement that does not come soon is of no use any more: the next one is due.
    return LiveUsage(
        PrometheusConnection(address, settings.prometheus.replace(timeout=10, patience=0)),
        settings.prometheus.templates,
        window_seconds=settings.prometheus.step,
        log_source=settings.prometheus.log_source,
        recording_rules=settings.prometheus.recording_rules,
    )


def _prometheus(settings: Settings, url: str | None, clock: Callable[[], float]) -> UsageSource | None:
    live = live_usage(settings, url)
    return None if live is None else PrometheusUsage(live, clock=clock)
