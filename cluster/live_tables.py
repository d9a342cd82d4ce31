"""The live tables behind one lock, and everything that changes them: objects, measurements, models, and time.

Long work (the tables of a model or of a day, peaks of all nodes, a self-check) runs on copies without the lock, and its
result is put in place afterwards, so that no request waits for it.
"""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
from prometheus_client.registry import Collector

from base.errors import ForecastError
from cluster.assuming_cluster import AssumingCluster
from cluster.degradation import Level, level_and_reasons, widening
from cluster.follower import Follower
from cluster.live.usage import UsageSource
from cluster.model_watch import LoadedModel
from cluster.monotonic_time import MonotonicTime
from cluster.options import TableOptions
from cluster.overview import Overview, OverviewBuilder
from cluster.predicted.horizon import Horizon
from cluster.predicted.node_capacity import CapacityLog, KnownCapacities
from cluster.predicted.node_curves import gather
from cluster.predicted.node_load import load_inputs
from cluster.predicted.pod_profiles import Profiles
from cluster.scale_out import expected_scale_out
from cluster.state_source import StateSource
from cluster.table_check import SelfCheck, check
from cluster.tables_anew import predict
from cluster.timed_lock import LockCollector, TimedLock
from cluster.tracking import TrackedCluster
from cluster.usable_nodes import NodeUsability
from forecast.assumed_capacity import capacity_gaps, resources_measured
from forecast.calendar import SLOTS_PER_DAY
from kube.decoding.decoding import ApiObject, Kind
from kube.objects.kubernetes_version import KubernetesVersion
from kube.objects.objects import PodInfo

logger = logging.getLogger(__name__)

_LONGEST_WAIT_FOR_MODEL = 60.0
_TWO_DAYS = slice(0, 2 * SLOTS_PER_DAY)
_NODES_AT_ONCE = 250
"""Nodes whose pods are copied in one go: a few milliseconds under the lock."""


@dataclass(frozen=True, slots=True)
class ModelInUse:
    """A model and what is made of it once. due: unix seconds of midnight of the first day that it was made for."""

    loaded: LoadedModel
    profiles: Profiles
    capacities: KnownCapacities
    due: float


