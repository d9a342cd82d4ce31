"""The scorer as one object: objects, measurements and models go in, scores and explanations come out. For any thread.

One lock guards the tables. What takes long (a model, a day's tables, peaks of all nodes, a self-check) is made from
copies without it and put in place afterwards, so that a score never waits for more than a few milliseconds.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from forecast.arrays import Floats, Ints
from forecast.errors import ForecastError, InputError, UnknownName
from forecast.resources import RESOURCES, resource_index
from forecast.service_key import ServiceKey
from scorer.answers import (
    Explanation,
    HeatMap,
    ModelStatus,
    NodeFigures,
    NodeSummary,
    Scored,
    SelfCheck,
    ServiceSummary,
    Status,
    UsageForecast,
    VirtualAvailability,
)
from scorer.checking import check
from scorer.cluster.changes import Change
from scorer.cluster.decoding import ApiObject, Kind
from scorer.cluster.objects import ANNOTATION_PREFIX, JobInfo, NodeInfo, PodInfo, ReplicaSetInfo
from scorer.degradation import Level, level_of_nodes, level_without_live, widening
from scorer.explaining import explained_nodes, gather_peaks, peaks_before_and_with
from scorer.forecasting import node_usage_forecast, service_usage_forecast
from scorer.live.usage import UsageSource
from scorer.model_watch import LoadedModel
from scorer.options import ScorerOptions
from scorer.overview import Overview, OverviewBuilder, heat_map_of, summary_peaks
from scorer.predicted.capacity import KnownCapacities
from scorer.predicted.horizon import Horizon
from scorer.predicted.node_curves import gather, node_curves
from scorer.predicted.profiles import Profiles
from scorer.predicting import predict
from scorer.published_losses import published_losses
from scorer.scale_out import expected_scale_out
from scorer.scores.capacity import NEUTRAL_SCORE
from scorer.scores.catalogue import check_weights, scores
from scorer.scoring import PodScores, score_pod
from scorer.tracking import LIVE_HALF_LIFE_SLOTS, TrackedCluster

__all__ = ["OPT_OUT_ANNOTATION", "Scorer"]

logger = logging.getLogger(__name__)

OPT_OUT_ANNOTATION = ANNOTATION_PREFIX + "opt-out"
"""A pod with this set to "true" gets the same score on every node: the other schedulers' scores decide alone."""

_LONGEST_WAIT_FOR_MODEL = 60.0

_NODES_AT_ONCE = 250
"""Nodes whose pods are copied in one go: a few milliseconds under the lock."""


@dataclass(frozen=True, slots=True)
class _ModelInUse:
    loaded: LoadedModel
    profiles: Profiles
    capacities: KnownCapacities


