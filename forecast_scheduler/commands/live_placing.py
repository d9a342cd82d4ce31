"""A scorer with everything that kube-scheduler's filters need from the cluster, to find where a pod could go."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from extender.points import points_of, shortened
from forecast_scheduler.commands.scorer.scorer_setup import Inputs, prepare_scorer
from forecast_scheduler.settings.document import Settings
from forecast_scheduler.settings.feature_options import extender_options
from kube.decoding.decoding import Kind
from kube.objects.objects import PodInfo
from placement.feasibility import Feasibility, feasibility, verdict
from placement.filters.catalogue import STANDARD_FILTERS, kinds_read, standard_filters
from placement.filters.filter import ClusterView, Filter
from placement.filters.node_resources_fit import NodeResourcesFit
from placement.index.index import INDEXED_KINDS, PlacementIndex
from placement.node_rules import NodeRules, node_rules
from placement.policies.policy import ChosenPolicy, Policy
from placement.policies.provider import PolicyProvider
from placement.scores.default_scores import POINT_VALUE, default_parts
from placement.scores.plugin_weights import OURS, PLUGIN_WEIGHTS, ScorePart
from scheduler.cycle.node_totals import sum_of
from scheduler.profile_judgement import sum_parts
from scorer.background import ScorerBackground
from scorer.highest_peak import share_of
from scorer.judgement import Judgement
from scorer.scorer import Scorer
from scorer.scoring_policy import scoring_policy

_ALL_SCORED: Final = 100
"""Nodes up to which kube-scheduler scores all: minFeasibleNodesToFind in pkg/scheduler/schedule_one.go."""


@dataclass(frozen=True, slots=True)
class BestNode:
    """Where a pod would go.

    node       : the one with the most points; None = no node passes the filters
    peak_share : its expected peak in the next 24 hours with the pod; None without a forecast
    feasible   : nodes that pass all filters
    why_not    : what keeps the others out, as in kube-scheduler's events
    """

    node: str | None
    peak_share: float | None
    feasible: int
    why_not: str


class Placing:
    """kube-scheduler's filters, and ours as the settings of the extender or a policy have them."""

    def __init__(self, scorer: Scorer, settings: Settings) -> None:
        self._scorer = scorer
        options = extender_options(settings)
        self._standard = standard_filters()
        self.filters = (*self._standard, *(one for one in options.filters if one.name not in STANDARD_FILTERS))
        ours = settings.schedule
        self._of_loops = {*ours.all_scheduler_names.values(), *ours.scheduler_names.values()}
        self._options, self._policy = options, options.policy(scoring_policy(scorer.options))
        with scorer.tables.reading() as cluster:
            self.rules = node_rules(cluster, options.rules, None, clock=scorer.tables.clock)
            self._view = ClusterView(cluster, PlacementIndex(cluster.state), self.rules.tables)
            scorer.tables.attach(INDEXED_KINDS, self._view.index)
            for follower in self.rules.followers():
                scorer.tables.attach((), follower)

    def feasibility(self, pod: PodInfo, policy: Policy | None = None) -> Feasibility:
        """Where the pod could go if it had to be placed now. policy: None = that of the settings."""
        with self.unbound(pod) as waiting:
            return feasibility(waiting, self._view, self._filters_of(policy or self._policy))

    def may_go(self, pod: PodInfo, policy: Policy | None = None) -> tuple[str, ...]:
        """Return nodes on which the pod could be, were there room for what it requests. policy: see feasibility.

        Our own loops keep their pods to other nodes than the extender: what the scorer knows of them counts, and
        kube-scheduler's filters for what changes with every pod.
        """
        with self.unbound(pod) as waiting:
            of_loop = pod.scheduler_name in self._of_loops
            all_filters = self._standard if of_loop else self._filters_of(policy or self._policy)
            filters = [one for one in all_filters if one.name != NodeResourcesFit.name]
            passes = verdict(waiting, self._view, filters).passes
            if of_loop:
                with self._scorer.tables.reading() as cluster:
                    usable, mask_of = cluster.usable_nodes.usable_by([waiting])
                passes = passes & usable[mask_of[0]][: len(passes)]
            return tuple(self._view.state.names[row] for row in np.flatnonzero(passes).tolist())

    def judge(self, pod: PodInfo, chosen: ChosenPolicy, component: str) -> Judgement:
        """What kube-scheduler and the extender make of the nodes for a pod that waits, in tables where it sits nowhere.

        The sum of a node is kube-scheduler's own scores and ten times the weight of the extender for each point.
        """
        with self._scorer.tables.reading() as cluster:
            view, weight = self._view, self._options.answers.weight
            found = verdict(pod, view, self._filters_of(chosen.policy))
            rows = np.flatnonzero(found.passes)
            names = [view.state.names[row] for row in rows.tolist()]
            totals, parts = np.zeros(0), list[ScorePart]()
            if names:
                by_name = self._points(pod, names, chosen.policy)
                points = np.array([by_name[name] for name in names], dtype=np.int64)
                told = np.zeros_like(points)
                named = shortened(points, self._options.answers.longest_reply)
                told[named] = points[named]
                parts = [*default_parts(pod, view, rows, PLUGIN_WEIGHTS)]
                for name, own_weight, of_plugin in self._options.plugin_points(pod, view, rows, chosen.policy):
                    of_plugin = np.where(told != 0, of_plugin, 0)
                    told -= of_plugin
                    parts.append(ScorePart(name, own_weight, POINT_VALUE * weight * of_plugin))
                parts.append(ScorePart(OURS, weight, POINT_VALUE * weight * told))
                totals = sum_of(parts, len(rows))
            order = np.argsort(-totals, kind="stable").tolist()
            gates = f"waits for its gates: {', '.join(pod.gates[:5])}" if pod.gates else ""
            n_nodes = int(cluster.state.alive.sum())
            return Judgement(
                component=component,
                ranking=tuple(names[at] for at in order),
                totals={names[at]: float(totals[at]) for at in order},
                parts=sum_parts(parts, names),
                rejections=found.rejected_nodes(view),
                n_nodes=n_nodes,
                policy=chosen.policy.name,
                policy_because=chosen.because,
                held=gates,
                not_applied=(
                    *_left_to_kube_scheduler(n_nodes, chosen.policy, fits=bool(names)),
                    *self._options.troubles(),
                ),
            )

    def best_node(self, pod: PodInfo, policy: Policy, *, rather: str = "") -> BestNode:
        """Where kube-scheduler's filters and the policy would have the pod if it had to be placed now.

        rather : taken among nodes with as many points, which are the same to us; else the first by name
        """
        with self.unbound(pod) as waiting:
            feasible = feasibility(waiting, self._view, self._filters_of(policy))
            if not feasible.nodes:
                return BestNode(None, None, 0, str(feasible))
            points = self._points(waiting, feasible.nodes, policy)
            most = max(points.values())
            node = rather if points.get(rather) == most else min(name for name, of in points.items() if of == most)
            return BestNode(node, share_of(self._scorer.expected_peak(waiting, node)), len(feasible.nodes), "")

    def labels_of(self, namespace: str) -> Mapping[str, str] | None:
        """Labels of a namespace, None = not known."""
        return self._view.index.namespaces.labels_of(namespace)

    def annotations_of(self, namespace: str) -> Mapping[str, str]:
        """Ours, of a namespace; empty where it is not known."""
        return self._view.index.namespaces.annotations_of(namespace)

    def pods(self) -> tuple[PodInfo, ...]:
        """All pods of the cluster, by name."""
        with self._scorer.tables.reading() as cluster:
            return tuple(sorted(cluster.state.pods.values(), key=lambda pod: (pod.namespace, pod.name)))

    def unbound(self, pod: PodInfo) -> AbstractContextManager[PodInfo]:
        """The pod as if it had just been created, see `unbound_pod`."""
        return unbound_pod(self._scorer, pod)

    def _filters_of(self, policy: Policy) -> tuple[Filter, ...]:
        # kube-scheduler runs all of its own whatever a policy says.
        self.rules.look()
        ours = (one for one in policy.filters if one.name not in STANDARD_FILTERS)
        return (*self._standard, *self._rules_by(policy).in_place_of(ours))

    def _rules_by(self, policy: Policy) -> NodeRules:
        return self.rules.under(lambda pod: policy.cards)

    def _points(self, pod: PodInfo, nodes: Collection[str], policy: Policy) -> dict[str, int]:
        """As the extender gives them."""
        names = list(nodes)
        ranking = self._scorer.score(pod, names, policy=policy.scoring).ranking
        rows = np.array([self._view.state.row_of[name] for name in names], dtype=np.int64)
        with self._scorer.tables.reading():
            further = self._options.further_points(pod, self._view, rows, policy, self._rules_by(policy))
        points = points_of(ranking, np.ones(len(names), dtype=bool), self._options.answers.score_per_point) + further
        return dict(zip(names, points.tolist(), strict=True))