class LiveTables:
    """The sink of `kube.client.kubernetes_source`, and the upkeep that `scorer.background` does now and then."""

    def __init__(
        self,
        options: TableOptions | None = None,
        *,
        usage: UsageSource | None = None,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] | None = None,
        source: StateSource | None = None,
        usable_nodes: Callable[[TrackedCluster], NodeUsability] | None = None,
    ) -> None:
        """
        usage  : None = usage is not measured
        clock  : unix seconds
        steady : seconds that pass evenly however the clock jumps, by which charges end; None = those of `clock`
        source : keeps the state up to date; None = the cluster is never read completely
        usable_nodes : see TrackedCluster
        """
        self.options, self.source = options or TableOptions(), source or StateSource()
        self._clock, self.usage_source = clock, usage
        own_time = None if steady is None else MonotonicTime(clock, steady)
        self._cluster = AssumingCluster(self.options, now=clock(), time=own_time, usable_nodes=usable_nodes)
        self._lock = TimedLock(self._cluster)
        self.model: ModelInUse | None = None
        self.refused: str | None = None
        self._model_awaited = False
        self._model_awaited_since: float | None = None  # first status request after the cluster was read
        self.usage_error: str | None = None
        self.overview: Overview | None = None
        self.frozen_overview: Overview | None = None
        self._rebuilding = threading.Lock()  # one rebuild at a time: each needs memory for tables of its own
        self._rebuild_wanted = False
        self._refreshing = threading.Lock()
        self.last_check: SelfCheck | None = None
        self._capacity_log = CapacityLog()
        self._followers: dict[Kind, Follower] = {}
        self._attached: list[Follower] = [self._cluster.observed_runs, self._cluster.usable_nodes]
        self._followers_wrong = False

    # What goes in

    def follow_version(self, version: KubernetesVersion) -> None:
        """The API server is of this version: its rules hold from now on."""
        with self._lock:
            self._cluster.state.version = version

    def attach(self, kinds: Collection[Kind], follower: Follower) -> None:
        """Let further tables follow the cluster under the same lock; kinds: objects that only they need."""
        with self._lock:
            self._cluster.listeners.append(follower.apply)
            self._attached.append(follower)
            self._followers.update(dict.fromkeys(kinds, follower))

    @property
    def clock(self) -> Callable[[], float]:
        """Unix seconds by the clock of the tables, which `--at` sets."""
        return self._clock

    def lock_collector(self) -> Collector:
        """For /metrics: how long the lock is waited for and held."""
        return LockCollector(self._lock)

    def reading(self) -> AbstractContextManager[AssumingCluster]:
        """Hold the tables unchanged: for a few milliseconds at most."""
        return self._lock

    @contextmanager
    def changing(self) -> Iterator[AssumingCluster]:
        """Hold the tables for a caller that assumes pods in them. If a table cannot follow, all are made anew."""
        with self._changing():
            yield self._cluster

    def replace(self, kind: Kind, objects: Sequence[ApiObject]) -> None:
        """A complete list of a kind of objects."""
        if (follower := self._followers.get(kind)) is not None:
            with self._lock:
                follower.replace(kind, objects)
            return
        if kind is Kind.PODS:
            pods = [one for one in objects if isinstance(one, PodInfo)]
            with self._changing():
                self._cluster.replace_pods(pods)
        else:
            with self._changing():
                self._cluster.apply(self._cluster.state.replace(kind, objects))

    def put(self, kind: Kind, item: ApiObject) -> None:
        """An object was added or modified."""
        if (follower := self._followers.get(kind)) is not None:
            with self._lock:
                follower.put(kind, item)
            return
        with self._changing():
            self._cluster.put(item)

    def delete(self, kind: Kind, item: ApiObject) -> None:
        """An object is gone."""
        if (follower := self._followers.get(kind)) is not None:
            with self._lock:
                follower.delete(kind, item)
            return
        with self._changing():
            self._cluster.delete(item)

    def install(self, loaded: LoadedModel) -> None:
        """Use a model from now on. Takes seconds; the one before stays in use meanwhile."""
        due = loaded.model.calendar.midnight(loaded.model.first_day).timestamp()
        model = ModelInUse(loaded, Profiles(loaded.model), KnownCapacities(loaded.model, self.options.capacities), due)
        self._predict_anew(model)
        self.share_out_scale_out()
        logger.info("model in use", extra={"version": loaded.version})
        with self._lock:
            gaps = capacity_gaps(self._cluster.capacity[self._cluster.state.alive], resources_measured(loaded.model))
        self._capacity_log.tell_gaps(gaps)

    def expect_model(self) -> None:
        """Announce a model: until it was looked for once, the scorer is not ready, for a minute at most."""
        with self._lock:
            self._model_awaited = True

    def refuse_model(self, reason: str | None) -> None:
        """It was looked for a model: a published one cannot be used; None = all is well."""
        with self._lock:
            self.refused, self._model_awaited = reason, False

    def measure(self) -> None:
        """Read the usage of all nodes. Errors are kept for the status: what was measured before ages."""
        if self.usage_source is None:
            return
        try:
            measured = self.usage_source.read()
        except ForecastError as error:
            if self.usage_error is None:
                logger.warning("usage cannot be measured", extra={"reason": str(error)})
            with self._lock:
                self.usage_error = str(error)
            return
        problem = None if len(measured.nodes) else "the server knows no node"
        if problem is None and self.usage_error is not None:
            logger.warning("usage is measured again")  # as visible as what it takes back
        elif problem is not None and self.usage_error is None:
            logger.warning("usage cannot be measured", extra={"reason": problem})
        with self._lock:
            self.usage_error = problem
            self._cluster.now = self._clock()
            self._cluster.measured(measured)

    def charge_provisionally(self, pod: PodInfo, node: str, seconds: float) -> bool:
        """The pod will probably be bound to the node: reckon with it until the watch says so, or the time is over.

        Returns whether there is such a node.
        """
        with self._changing():
            row = self._cluster.state.row_of.get(node)
            if row is not None:
                self._cluster.charge(pod, node, self._clock() + seconds)
            return row is not None

    def forget(self, uid: str) -> None:
        """The pod is not to be reckoned with where it was charged; nothing if it is bound, or was not charged."""
        with self._lock:
            if uid in self._cluster.assumed:
                with self._changing():
                    self._cluster.forget(uid)

    @property
    def synced(self) -> bool:
        """Whether the cluster was read completely at least once."""
        return self.source.state()[0]

    # What has to happen from time to time

    def tick(self) -> None:
        """Let time pass: every second or so."""
        with self._changing():
            self._cluster.tick(self._clock())
            self._capacity_log.tell_unread(self._cluster.unread_capacities())
            self._capacity_log.tell_beyond(self._cluster.beyond_nodes())
            predicted = self._cluster.predicted
            if predicted is None:
                return
            horizon = Horizon.at(self.now(), predicted.profiles.model.calendar)
            if horizon.today == predicted.horizon.today:
                self._cluster.set_slot(horizon.slot)
            else:
                self._rebuild_wanted = True  # local midnight, or the clock was set

    def rebuild_if_needed(self) -> None:
        """Make the tables anew where they are those of another day, or could not follow a change. Takes seconds."""
        with self._lock:
            is_wanted, self._rebuild_wanted = self._rebuild_wanted, False
        if not is_wanted:
            return
        try:
            self._rebuild_followers()
            self._predict_anew()
        except BaseException:
            with self._lock:
                self._rebuild_wanted = True
            raise
        self.share_out_scale_out()
        self.refresh_overview()

    def _rebuild_followers(self) -> None:
        with self._lock:
            if self._followers_wrong:
                for follower in self._attached:
                    follower.rebuild()
                self._followers_wrong = False

    def share_out_scale_out(self) -> None:
        """Keep room for replicas that autoscaled services are expected to add."""
        with self._lock:
            scale_out, predicted = expected_scale_out(self._cluster), self._cluster.predicted
        load = None if scale_out is None else scale_out.load()  # takes seconds in a large cluster
        with self._lock:
            if predicted is not None and predicted is self._cluster.predicted:
                predicted.set_soft_load(load)

    def refresh_overview(self) -> None:
        """Predict the peaks of all nodes anew."""
        with self._refreshing:  # two at once would end in any order
            self._refresh_overview()

    def _refresh_overview(self) -> None:
        with self._lock:
            predicted, state = self._cluster.predicted, self._cluster.state
            rows = np.flatnonzero(state.alive).tolist()
            now = self.now()
        if predicted is None:
            self.overview = None
            return
        believes = predicted.believes  # people see pods where they sit; what a shadow has elsewhere has its own series
        builder, widen = OverviewBuilder(predicted.horizon, now), self.widen(predicted.horizon)
        for start in range(0, len(rows), _NODES_AT_ONCE):
            with self._lock:
                here = [row for row in rows[start : start + _NODES_AT_ONCE] if predicted.name_of(row)]
                load = load_inputs(predicted, here, widen=widen)
                shadow = replace(load, nodes=gather(predicted, here)) if believes else None
            builder.add(load, None if shadow is None else shadow.curves(_TWO_DAYS))
        overview = builder.overview()
        with self._lock:
            if predicted is not self._cluster.predicted:
                return  # other tables are in place, and are looked through next
            before, self.overview = self.overview, overview
            if before is not None and before.horizon.today != overview.horizon.today:
                self.frozen_overview = overview

    def self_check(self) -> SelfCheck:
        """Compare the tables with a rebuild now."""
        found = check(self._lock, self.now())
        with self._lock:
            self.last_check = found
            if not found.sound:
                self._rebuild_wanted = True  # which mends the predicted load, if it is that
        if not found.sound:
            logger.error("the tables have drifted", extra={"drift": "; ".join(found.drift[:5])})
        return found

    # Inside

    def awaits_model(self) -> bool:
        now = self._clock()
        with self._lock:
            if not self._model_awaited:
                return False
            if self._model_awaited_since is None:
                self._model_awaited_since = now
            return 0 <= now - self._model_awaited_since < _LONGEST_WAIT_FOR_MODEL

    def _predict_anew(self, new: ModelInUse | None = None) -> None:
        """Make the tables anew, by a new model or by the one in use."""
        with self._rebuilding:
            # Looked up only now: another thread may have put a newer model in place while this one waited.
            model = new or self.model
            if model is None:
                return
            with self._lock:
                snapshot = self._cluster.snapshot(model.profiles)
            now = datetime.fromtimestamp(self._clock(), UTC)
            predicted = predict(model.profiles, model.capacities, snapshot, now)
            before = self._cluster.predicted
            with self._lock:
                self._cluster.catch_up(predicted, snapshot)
                self._cluster.install(predicted, model.capacities, snapshot)
                self.model = model
            del before  # a hundred thousand objects, freed outside the lock
            # What is long-lived now need not be searched for cycles again: that stops every thread for seconds.
            gc.freeze()

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Tables change inside, under the lock; when one of them cannot follow, all are made anew."""
        with self._lock:
            self._cluster.now = self._clock()
            try:
                yield
            except BaseException:
                self._rebuild_wanted = self._followers_wrong = True
                raise

    def level(self) -> tuple[Level, tuple[str, ...]]:
        """The rung of the degradation ladder of the cluster as a whole, and why it is not FRESH; under the lock."""
        return level_and_reasons(
            self.options.ladder,
            model_age=self.model_age(),
            refused=self.refused,
            state_age=self.state_age(),
            measured=self._cluster.measured_nodes()[self._cluster.state.alive],
            usage_error=self.usage_error,
        )

    def now(self) -> datetime:
        zone = UTC if self.model is None else self.model.loaded.model.calendar.zone
        return datetime.fromtimestamp(self._clock(), zone)

    @property
    def version(self) -> str | None:
        """Version of the model in use; None without one."""
        return None if self.model is None else self.model.loaded.version

    def model_age(self) -> float | None:
        """Seconds since midnight of the first day the model was made for; 0 for one made for the future."""
        return None if self.model is None else max(0.0, self._clock() - self.model.due)

    def state_age(self) -> float | None:
        _, contact, _ = self.source.state()
        return None if contact is None else max(0.0, self._clock() - contact)

    def metrics_age(self) -> float | None:
        """Age of the newest measurement."""
        newest = float(np.fmax.reduce(self._cluster.sampled, initial=-np.inf))
        return max(0.0, self._clock() - newest) if np.isfinite(newest) else None

    def widen(self, horizon: Horizon) -> float:
        """Factor on the bounds: twice as wide after a week, as the replay measures old models."""
        if self.model is None:
            return 1.0
        return widening((horizon.today - self.model.loaded.model.first_day).days)