class Scorer:
    """Implements `scorer.answers.ScorerApi` and the sink of `scorer.cluster.kubernetes_source`."""

    def __init__(
        self,
        options: ScorerOptions | None = None,
        *,
        usage: UsageSource | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """
        usage : None = nobody measures
        clock : unix seconds
        """
        self.options = options or ScorerOptions()
        self._scores = scores(self.options.parameters)
        check_weights(self.options.weights, self._scores)
        self._clock, self._usage_source = clock, usage
        self._lock = threading.RLock()
        self._cluster = TrackedCluster(self.options, now=clock())
        self._model: _ModelInUse | None = None
        self._refused: str | None = None
        self._model_awaited = False
        self._model_awaited_since: float | None = None  # somebody asked for the status of a cluster that was read
        self._usage_error: str | None = None
        self._overview: Overview | None = None
        self._frozen: Overview | None = None
        self._rebuilding = threading.Lock()  # one rebuild at a time: each needs memory for tables of its own
        self._last_check: SelfCheck | None = None
        # How the state is kept up to date: synced, unix seconds of the last contact, and words for /v1/status.
        self._state_source: Callable[[], tuple[bool, float | None, Mapping[str, str]]] = lambda: (False, None, {})

    # What goes in

    def follow(self, source: Callable[[], tuple[bool, float | None, Mapping[str, str]]]) -> None:
        """Say who keeps the cluster up to date: whether all of it was read, when it was last heard of, and words."""
        self._state_source = source

    def replace(self, kind: Kind, objects: Sequence[ApiObject]) -> None:
        """A complete list of a kind of objects."""
        with self._lock:
            self._cluster.now = self._clock()
            self._cluster.apply(self._cluster.state.replace(kind, objects))

    def put(self, kind: Kind, item: ApiObject) -> None:
        """An object was added or modified."""
        with self._lock:
            self._cluster.now = self._clock()
            self._cluster.apply(self._put(item))

    def delete(self, kind: Kind, item: ApiObject) -> None:
        """An object is gone."""
        with self._lock:
            self._cluster.now = self._clock()
            self._cluster.apply(self._delete(item))

    def install(self, loaded: LoadedModel) -> None:
        """Use a model from now on. Takes seconds; the one before stays in use meanwhile."""
        model = _ModelInUse(loaded, Profiles(loaded.model), KnownCapacities(loaded.model, self.options.capacities))
        self._predict_anew(model)
        logger.info("model in use", extra={"version": loaded.version})

    def expect_model(self) -> None:
        """Somebody will look for a model once the cluster is read: do not be ready before, or for a minute at most."""
        self._model_awaited = True

    def refuse_model(self, reason: str | None) -> None:
        """It was looked for a model: a published one cannot be used; None = all is well."""
        self._refused, self._model_awaited = reason, False

    def measure(self) -> None:
        """Read the usage of all nodes. Errors are kept for the status: what was measured before ages."""
        if self._usage_source is None:
            return
        try:
            measured = self._usage_source.read()
        except ForecastError as error:
            if self._usage_error is None:
                logger.warning("usage cannot be measured", extra={"reason": str(error)})
            self._usage_error = str(error)
            return
        if self._usage_error is not None:
            logger.warning("usage is measured again")  # as visible as what it takes back
        self._usage_error = None
        with self._lock:
            self._cluster.now = self._clock()
            self._cluster.measured(measured)

    def charge_provisionally(self, pod: PodInfo, node: str, seconds: float = 2.0) -> None:
        """The pod will probably be bound to the node: charge it until the watch says so, or the time is over."""
        with self._lock:
            row = self._cluster.state.row_of.get(node)
            if row is not None:
                until = self._clock() + seconds
                self._cluster.charges.charge_provisionally(pod.uid, row, self._cluster.expected_use(pod).amount, until)

    @property
    def synced(self) -> bool:
        """Whether the cluster was read completely at least once."""
        return self._state_source()[0]

    # What has to happen from time to time

    def tick(self) -> None:
        """Let time pass: every second or so."""
        with self._lock:
            self._cluster.tick(self._clock())
            predicted = self._cluster.predicted
            horizon = None if predicted is None else Horizon.at(self._now(), predicted.profiles.model.calendar)
            same_day = predicted is not None and horizon is not None and horizon.today == predicted.horizon.today
            if horizon is not None and same_day:
                self._cluster.set_slot(horizon.slot)
        if self._model is not None and horizon is not None and not same_day:
            self._predict_anew()  # local midnight, or the clock was set

    def share_out_scale_out(self) -> None:
        """Keep room for replicas that autoscaled services are expected to add."""
        with self._lock:
            scale_out, predicted = expected_scale_out(self._cluster), self._cluster.predicted
        load = None if scale_out is None else scale_out.load()
        with self._lock:
            if predicted is not None and predicted is self._cluster.predicted:
                predicted.set_soft_load(load)

    def refresh_overview(self) -> None:
        """Predict the peaks of all nodes anew."""
        with self._lock:
            predicted, state = self._cluster.predicted, self._cluster.state
            rows = np.flatnonzero(state.alive).tolist()
            now = self._now()
        if predicted is None:
            self._overview = None
            return
        builder = OverviewBuilder(predicted.horizon, now)
        fading = predicted.horizon.fading(LIVE_HALF_LIFE_SLOTS)
        for start in range(0, len(rows), _NODES_AT_ONCE):
            with self._lock:
                here = [row for row in rows[start : start + _NODES_AT_ONCE] if predicted.name_of(row)]
                inputs = gather(predicted, here)
            curves = node_curves(
                predicted.profiles,
                predicted.bases,
                inputs,
                predicted.horizon.days,
                fading=fading,
                widen=self._widen(predicted.horizon),
            )
            builder.add(inputs.names, inputs.capacity, curves)
        overview = builder.overview()
        before = self._overview
        if before is not None and before.horizon.today != overview.horizon.today:
            self._frozen = overview
        self._overview = overview

    # What comes out

    def score(
        self, pod: PodInfo, nodes: Sequence[str] | None = None, weights: Mapping[str, float] | None = None
    ) -> Scored:
        """Score a pod on nodes; None = all nodes, None = the configured weights."""
        with self._lock:
            level, reasons = self._level()
            names, at, rows = self._rows(nodes)
            scored = self._score(pod, rows, weights, level)
        total = np.full(len(names), float(np.median(scored.total)) if len(rows) else NEUTRAL_SCORE)
        total[at] = scored.total
        unknown = () if len(at) == len(names) else tuple(np.array(names)[np.setdiff1d(np.arange(len(names)), at)])
        if _opts_out(pod):
            reasons = (*reasons, "the pod has opted out")
        return Scored(names, total, level, reasons, self._version(), scored.weights, unknown)

    def explain(
        self,
        pod: PodInfo,
        nodes: Sequence[str] | None = None,
        weights: Mapping[str, float] | None = None,
        *,
        top: int = 10,
    ) -> Explanation:
        """Score a pod and say why, for the best `top` nodes."""
        if top < 1:
            raise InputError(f"top is {top}: at least 1 node is needed to explain anything")
        with self._lock, self._cluster.without(pod.uid):
            level, reasons = self._level()
            _, _, rows = self._rows(nodes)
            scored = self._score(pod, rows, weights, level)
            order = np.argsort(-scored.total, kind="stable")
            best = order[:top]
            names = [self._cluster.state.names[row] for row in rows[order[: max(top, 2)]]]
            peaks = gather_peaks(self._cluster, rows[best].tolist(), scored.profile)
            ages = self._cluster.now - self._cluster.sampled[rows[best]]
            service = self._cluster.state.service_key(pod)
            known = self._model is not None and self._model.profiles.knows(service)
            runs_on = self._cluster.state.names[seat.node] if (seat := self._cluster.state.seat_of.get(pod.uid)) else ""
            request = self._cluster.expected_use(pod)
            widen = 1.0 if self._cluster.predicted is None else self._widen(self._cluster.predicted.horizon)
        found = [] if peaks is None else peaks_before_and_with(peaks, widen)
        if request.mistake is not None:
            reasons = (*reasons, f"virtual-request of the pod is ignored: {request.mistake}")
        if _opts_out(pod):
            reasons = (*reasons, "the pod has opted out")
        top_two = scored.total[order[:2]]
        return Explanation(
            pod=f"{pod.namespace}/{pod.name}",
            service=str(service),
            service_known=known,
            nodes=explained_nodes(scored, best, names, found, np.asarray(ages), runs_on),
            n_nodes=len(rows),
            runner_up=names[1] if len(order) > 1 else None,
            margin=float(top_two[0] - top_two[1]) if len(order) > 1 else None,
            level=level,
            reasons=reasons,
            model_version=self._version(),
            model_age_seconds=self._model_age(),
            metrics_age_seconds=self._metrics_age(),
            virtual_request={r.name: float(v) for r, v in zip(RESOURCES, request.amount, strict=True)},
            virtual_request_source=request.source,
        )

    def find_pod(self, namespace: str, name: str) -> PodInfo:
        """A pod of the cluster."""
        with self._lock:
            pod = self._cluster.state.find_pod(namespace, name)
            if pod is None:
                there = [
                    f"{p.namespace}/{p.name}" for p in self._cluster.state.pods.values() if p.namespace == namespace
                ]
                raise UnknownName("pod", f"{namespace}/{name}", sorted(there))
        return pod

    def nodes(self) -> tuple[NodeSummary, ...]:
        """All nodes by name."""
        with self._lock:
            state = self._cluster.state
            level, _ = self._level()
            levels = level_of_nodes(level, self._cluster.measured_nodes())
            ages = self._cluster.now - self._cluster.sampled
            rows = sorted(np.flatnonzero(state.alive).tolist(), key=lambda row: state.names[row])
            facts = [
                (state.names[row], int(state.pod_count[row]), state.nodes[row], int(levels[row]), float(ages[row]))
                for row in rows
            ]
        overview = self._overview
        row_of = {} if overview is None else overview.rows()
        summaries = []
        for name, pods, node, node_level, age in facts:
            today, tomorrow = (None, None)
            if overview is not None and name in row_of:
                today, tomorrow = summary_peaks(overview, row_of[name])
            summaries.append(
                NodeSummary(
                    name=name,
                    pods=pods,
                    ready=node is not None and node.ready and not node.unschedulable,
                    level=Level(node_level),
                    measured_seconds_ago=age if np.isfinite(age) else None,
                    today=today,
                    tomorrow=tomorrow,
                )
            )
        return tuple(summaries)

    def services(self) -> tuple[ServiceSummary, ...]:
        """All services that have pods, by name."""
        with self._lock:
            state = self._cluster.state
            seats = state.seats()
            pods = np.bincount(seats.service, minlength=len(state.services))
            found = [(key, int(pods[service])) for key, service in state.service_of.items() if pods[service]]
        profiles = None if self._model is None else self._model.profiles
        return tuple(
            ServiceSummary(
                key=str(key),
                pods=count,
                known=profiles is not None and profiles.knows(key),
                autoscaled=profiles is not None and profiles.autoscaled(key),
            )
            for key, count in sorted(found)
        )

    def heat_map(self, *, resource: str | None = None, top: int = 100) -> HeatMap:
        """The `top` hottest nodes of the coming week; resource None = whichever is highest."""
        if top < 1:
            raise InputError(f"top is {top}: at least 1 node is needed for a heat map")
        if resource is not None:
            resource_index(resource)  # raises UnknownName
        overview = self._overview
        if overview is None:
            return HeatMap(resource, (), (), np.zeros((0, 0)), 0)
        return heat_map_of(overview, resource, top)

    def node_forecast(self, node: str) -> UsageForecast:
        """One node, from two days ago to the end of the horizon."""
        with self._lock:
            state = self._cluster.state
            row = state.row_of.get(node)
            if row is None or state.nodes[row] is None:
                known = sorted(name for name in state.row_of if state.nodes[state.row_of[name]] is not None)
                raise UnknownName("node", node, known)
            info = state.nodes[row]
            level, _ = self._level()
            level = Level(int(level_of_nodes(level, self._cluster.measured_nodes())[row]))
            predicted = self._cluster.predicted
            inputs = None if predicted is None else gather(predicted, [row])
            capacity, pods = self._cluster.capacity[row].copy(), int(state.pod_count[row])
            now = self._now()
        assert info is not None
        widen = 1.0 if predicted is None else self._widen(predicted.horizon)
        names = (info.name, *info.addresses)
        return node_usage_forecast(
            names, pods, capacity, predicted, inputs, now, level, self._version(), widen, self._usage_source
        )

    def service_forecast(self, key: ServiceKey) -> UsageForecast:
        """All pods of one service together."""
        with self._lock:
            state = self._cluster.state
            service = state.service_of.get(key)
            model_knows = self._model is not None and self._model.profiles.knows(key)
            if service is None and not model_knows:
                raise UnknownName("service", str(key), sorted(map(str, state.service_of)))
            pods = [state.pods[uid] for uid, seat in state.seat_of.items() if seat.service == service]
            replicas = 0.0 if service is None else state.replicas(service)
            level, _ = self._level()
            now = self._now()
            requests = (0.0, 0.0)
            if pods:
                requests = (pods[0].requests.get("cpu", 0.0), pods[0].requests.get("memory", 0.0))
        profiles = None if self._model is None else self._model.profiles
        return service_usage_forecast(
            key,
            [pod.name for pod in pods],
            replicas,
            requests,
            profiles,
            now,
            level,
            self._version(),
            self._usage_source,
        )

    def virtual_available(self) -> VirtualAvailability:
        """Load estimates of all nodes."""
        with self._lock:
            state = self._cluster.state
            rows = np.flatnonzero(state.alive)
            return VirtualAvailability(
                nodes=tuple(state.names[row] for row in rows.tolist()),
                resources=tuple(r.name for r in RESOURCES),
                available=self._cluster.virtual_available()[rows],
                capacity=self._cluster.capacity[rows],
                charged=self._cluster.charges.total(state.n_rows)[rows],
                pods_charged=len(self._cluster.charges),
                metrics_age_seconds=self._metrics_age(),
            )

    def node_figures(self) -> NodeFigures:
        """Figures of all nodes, for the metrics endpoint; may be a minute old."""
        available = self.virtual_available()
        with self._lock:
            level, _ = self._level()
            levels = level_of_nodes(level, self._cluster.measured_nodes())
            of_nodes = np.array([levels[self._cluster.state.row_of[name]] for name in available.nodes], dtype=np.int64)
        n, r = len(available.nodes), len(RESOURCES)
        usage, peak = np.full((n, r, 2), np.nan), np.full((n, r, 2, 2), np.nan)
        frozen = np.full((n, r, 2, 2), np.nan)
        for overview, targets in ((self._overview, (usage, peak)), (self._frozen, (None, frozen))):
            if overview is None:
                continue
            row_of = overview.rows()
            at = np.array([row_of.get(name, -1) for name in available.nodes], dtype=np.int64)
            if targets[0] is not None:
                targets[0][at >= 0] = overview.usage[at[at >= 0]]
            targets[1][at >= 0] = overview.peak[at[at >= 0]]
        return NodeFigures(
            nodes=available.nodes,
            resources=available.resources,
            usage=usage,
            peak=peak,
            frozen_peak=frozen,
            available=available.available,
            level=of_nodes,
        )

    def service_peaks(self) -> tuple[tuple[str, ...], tuple[str, ...], Floats]:
        """Services, resources, and (n_services, n_resources, 2) predicted peak of one pod today, 0.5 and 0.95."""
        resources = tuple(r.name for r in RESOURCES)
        model = self._model
        if model is None:
            return (), resources, np.zeros((0, len(RESOURCES), 2))
        with self._lock:
            state = self._cluster.state
            keys = [key for key in state.service_of if key in model.profiles.row_of]
            replicas = np.array([state.replicas(state.service_of[key]) for key in keys])
            today = Horizon.at(self._now(), model.loaded.model.calendar).today
        return tuple(map(str, keys)), resources, model.profiles.peaks(keys, replicas, today)

    def backtest_loss(self) -> Mapping[tuple[str, str], float]:
        """(resource, quantile) -> loss as published with the model; empty without one."""
        if self._model is None:
            return {}
        return published_losses(self._model.loaded.backtest, self._model.loaded.model.info)

    def status(self) -> Status:
        """The state of the scorer."""
        synced, _, words = self._state_source()
        with self._lock:
            awaited = synced and self._awaits_model()
            level, reasons = self._level()
            state = self._cluster.state
            predicted = self._cluster.predicted
            n_nodes, n_pods = int(state.alive.sum()), len(state.pods)
            n_services = len({seat.service for seat in state.seat_of.values()})
            unknown = n_pods if predicted is None else predicted.unknown_pods
            measured = int((self._cluster.measured_nodes() & state.alive).sum())
            now = self._now()
        sources = dict(words)
        if self._usage_source is not None:
            sources["usage"] = self._usage_error or "measured"
        model = None
        if self._model is not None:
            of = self._model.loaded.model
            model = ModelStatus(
                version=self._model.loaded.version,
                trained_until=of.first_day - timedelta(days=1),
                age_seconds=self._model_age() or 0.0,
                services=len(of.services),
                nodes=len(of.nodes),
                time_zone=of.calendar.time_zone,
                refused=self._refused,
            )
        return Status(
            ready=synced and not awaited,
            not_ready_because=(
                "the cluster has not been read completely yet"
                if not synced
                else "the model is being read"
                if awaited
                else None
            ),
            level=level,
            reasons=reasons,
            now=now,
            model=model,
            refused_model=self._refused,
            nodes=n_nodes,
            pods=n_pods,
            services=n_services,
            unknown_service_pods=unknown,
            state_age_seconds=self._state_age(),
            metrics_age_seconds=self._metrics_age(),
            measured_nodes=measured,
            sources=sources,
            last_check=self._last_check,
        )

    def self_check(self) -> SelfCheck:
        """Compare the tables with a rebuild now."""
        self._last_check = check(self._cluster, self._lock, self._now())
        if not self._last_check.sound:
            logger.error("the tables have drifted", extra={"drift": "; ".join(self._last_check.drift[:5])})
        return self._last_check

    # Inside

    def _put(self, item: ApiObject) -> list[Change]:
        state = self._cluster.state
        match item:
            case NodeInfo():
                return state.put_node(item)
            case PodInfo():
                return state.put_pod(item)
            case ReplicaSetInfo():
                return state.put_replica_set(item)
            case JobInfo():
                return state.put_job(item)

    def _delete(self, item: ApiObject) -> list[Change]:
        state = self._cluster.state
        match item:
            case NodeInfo():
                return state.delete_node(item.name)
            case PodInfo():
                return state.delete_pod(item.uid)
            case ReplicaSetInfo():
                return state.delete_replica_set(item.uid)
            case JobInfo():
                return state.delete_job(item.uid)

    def _awaits_model(self) -> bool:
        if not self._model_awaited:
            return False
        if self._model_awaited_since is None:
            self._model_awaited_since = self._clock()
        return 0 <= self._clock() - self._model_awaited_since < _LONGEST_WAIT_FOR_MODEL

    def _predict_anew(self, new: _ModelInUse | None = None) -> None:
        """Make the tables anew, by a new model or by the one in use."""
        with self._rebuilding:
            # Looked up only now: another thread may have put a newer model in place while this one waited.
            model = new or self._model
            if model is None:
                return
            with self._lock:
                snapshot = self._cluster.snapshot()
            now = datetime.fromtimestamp(self._clock(), UTC)
            predicted = predict(model.profiles, model.capacities, snapshot, now)
            with self._lock:
                self._cluster.catch_up(predicted, snapshot)
                self._model = model
                self._cluster.install(predicted, model.capacities)
        self.share_out_scale_out()

    def _score(self, pod: PodInfo, rows: Ints, weights: Mapping[str, float] | None, level: Level) -> PodScores:
        wanted = self.options.weights if weights is None else weights
        if weights is not None:
            check_weights(weights, self._scores)
        level = Level.NEUTRAL if _opts_out(pod) else level
        return score_pod(self._cluster, pod, rows, wanted, self._scores, level)

    def _rows(self, nodes: Sequence[str] | None) -> tuple[Sequence[str], Ints, Ints]:
        """Names asked for, positions among them of nodes that are known, and their rows."""
        state = self._cluster.state
        if nodes is None:
            rows = np.flatnonzero(state.alive)
            all_names = state.names
            return [all_names[row] for row in rows.tolist()], np.arange(len(rows)), rows
        row_of = state.row_of
        found = np.array([row_of.get(name, -1) for name in nodes], dtype=np.int64)
        there = found >= 0
        there[there] = state.alive[found[there]]
        at = np.flatnonzero(there)
        return nodes, at, found[at]

    def _level(self) -> tuple[Level, tuple[str, ...]]:
        """The level of the cluster as a whole, and why it is not FRESH."""
        ladder = self.options.ladder
        age, state_age = self._model_age(), self._state_age()
        level = level_without_live(age, 0.0 if state_age is None else state_age, ladder)
        reasons = []
        if level == Level.NEUTRAL:
            reasons.append(f"the API server has not been heard of for {state_age or 0:.0f} s")
        if age is None:
            reasons.append(f"no model: {self._refused}" if self._refused else "no model has been published")
        elif age > ladder.oldest_model:
            reasons.append(f"the model is {age / 86_400:.0f} days old, more than {ladder.oldest_model / 86_400:.0f}")
        elif age > ladder.fresh_model:
            reasons.append(f"the model is {age / 3600:.0f} hours old")
        if age is not None and self._refused:
            reasons.append(f"a newer model is refused: {self._refused}")
        measured = self._cluster.measured_nodes()[self._cluster.state.alive]
        if not measured.all() or not len(measured):
            why = f": {self._usage_error}" if self._usage_error else ""
            reasons.append(f"usage is measured on {int(measured.sum())} of {len(measured)} nodes{why}")
        if level == Level.NO_LIVE_CORRECTION and measured.any() and measured.mean() >= 0.5:
            level = Level.FRESH
        return level, tuple(reasons)

    def _now(self) -> datetime:
        zone = UTC if self._model is None else self._model.loaded.model.calendar.zone
        return datetime.fromtimestamp(self._clock(), zone)

    def _version(self) -> str | None:
        return None if self._model is None else self._model.loaded.version

    def _model_age(self) -> float | None:
        """Seconds since midnight of the first day the model was made for; 0 for one made for the future."""
        if self._model is None:
            return None
        model = self._model.loaded.model
        return max(0.0, self._clock() - model.calendar.midnight(model.first_day).timestamp())

    def _state_age(self) -> float | None:
        _, contact, _ = self._state_source()
        return None if contact is None else max(0.0, self._clock() - contact)

    def _metrics_age(self) -> float | None:
        """Age of the newest measurement."""
        sampled = self._cluster.sampled
        return float(self._clock() - np.nanmax(sampled)) if np.isfinite(sampled).any() else None

    def _widen(self, horizon: Horizon) -> float:
        """Factor on the bounds: twice as wide after a week, as the replay measures old models."""
        if self._model is None:
            return 1.0
        return widening((horizon.today - self._model.loaded.model.first_day).days)


def _opts_out(pod: PodInfo) -> bool:
    return pod.annotations.get(OPT_OUT_ANNOTATION, "").lower() == "true"