@contextmanager
def unbound_pod(scorer: Scorer, pod: PodInfo) -> Iterator[PodInfo]:
    """Yield the pod as if it had just been created, in tables without it: it must not count against itself.

    No other thread sees the tables so: they are locked until it is back. It stays a replica of its service.
    """
    with scorer.tables.reading() as cluster:
        known = cluster.state.pods.get(pod.uid)
        waiting = replace(known or pod, node="", started=None, created=cluster.now)
        if known is None or not known.node:
            yield waiting
            return
        scorer.tables.put(Kind.PODS, waiting)
        try:
            yield waiting
        finally:
            scorer.tables.put(Kind.PODS, known)


def _left_to_kube_scheduler(n_nodes: int, policy: Policy, *, fits: bool) -> Iterator[str]:
    """What kube-scheduler decides by itself and its protocol does not show."""
    yield "plugins and weights of kube-scheduler's own configuration: its defaults are assumed"
    if policy.plugin_weights != PLUGIN_WEIGHTS:
        yield f"plugin_weights of policy {policy.name}: they count in our own loops"
    if n_nodes > _ALL_SCORED:
        yield "percentageOfNodesToScore: kube-scheduler scores a part of so many nodes"
    if not fits:
        yield "preemption by kube-scheduler"


@contextmanager
def open_placing(
    settings: Settings, inputs: Inputs, policies: PolicyProvider | None = None
) -> Iterator[tuple[Scorer, ScorerBackground, Placing]]:
    """See prepare_scorer. policies: which pod is placed how; None = all as the settings say."""
    prepared = prepare_scorer(settings, inputs, policies=policies)
    placing = Placing(prepared.scorer, settings)
    if policies is not None:
        policies.read_labels_with(placing.labels_of)
    with prepared.following(kinds_read(placing.filters) if policies is None else INDEXED_KINDS):
        yield prepared.scorer, prepared.background, placing
