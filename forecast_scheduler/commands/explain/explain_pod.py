"""An explanation of one pod by the component that places it: a profile of `schedule`, or the extender with
kube-scheduler.

    POD --> schedulerName --> component_of --> a profile: the dry loop runs until the turn of the pod has come
                                           --> the extender: kube-scheduler's filters and scores, and our points
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final, Protocol

from msgspec import structs

from cluster.tables.cluster_file import ClusterObjects
from forecast_scheduler.commands.explain.placing_component import Component
from forecast_scheduler.commands.live_placing import Placing, open_placing, unbound_pod
from forecast_scheduler.commands.policy.followed_policies import read_policies
from forecast_scheduler.commands.schedule.dry_run_gaps import Gap, gaps_of_policies, gaps_of_tables, gaps_of_volumes
from forecast_scheduler.commands.schedule.dry_run_of_file import DryWorld, open_dry_loop
from forecast_scheduler.commands.scorer.scorer_setup import Inputs
from forecast_scheduler.settings.feature_options import extender_options
from kube.decoding.decoding import Kind
from kube.objects.counted_pods import waits
from kube.objects.objects import PodInfo, PodPhase
from placement.policies.policy import OnePolicyForAll, Policies
from placement.policies.provider import PolicyProvider
from profiles.dry_loop import Planned
from scheduler.cycle.placing import Looked
from scheduler.profile_judgement import judgement_of
from scorer.answers import ExplainedNode, Explanation, summary_of
from scorer.background import ScorerBackground
from scorer.judgement import CHOSEN, Judgement
from scorer.scorer import Scorer
from scorer.scoring_policy import scoring_policy

_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Explained:
    """
    explanation : with the judgement of the component
    gaps        : what the cluster file does not hold, or the API server did not list
    unread      : objects of the cluster file that no part reads, by kind
    namespaces  : those whose labels policy rules ask for, but which are unknown
    """

    explanation: Explanation
    judgement: Judgement
    gaps: tuple[Gap, ...] = ()
    unread: Mapping[str, int] = field(default_factory=dict)
    namespaces: tuple[str, ...] = ()


class Explaining(Protocol):
    """A component over its tables, to be asked once about one pod."""

    @property
    def scorer(self) -> Scorer:
        """Its scorer."""

    @property
    def background(self) -> ScorerBackground:
        """What reads the model."""

    @property
    def provider(self) -> PolicyProvider | None:
        """Policies by pod; None = the settings name none."""

    def explain(self, pod: PodInfo, nodes: Sequence[str] | None, top: int) -> Explained:
        """Explain a pod of the cluster, or one that was never created."""


@contextmanager
def open_explaining(component: Component, inputs: Inputs, objects: ClusterObjects | None) -> Iterator[Explaining]:
    """The component over its cluster. objects: of the cluster file, None = an API server is followed. See
    prepare_scorer
    for what is raised."""
    settings = component.settings
    if component.profile:
        with open_dry_loop(settings, inputs) as (scorer, background, world):
            yield _ByProfile(component, scorer, background, world)
        return
    provider = read_policies(settings, inputs.access)
    with open_placing(settings, inputs, provider) as (scorer, background, placing):
        yield _ByExtender(component, scorer, background, placing, provider, objects)


class _ByExtender:
    """Implements Explaining."""

    def __init__(
        self,
        component: Component,
        scorer: Scorer,
        background: ScorerBackground,
        placing: Placing,
        provider: PolicyProvider | None,
        objects: ClusterObjects | None,
    ) -> None:
        self.scorer, self.background, self.provider = scorer, background, provider
        self._component, self._placing, self._objects = component, placing, objects
        settings = component.settings
        policy = extender_options(settings).policy(scoring_policy(scorer.options))
        self._policies: Policies = OnePolicyForAll(policy) if provider is None else provider

    def explain(self, pod: PodInfo, nodes: Sequence[str] | None, top: int) -> Explained:
        with self.scorer.tables.reading() as cluster:
            if pod.uid not in cluster.state.pods:  # a manifest: as a pod it would be one replica more of its service
                self.scorer.tables.put(Kind.PODS, _waiting(pod, cluster.now))
        self.scorer.tables.measure()
        self.scorer.tables.tick()
        with unbound_pod(self.scorer, pod) as waiting:
            judgement = self._placing.judge(waiting, self._policies.choose(waiting), self._component.words)
            judgement = replace(judgement, runs_on=pod.node)
            explanation = self.scorer.explain(waiting, nodes, top=top, judge=lambda _: judgement)
        gaps, unread = [*gaps_of_policies([pod], self.provider)], dict[str, int]()
        if self._objects is not None:
            gaps += gaps_of_volumes([pod], self._objects)
            unread = self._objects.unread(())
        namespaces = () if self.provider is None else self.provider.unread([pod.namespace])
        return Explained(explanation, judgement, tuple(gaps), unread, namespaces)


class _ByProfile:
    """Implements Explaining."""

    def __init__(self, component: Component, scorer: Scorer, background: ScorerBackground, world: DryWorld) -> None:
        self.scorer, self.background, self.provider = scorer, background, world.provider
        self._component, self._world = component, world
        self._first: Judgement | None = None
        self._last: tuple[Explanation, Judgement] | None = None

    def explain(self, pod: PodInfo, nodes: Sequence[str] | None, top: int) -> Explained:
        scorer, world = self.scorer, self._world
        gaps = [*world.not_listed(), *gaps_of_policies([pod], self.provider)]
        waiting = self._as_waiting(pod)
        scorer.tables.measure()
        scorer.tables.tick()
        world.loop.look_around()

        def judge(looked: Looked) -> Judgement:
            words, chosen = self._component.words, world.policies.choose(looked.pod)
            troubles = world.loop.profiles[looked.pod.scheduler_name].troubles()
            view = world.loop.tables.view
            judged = judgement_of(looked, view, component=words, chosen=chosen, not_applied=troubles)
            return replace(judged, ahead=world.loop.placed, runs_on=pod.node)

        def on_look(looked: Looked) -> None:
            judgement = judge(looked)
            self._first = self._first or judgement
            self._last = scorer.explain(looked.pod, nodes, top=top, judge=lambda _: judgement), judgement

        planned = world.loop.run(look_at=waiting.uid, on_look=on_look)
        own = next((one for one in planned if one.pod.uid == waiting.uid), None)
        if self._last is None:  # a gate holds it: its turn does not come
            with scorer.tables.reading():
                on_look(world.loop.look(waiting))
        assert self._last is not None and self._first is not None
        explanation, last = self._last
        judgement = _concluded(last, self._first, own)
        nodes_shown = _without_choice(explanation, judgement)
        explanation = structs.replace(explanation, judgement=summary_of(judgement, nodes_shown), nodes=nodes_shown)
        unread: Mapping[str, int] = {}
        namespaces = () if self.provider is None else self.provider.unread([pod.namespace])
        if world.objects is not None:
            tables = world.loop.tables
            gaps += gaps_of_tables([own] if own is not None else [], world.objects, tables, namespaces)
            unread = world.objects.unread(one.watched for one in tables.subscriptions())
        return Explained(explanation, judgement, tuple(gaps), unread, namespaces)

    def _as_waiting(self, pod: PodInfo) -> PodInfo:
        """Return the pod as it waits in the queue. A pod that is bound, or was never created, waits from now on: no
        other code reads these tables.
        """
        scorer = self.scorer
        with scorer.tables.reading() as cluster:
            known = cluster.state.pods.get(pod.uid)
            if known is not None and waits(known) and not known.terminating:
                return known
            waiting = _waiting(pod, cluster.now)
            scorer.tables.put(Kind.PODS, waiting)
            return waiting


def _waiting(pod: PodInfo, now: float) -> PodInfo:
    """The pod as if it had been created now, in unix seconds."""
    return replace(pod, node="", started=None, created=now, terminating=False, phase=PodPhase.PENDING, finished=None)


def _concluded(last: Judgement, first: Judgement, own: Planned | None) -> Judgement:
    """The last look of the cycle, with what became of the pod in the end."""
    if own is None:
        return last
    if own.evicts:
        names = tuple(f"{one.namespace}/{one.name}" for one in own.evicts)
        last = replace(last, rejections=first.rejections, evicts=names, makes_room_on=own.node)
    if own.node:
        return last
    until = ""
    if own.waits_until is not None:
        until = f"waits until {datetime.fromtimestamp(own.waits_until, UTC):%Y-%m-%d %H:%M} UTC: "
    return replace(last, held=f"{until}{own.message}")


def _without_choice(explanation: Explanation, judgement: Judgement) -> tuple[ExplainedNode, ...]:
    """The nodes, of which none is chosen if the pod is held."""
    if not judgement.held:
        return explanation.nodes
    return tuple(
        structs.replace(node, notes=tuple(note for note in node.notes if note != CHOSEN)) for node in explanation.nodes
    )
