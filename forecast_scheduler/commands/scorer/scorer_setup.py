"""A scorer put together from settings: a cluster to follow, models to read, usage to measure, and a clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from base.errors import ForecastError, InputError
from base.progress import silent
from cluster.live.usage import UsageSource
from cluster.live_tables import LiveTables
from cluster.model_watch import ModelWatch
from cluster.state_source import State, StateSource
from cluster.tables.cluster_file import ClusterObjects, read_cluster_file
from forecast.calendar import Calendar
from forecast.published_models import Registry
from forecast_scheduler.commands.metrics_store import named_store, store_if_any
from forecast_scheduler.commands.model_registry import open_registry
from forecast_scheduler.commands.scorer.placers import usable_nodes
from forecast_scheduler.commands.scorer.usage_sources import PrometheusUsage, RecordedUsage
from forecast_scheduler.settings.document import Settings
from forecast_scheduler.settings.feature_options import scorer_options
from kube.client.cluster_access import CURRENT_CLUSTER, ClusterAccess
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
from trainer.prometheus.metrics_store import MetricsStore

if TYPE_CHECKING:
    from kube.client.kubernetes_contract import WatchStatus
    from kube.client.kubernetes_source import KubernetesSource, ResourceSource

_FORBIDDEN: Final = "403 "


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a scorer works on.

    cluster    : file as kubectl exports it; None = follow the API server
    access     : to that API server
    models     : None = where the settings say
    prometheus : URL; None = where the settings say, else the store in the cluster, if there is one
    history    : recorded usage to play as if it were measured now
    objects    : of the cluster file, where it was read already
    at         : the moment to start at, None = now; naive: local time by the settings, else the history, else the model
    store      : that measures usage, where it was found already; prometheus does not count then
    """

    cluster: Path | None = None
    access: ClusterAccess = CURRENT_CLUSTER
    models: str | None = None
    prometheus: str | None = None
    history: Path | None = None
    at: datetime | None = None
    objects: ClusterObjects | None = None
    store: MetricsStore | None = None


def clock_from(at: datetime | None, calendar: Calendar) -> Callable[[], float]:
    """A clock that runs on from a moment (naive: local time of the calendar); None = the real one."""
    if at is None:
        return time.time
    aware = at if at.tzinfo is not None else at.replace(tzinfo=calendar.zone)
    start, began = aware.timestamp(), time.monotonic()
    return lambda: start + time.monotonic() - began


@dataclass(frozen=True, slots=True)
class PreparedScorer:
    """A scorer that has not read its cluster yet: tables that are to follow it from the start are attached now.

    store : that its usage is measured by; None = none
    """

    scorer: Scorer
    background: ScorerBackground
    inputs: Inputs
    source: WatchedCluster | ReadFile
    reservations: Reservations
    store: MetricsStore | None

    @contextmanager
    def following(
        self,
        kinds: Collection[Kind] = (),
        on_file: Callable[[ClusterObjects], object] = lambda objects: None,
        is_known: Callable[[bytes], bool] = lambda line: False,
    ) -> Iterator[None]:
        """Follow the cluster while the context lasts.

        kinds    : of objects that attached tables need in addition to the scorer's
        on_file  : called with the objects of a cluster file before nodes and pods are read, for tables that watch
                   further resources
        is_known : whether an event of a pod says nothing new, by its line of the watch
        Raises InputError: a file that cannot be read, an API server that cannot be reached.
        """
        source, tables, kinds = self.source, self.scorer.tables, (*SCORED_KINDS, *kinds)
        if isinstance(source, ReadFile):
            assert self.inputs.cluster is not None
            objects = self.inputs.objects or read_cluster_file(self.inputs.cluster)
            source.fill(tables, self.reservations, kinds, objects, on_file)
            yield
            return
        source.start(tables, self.reservations, kinds, is_known)
        try:
            yield
        finally:
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
    store = None
    if inputs.history is not None:
        from forecast_scheduler.commands.history_directory import open_history  # brings pyarrow

        history = open_history(settings, inputs.history, silent).history()
        calendar = history.calendar
        usage = lambda clock: RecordedUsage(history, clock=clock)  # noqa: E731
    else:
        if predicts:
            store = _store(settings, inputs)
        usage = lambda clock: None if store is None else PrometheusUsage(live_usage(settings, store), clock=clock)  # noqa: E731
        if inputs.at is not None and not settings.time_zone and registry is not None:
            calendar = _calendar_in_use(registry)
    clock = clock_from(inputs.at, calendar)
    options = scorer_options(settings)
    source = WatchedCluster(inputs.access) if inputs.cluster is None else ReadFile(inputs.cluster)
    scorer = Scorer(
        options,
        usage=usage(clock) if predicts else None,
        policies=policies,
        clock=clock,
        steady=running_time,
        source=source,
        usable_nodes=lambda cluster: usable_nodes(cluster, settings, policies),
    )
    models = ModelWatch(registry) if registry is not None else None
    background = ScorerBackground(scorer, models, clock=clock)
    reservations = Reservations(
        scorer.tables.changing,
        clock=clock,
        default_name=settings.schedule.scheduler_name,
        places=places,
    )
    return PreparedScorer(scorer, background, inputs, source, reservations, store)


