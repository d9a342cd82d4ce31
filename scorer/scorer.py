"""The scorer as one object: scores, explanations, forecasts and figures from the live tables. For any thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from itertools import repeat

import numpy as np
from msgspec.structs import replace
from prometheus_client.registry import Collector

from base.arrays import Floats, Ints
from base.errors import InputError, UnknownName
from cluster.assuming_cluster import AssumingCluster
from cluster.degradation import Level, level_of_nodes
from cluster.live.usage import UsageSource
from cluster.live_tables import LiveTables
from cluster.predicted.node_load import load_inputs
from cluster.predicted.pod_bounds import bounded_requests
from cluster.predicted.unknown_capacity import NEUTRAL_SCORE
from cluster.state_source import StateSource
from cluster.table_check import SelfCheck
from cluster.tracking import TrackedCluster
from cluster.usable_nodes import NodeUsability
from forecast.hidden_demand import HiddenDemand
from forecast.resources import RESOURCES, resource_index
from forecast.service_key import ServiceKey
from kube.objects.objects import PodInfo
from scorer import figures
from scorer.answers import (
    Explanation,
    HeatMap,
    NodeReport,
    Nodes,
    Peak,
    ScorerStatus,
    ServiceSummary,
    UsageForecast,
    VirtualAvailability,
    summary_of,
)
from scorer.explaining import explained_nodes, listing, peaks_before_and_with, without_and_with
from scorer.forecasting import node_usage_forecast, service_usage_forecast
from scorer.judgement import Judge, not_judged
from scorer.node_list import node_list, peaks_with_pods
from scorer.node_report import node_report
from scorer.options import ScorerOptions
from scorer.overview import heat_map_of
from scorer.scorer_api import NodeFigures, Scored
from scorer.scoring import PodScores, neutral_reasons, neutral_scores, score_pod
from scorer.scoring_policy import OneScoringPolicy, ScoringPolicies, ScoringPolicy, opts_out, scoring_policy


class Scorer:
    """Implements `scorer.scorer_api.ScorerApi` on the tables, and by them the sink of a Kubernetes source."""

    def __init__(
        self,
        options: ScorerOptions | None = None,
        *,
        usage: UsageSource | None = None,
        policies: ScoringPolicies | None = None,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] | None = None,
        source: StateSource | None = None,
        usable_nodes: Callable[[TrackedCluster], NodeUsability] | None = None,
    ) -> None:
        """policies: which pod is scored how; None = all as the options say. See LiveTables for the others."""
        self.options = options or ScorerOptions()
        self.tables = LiveTables(
            self.options, usage=usage, clock=clock, steady=steady, source=source, usable_nodes=usable_nodes
        )
        self._policies = policies or OneScoringPolicy(scoring_policy(self.options))

    def score(
        self,
        pod: PodInfo,
        nodes: Sequence[str] | None = None,
        weights: Mapping[str, float] | None = None,
        policy: ScoringPolicy | None = None,
    ) -> Scored:
        """Score a pod on nodes; None = all nodes, the weights of its policy, the policy that is chosen for it.

        Who asks about a pod again has not bound it: that it was assumed to be somewhere is forgotten.
        """
        self.tables.forget(pod.uid)
        with self.tables.reading() as cluster, cluster.without(pod.uid):
            level, reasons = self.tables.level()
            names, at, rows = _rows(cluster, nodes)
            used = (policy or self._policies.scoring(pod).policy).weighing(weights)
            scored = _score(cluster, pod, rows, used, level)
            version = None if scored.profile is None else self.tables.version
            reasons = _reasons(cluster, pod, used, level, reasons)
        total, ranking = (_spread_out(of, at, len(names)) for of in (scored.total, scored.ranking))
        unknown = _without(names, at)
        return Scored(names, total, ranking, level, reasons, version, scored.weights, unknown, used.name)

    def explain(
        self,
        pod: PodInfo,
        nodes: Sequence[str] | None = None,
        weights: Mapping[str, float] | None = None,
        *,
        top: int = 10,
        judge: Judge | None = None,
    ) -> Explanation:
        """Score a pod and say why: for the best `top` nodes where it may go, and for the one where it is.

        nodes : only these, also where the pod may not go; None = all
        judge : of the component that places the pod, by which nodes are ordered; None = by the scores
        """
        if top < 1:
            raise InputError(f"top is {top}: at least 1 node is needed to explain anything")
        with self.tables.reading() as cluster, cluster.without(pod.uid):
            level, reasons = self.tables.level()
            asked, at, rows = _rows(cluster, nodes)
            chosen = self._policies.scoring(pod)
            used = chosen.policy.weighing(weights)
            scored = _score(cluster, pod, rows, used, level)
            reasons = _reasons(cluster, pod, used, level, reasons)
            judgement = None if judge is None else judge(pod)
            order = np.argsort(-scored.total, kind="stable")
            in_order = [cluster.state.names[row] for row in rows[order].tolist()]
            if judgement is not None:
                judged = judgement.order(in_order)
                order, in_order = order[judged], [in_order[at] for at in judged]
            seat = cluster.state.seat_of.get(pod.uid)
            sits_on = "" if seat is None else cluster.state.names[seat.node]
            listed = listing(in_order, judgement, sits_on, top, asked_for=nodes is not None)
            best = order[list(listed.positions)]
            widen = 1.0 if cluster.predicted is None else self.tables.widen(cluster.predicted.horizon)
            load = without_and_with(cluster, rows[best].tolist(), scored.profile, widen)
            ages = cluster.now - cluster.sampled[rows[best]]
            service = cluster.state.service_key(pod)
            known = self.tables.model is not None and self.tables.model.profiles.knows(service)
            reasons = (*reasons, *_hidden(cluster, service))
            request = cluster.expected_use(pod)
            version = None if scored.profile is None else self.tables.version
            model_age = self.tables.model_age()
            assumed = np.asarray(cluster.capacity_assumed[rows].any(axis=0))
        found = [] if load is None else peaks_before_and_with(load)
        if request.mistake is not None:
            reasons = (*reasons, f"virtual-request of the pod is ignored: {request.mistake}")
        totals = dict(zip(in_order[:2], np.round(scored.total[order[:2]], 4).tolist(), strict=True))  # as shown
        if judgement is not None:
            totals = dict(judgement.totals)
        names = [in_order[at] for at in listed.positions]
        explained = explained_nodes(scored, best, names, found, listed.ranks, np.asarray(ages), sits_on, judgement)
        return Explanation(
            pod=f"{pod.namespace}/{pod.name}",
            service=str(service),
            now=self.tables.now(),
            service_known=known,
            nodes=explained,
            n_nodes=len(rows),
            runner_up=listed.runner_up,
            margin=listed.margin(totals),
            level=level,
            reasons=reasons,
            model_version=version,
            model_age_seconds=model_age,
            metrics_age_seconds=self.tables.metrics_age(),
            virtual_request={r.name: float(v) for r, v in zip(RESOURCES, request.amount, strict=True)},
            virtual_request_source=request.source,
            unknown_nodes=_without(asked, at),
            policy=chosen.policy.name,
            policy_because=chosen.because,
            judgement=None if judgement is None else summary_of(judgement, explained),
            not_applied=not_judged(pod) if judgement is None else judgement.not_applied,
            assumed_capacities=tuple(r.name for r, is_assumed in zip(RESOURCES, assumed, strict=True) if is_assumed),
        )

    def find_pod(self, namespace: str, name: str) -> PodInfo:
        """A pod of the cluster."""
        with self.tables.reading() as cluster:
            pod = cluster.state.find_pod(namespace, name)
            if pod is None:
                there = [f"{p.namespace}/{p.name}" for p in cluster.state.pods.values() if p.namespace == namespace]
                raise UnknownName("pod", f"{namespace}/{name}", sorted(there))
        return pod

    def nodes(self, *, by_peak: bool = False, top: int | None = None, day: date | None = None) -> Nodes:
        """List nodes by name, or the hottest first.

        top : most nodes; None = all
        day : local day of the model, of the peaks that nodes are sorted by; None = the next 24 hours
        Raises InputError for a day outside the forecast.
        """
        return node_list(self.tables, by_peak=by_peak, top=top, day=day)

    def expected_peak(self, pod: PodInfo, node: str) -> Peak | None:
        """Return the peak of a node in the next 24 hours, with the pod on it; None = it is not known."""
        return self.expected_peaks([(pod, node)])[0]

    def expected_peaks(self, placed: Sequence[tuple[PodInfo, str]]) -> list[Peak | None]:
        """Return the peak of each node in the next 24 hours, with its pod on it; None = it is not known."""
        return peaks_with_pods(self.tables, placed)

    def node_report(self, node: str, *, day: date | None = None, top: int = 5) -> NodeReport:
        """Report what makes the peak of a node on a day, and what helps."""
        return node_report(self.tables, self._policies, node, day=day, top=top)

    def services(self) -> tuple[ServiceSummary, ...]:
        """All services that have pods, by name."""
        with self.tables.reading() as cluster:
            state = cluster.state
            seats = state.seats()
            pods = np.bincount(seats.service, minlength=len(state.services))
            found = [(key, int(pods[service])) for key, service in state.service_of.items() if pods[service]]
        profiles = None if self.tables.model is None else self.tables.model.profiles
        return tuple(
            ServiceSummary(
                namespace=key.namespace,
                kind=key.kind,
                name=key.name,
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
        overview = self.tables.overview
        if overview is None:
            return HeatMap(resource, (), (), np.zeros((0, 0)), 0)
        return heat_map_of(overview, resource, top)

    def node_forecast(self, node: str) -> UsageForecast:
        """One node, from two days ago to the end of the horizon."""
        with self.tables.reading() as cluster:
            state = cluster.state
            row = state.row_of.get(node)
            if row is None or state.nodes[row] is None:
                known = sorted(name for name in state.row_of if state.nodes[state.row_of[name]] is not None)
                raise UnknownName("node", node, known)
            info = state.nodes[row]
            level, _ = self.tables.level()
            level = Level(int(level_of_nodes(level, cluster.measured_nodes())[row]))
            predicted = cluster.predicted
            load = None
            if predicted is not None:
                load = load_inputs(predicted, [row], widen=self.tables.widen(predicted.horizon))
            capacity, assumed = cluster.capacity[row].copy(), cluster.capacity_assumed[row].copy()
            pods = int(state.pod_count[row])
            now = self.tables.now()
        assert info is not None
        return node_usage_forecast(
            (info.name, *info.addresses),
            pods,
            capacity,
            assumed,
            load,
            now,
            level,
            self.tables.version,
            self.tables.usage_source,
        )

    def service_forecast(self, key: ServiceKey) -> UsageForecast:
        """All pods of one service together."""
        with self.tables.reading() as cluster:
            state = cluster.state
            service = state.service_of.get(key)
            model_knows = self.tables.model is not None and self.tables.model.profiles.knows(key)
            if service is None and not model_knows:
                raise UnknownName("service", str(key), sorted(map(str, state.service_of)))
            pods = [state.pods[uid] for uid, seat in state.seat_of.items() if seat.service == service]
            replicas = 0.0 if service is None else state.replicas(service)
            level, _ = self.tables.level()
            now = self.tables.now()
            requests = (0.0, 0.0)
            remarks: tuple[str, ...] = ()
            if pods:
                chosen = self._policies.scoring(pods[0])
                if chosen.because:
                    remarks = (f"policy {chosen.policy.name} ({chosen.because})",)
                requests = bounded_requests(pods[0].requests, cluster.most_of(pods[0]))
        profiles = None if self.tables.model is None else self.tables.model.profiles
        forecast = service_usage_forecast(
            key,
            [pod.name for pod in pods],
            replicas,
            requests,
            profiles,
            now,
            level,
            self.tables.version,
            self.tables.usage_source,
        )
        return replace(forecast, notes=(*forecast.notes, *remarks))

    def charge_provisionally(self, pod: PodInfo, node: str, seconds: float) -> bool:
        return self.tables.charge_provisionally(pod, node, seconds)

    def virtual_available(self) -> VirtualAvailability:
        """Return load estimates of all nodes."""
        return figures.virtual_available(self.tables)

    def node_figures(self) -> NodeFigures:
        """Return figures of all nodes for the metrics endpoint; may be a minute old."""
        return figures.node_figures(self.tables)

    def service_peaks(self) -> tuple[tuple[str, ...], tuple[str, ...], Floats]:
        """Return services, resources, and the predicted peak of one pod today, (n_services, n_resources, 2)."""
        return figures.service_peaks(self.tables)

    def ages(self) -> tuple[float | None, float | None]:
        """Return seconds since the model was made and since the newest measurement; None = there is none."""
        with self.tables.reading():
            return self.tables.model_age(), self.tables.metrics_age()

    def service_of(self, pod: PodInfo) -> ServiceKey:
        """Return the service a pod belongs to, whether or not it is in the cluster."""
        with self.tables.reading() as cluster:
            return cluster.state.service_key(pod)

    def backtest_loss(self) -> Mapping[tuple[str, str], float]:
        """Return the loss published with the model by (resource, quantile); empty without a model."""
        return figures.backtest_loss(self.tables)

    def status(self) -> ScorerStatus:
        """Return the state of the scorer."""
        return figures.status(self.tables)

    def lock_collector(self) -> Collector:
        return self.tables.lock_collector()

    def self_check(self) -> SelfCheck:
        """Compare the tables with a rebuild now."""
        return self.tables.self_check()


def _score(cluster: AssumingCluster, pod: PodInfo, rows: Ints, policy: ScoringPolicy, level: Level) -> PodScores:
    return score_pod(cluster, pod, rows, policy, Level.NEUTRAL if opts_out(pod) else level)


def _reasons(
    cluster: AssumingCluster, pod: PodInfo, policy: ScoringPolicy, level: Level, reasons: tuple[str, ...]
) -> tuple[str, ...]:
    """Why scores of this pod are not made from all that they should be made from. reasons: of the level."""
    if opts_out(pod):
        return (*reasons, "the pod has opted out")
    return (*reasons, *neutral_reasons(policy.weights, neutral_scores(cluster, level)))


def _hidden(cluster: AssumingCluster, service: ServiceKey) -> Iterator[str]:
    """Why the service of a pod may need more than is forecast of it."""
    if cluster.predicted is not None and (known := cluster.predicted.profiles.known_as(service)) is not None:
        yield from HiddenDemand.of_info(cluster.predicted.profiles.model.info, (known,)).words(0)


def _rows(cluster: AssumingCluster, nodes: Sequence[str] | None) -> tuple[Sequence[str], Ints, Ints]:
    """Names asked for, positions among them of nodes that are known, and their rows."""
    state = cluster.state
    if nodes is None:
        rows = np.flatnonzero(state.alive)
        all_names = state.names
        return [all_names[row] for row in rows.tolist()], np.arange(len(rows)), rows
    row_of = state.row_of
    found = np.fromiter(map(row_of.get, nodes, repeat(-1)), dtype=np.int64, count=len(nodes))
    there = found >= 0
    there[there] = state.alive[found[there]]
    if there.all():
        return nodes, np.arange(len(found)), found
    at = np.flatnonzero(there)
    return nodes, at, found[at]


def _spread_out(of_known: Floats, at: Ints, n_nodes: int) -> Floats:
    """Values of the known nodes in their places, (n_nodes,); the others get the median."""
    if len(of_known) == n_nodes:
        return of_known
    values = np.full(n_nodes, float(np.median(of_known)) if len(of_known) else NEUTRAL_SCORE)
    values[at] = of_known
    return values


def _without(names: Sequence[str], at: Ints) -> tuple[str, ...]:
    """The names but those at some positions."""
    if len(at) == len(names):
        return ()
    left_out = set(at.tolist())
    return tuple(name for position, name in enumerate(names) if position not in left_out)