def check_inputs(inputs: Inputs) -> None:
    """Raises InputError where they contradict each other."""
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


class WatchedCluster(StateSource):
    """The API server as the source of the tables, from `start` on."""

    def __init__(self, access: ClusterAccess) -> None:
        super().__init__(self._status)
        self._access = access
        self._objects: KubernetesSource | None = None
        self._rooms: ResourceSource | None = None

    def start(
        self, tables: LiveTables, reservations: Reservations, kinds: Collection[Kind], is_known: Callable[[bytes], bool]
    ) -> None:
        """Begin to fill the tables. Raises InputError for an API server that cannot be reached."""
        from kube.client.api_server_version import ApiServerVersion
        from kube.client.kubernetes_client import check_access
        from kube.client.kubernetes_source import KubernetesSource, source_of

        api = self._access.client(connections=len(kinds) + 2)  # each watch has one
        check_access(api, kinds)
        version = ApiServerVersion(api, tables.follow_version)
        self._objects = KubernetesSource(api, tables, kinds=kinds, version=version.read, is_known=is_known)
        self._rooms = source_of(api, (reservations.subscription(),))
        self._objects.start()
        self._rooms.start()

    def stop(self) -> None:
        """End all watches; what was read stays."""
        for source in filter(None, (self._objects, self._rooms)):
            source.stop()

    def read_again(self) -> Callable[[], bool]:
        objects, rooms = self._objects, self._rooms
        if objects is None or rooms is None:
            return lambda: False
        done = objects.list_again((Kind.NODES.value, Kind.PODS.value))
        rooms_done = rooms.list_again((WATCHED_RESERVATIONS.plural,))
        return lambda: done() and (rooms_done() or not rooms.synced)

    def pods_version(self) -> int:
        return 0 if self._objects is None else version_number(self._pods(self._objects).resource_version) or 0

    def pod_event_version(self) -> int:
        return 0 if self._objects is None else version_number(self._pods(self._objects).event_version) or 0

    # Inside

    @staticmethod
    def _pods(source: KubernetesSource) -> WatchStatus:
        return source.status()[Kind.PODS]

    def _status(self) -> State:
        if self._objects is None or self._rooms is None:
            return False, None, {}
        status = self._objects.status()
        contacts = [status[kind].last_contact for kind in (Kind.NODES, Kind.PODS)]
        known = [contact for contact in contacts if contact is not None]
        words = {kind.value: one.last_error or ("watched" if one.synced else "listing") for kind, one in status.items()}
        is_read = self._objects.synced and _are_known(self._rooms)
        return is_read, min(known) if len(known) == len(contacts) else None, words


def _are_known(rooms: ResourceSource) -> bool:
    """Room that is not known yet would be given away. Without the right to read it, that is all there is."""
    status = rooms.statuses()[WATCHED_RESERVATIONS.plural]
    return status.synced or status.last_error.startswith(_FORBIDDEN)


class ReadFile(StateSource):
    """A cluster file as the source of the tables."""

    def __init__(self, path: Path) -> None:
        super().__init__(lambda: (self._is_read, None, {"cluster": f"file {path.name}, as it was exported"}))
        self._path, self._is_read = path, False

    def fill(
        self,
        tables: LiveTables,
        reservations: Reservations,
        kinds: Collection[Kind],
        objects: ClusterObjects,
        on_file: Callable[[ClusterObjects], object],
    ) -> None:
        """Put everything into the tables. Raises InputError for an object that cannot be read."""
        try:
            on_file(objects)
            reserved = objects.of(WATCHED_RESERVATIONS)
        except UndecodableObject as error:
            raise InputError(f"cluster file {self._path}: {error}; mend the object or leave it out") from error
        for kind, others in objects.others.items():
            if kind in kinds:
                tables.replace(kind, others)
        tables.replace(Kind.REPLICA_SETS, objects.replica_sets)
        tables.replace(Kind.JOBS, objects.jobs)
        tables.replace(Kind.NODES, objects.nodes)
        tables.replace(Kind.PODS, objects.pods)
        reservations.replace(reserved)
        self._is_read = True


def _store(settings: Settings, inputs: Inputs) -> MetricsStore | None:
    """The store that measures the cluster; that of a cluster file is not looked for. Raises InputError."""
    if inputs.store is not None:
        return inputs.store
    named = named_store(settings, inputs.prometheus)
    if inputs.cluster is not None:
        return named
    if named is None:
        from kube.client.kubernetes_client import check_access

        # A cluster that cannot be read at all is one error, not a store in vain before it.
        check_access(inputs.access.client())
    return store_if_any(settings, inputs.prometheus, inputs.access)


def live_usage(settings: Settings, store: MetricsStore) -> LiveUsage:
    """What the store measures now."""
    # A measurement that does not come soon is of no use any more: the next one is due.
    return LiveUsage(
        store.connect(settings.prometheus.replace(timeout=10, patience=0)),
        settings.prometheus.templates,
        window_seconds=settings.prometheus.step,
        log_source=settings.prometheus.log_source,
        recording_rules=settings.prometheus.recording_rules,
    )
