"""Which nodes a new pod prefers, and where it is reckoned with from the question until it is bound."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from advisor.advice_metrics import PreferenceCollector
from advisor.followed_advice import BoundPods
from advisor.preferred_pods import PreferenceOutcome, PreferredPods, TooLate, preferred_nodes
from kube.decoding.decoding import Kind
from kube.objects.objects import PodInfo
from placement.decisions.decision import Binding
from placement.decisions.recorder import DecisionRecorder
from placement.filters.filter import ClusterView
from placement.gate_exemptions import ADVICE
from placement.index.index import INDEXED_KINDS, PlacementIndex
from placement.preferred_nodes import PreferencesBody
from scorer.judgement import Judge, Judgement
from scorer.load_scale import percent
from scorer.scorer import Scorer
from testing.objects import pod_info
from testing.placement.views import node_named, pod_with
from testing.settable_clock import SettableClock
from tests.scorer.live_cluster import at, pod_of
from tests.scorer.scorer_at import LiveScorer

AT = 1_795_284_000.0
ASKED = pod_info("cart-", uid="question-1", requests={"cpu": 1.0}, created=0.0)


class World:
    """Three nodes, of which n1 is ranked first; what is decided is taken down."""

    def __init__(self, *, ranking: tuple[str, ...] = ("n1", "n2", "n3"), has_forecast: bool = True) -> None:
        self.taken: list[Binding] = []
        self.clock = SettableClock(AT)
        self.recorder = DecisionRecorder([self], version="1.2.3", clock=self.clock)
        self.scorer = Scorer(clock=self.clock)
        self.tables = self.scorer.tables
        with self.tables.reading() as cluster:
            self.cluster = cluster
            view = ClusterView(cluster, PlacementIndex(cluster.state))
            self.tables.attach(INDEXED_KINDS, view.index)
            self.tables.attach((), BoundPods(cluster, view, self.recorder, lambda pod: ()))
        totals = {node: 300.0 - 100.0 * place for place, node in enumerate(ranking)}
        self.judge: Judge = lambda pod: Judgement("advise", ranking, totals)
        self.preferred = self.replica(view, has_forecast=has_forecast)
        self.tables.replace(Kind.NODES, [node_named(name) for name in ("n1", "n2", "n3")])

    def replica(self, view: ClusterView, *, has_forecast: bool = True) -> PreferredPods:
        return PreferredPods(
            self.scorer,
            view,
            self.recorder,
            n_nodes=2,
            charge_seconds=5.0,
            bound_seconds=10.0,
            has_forecast=lambda: has_forecast,
            judge=self.judge,
            clock=self.clock,
        )

    def take(self, binding: Binding) -> None:
        self.taken.append(binding)

    def ask(self, pod: PodInfo = ASKED, **given: Any) -> PreferencesBody:
        return self.preferred.prefer(pod, **{"due": AT + 60.0} | given)

    def see(self, pod: PodInfo) -> None:
        self.tables.put(Kind.PODS, pod)

    def later(self, seconds: float) -> None:
        self.clock.now += seconds
        self.tables.tick()

    def requested(self) -> dict[str, float]:
        """Cores by node, of pods that sit there or are reckoned with."""
        state = self.cluster.state
        return {name: float(state.requested[row, 0]) for name, row in state.row_of.items() if state.requested[row, 0]}


def created(body: PreferencesBody, name: str = "cart-x2x7p", **fields: Any) -> PodInfo:
    """The pod of that question, as the webhook changed it and the API server named it."""
    return pod_info(
        name,
        **{"requests": {"cpu": 1.0}, "annotations": {ADVICE: body.note}, "uid": f"uid-{name}", "created": AT} | fields,
    )


@pytest.mark.parametrize(("n_nodes", "weights"), [(1, [100]), (2, [100, 40]), (7, [100, 40, 16, 6, 3, 1, 1])])
def test_weights_descend(n_nodes: int, weights: list[int]) -> None:
    ranking = [f"n{number}" for number in range(9)]
    assert [one.weight for one in preferred_nodes(ranking, n_nodes)] == weights
    assert len(preferred_nodes(ranking[:1], n_nodes)) == 1


def test_the_charge_is_where_kube_scheduler_will_go_by_all_terms_of_the_pod() -> None:
    """Its own preference of n3 weighs more than ours."""
    fields = [{"key": "metadata.name", "operator": "In", "values": ["n3"]}]
    own = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": weight, "preference": {"matchFields": fields}} for weight in (100, 100)
    ]}}  # fmt: skip
    requests = {"resources": {"requests": {"cpu": "1"}}}
    pod = pod_with({"affinity": own, "containers": [{"name": "main", "image": "", **requests}]})
    world = World()
    note = json.loads(world.ask(replace(pod, uid="question-1")).note)
    assert (note["node"], note["expected"]) == ("n1", "n3")
    assert world.requested() == {"n3": 1.0}


def test_the_best_nodes_are_named_with_weights_and_the_next_pod_reckons_with_it() -> None:
    world = World()
    body = world.ask()
    assert [(one.node, one.weight) for one in body.nodes] == [("n1", 100), ("n2", 40)]
    assert json.loads(body.note) == {"node": "n1", "runner_up": "n2", "mode": "prefer", "asked": "question-1"}
    assert world.requested() == {"n1": 1.0}
    world = World(ranking=("n1",))
    for number in range(3):
        world.ask(replace(ASKED, uid=f"question-{number}"))
    assert world.requested() == {"n1": 3.0}


def test_a_pod_that_comes_takes_the_place_of_what_stood_for_it_in_every_replica() -> None:
    world = World()
    pod = created(world.ask())
    world.see(pod)
    assert world.requested() == {"n1": 1.0}
    world.later(9.0)
    assert world.requested() == {"n1": 1.0}, "it waits for kube-scheduler"
    world.see(replace(pod, node="n2"))
    assert world.requested() == {"n2": 1.0}
    world.later(60.0)
    assert world.requested() == {"n2": 1.0}
    (binding,) = world.taken
    assert (binding.advice.uid, binding.advice.best, binding.node) == (pod.uid, "n1", "n2")
    assert binding.advice.pod == "shop/cart-x2x7p"
    assert (world.preferred.figures.came, world.preferred.figures.never_came) == (1, 0)
    other, world = World(), World()
    pod = created(other.ask())
    world.see(pod)
    assert world.requested() == {"n1": 1.0}
    world.see(replace(pod, node="n1"))
    assert world.requested() == {"n1": 1.0} and not world.taken, "the other one records it"


def test_a_pod_that_never_comes_or_is_not_bound_is_given_up() -> None:
    world = World()
    world.ask()
    world.later(5.1)
    assert not world.requested()
    world.ask(replace(ASKED, uid="question-2"))
    assert world.preferred.figures.never_came == 1
    world = World()
    pod = created(world.ask())
    world.see(pod)
    world.later(10.1)
    world.see(replace(pod, priority=7))
    assert not world.requested()


def test_a_dry_run_and_an_answer_that_is_not_waited_for_any_more_charge_nothing() -> None:
    world = World()
    assert world.ask(dry_run=True).nodes and not world.requested()
    with pytest.raises(TooLate):
        world.ask(due=AT)
    assert not world.requested() and world.preferred.figures.asked[PreferenceOutcome.LATE] == 1


@pytest.mark.parametrize(
    ("world", "pod", "outcome", "because"),
    [
        (World(has_forecast=False), ASKED, PreferenceOutcome.NO_FORECAST, "there is no usable forecast"),
        (World(ranking=()), ASKED, PreferenceOutcome.NO_NODE, "no node passes the filters"),
        (
            World(),
            replace(ASKED, annotations={"forecast-scheduler.io/opt-out": "true"}),
            PreferenceOutcome.OPTED_OUT,
            "the pod has opted out",
        ),
    ],
)
def test_reasons_to_prefer_nothing(world: World, pod: PodInfo, outcome: PreferenceOutcome, because: str) -> None:
    assert world.ask(pod) == PreferencesBody([], because=because)
    assert not world.requested() and world.preferred.figures.asked == {outcome: 1}


@pytest.mark.parametrize("note", ["", "no JSON", "[]", '{"node": 7}', '{"node": "n1"}', '{"node": "n9", "asked": "q"}'])
def test_annotations_of_others_charge_nothing(note: str) -> None:
    world = World()
    world.see(created(world.ask(dry_run=True), annotations={ADVICE: note}))
    assert not world.requested()


def test_metrics() -> None:
    world, registry = World(), CollectorRegistry()
    registry.register(PreferenceCollector(world.preferred.figures))
    world.see(created(world.ask()))
    lines = generate_latest(registry).decode().splitlines()
    shown = {name: float(value) for name, value in (line.split(" ") for line in lines if not line.startswith("#"))}
    assert shown.pop('forecast_preferences_total{outcome="preferred"}') == 1.0
    assert shown.pop('forecast_preference_charges_total{outcome="came"}') == 1.0
    assert set(shown.values()) == {0.0} and len(shown) == 5


def test_the_note_has_the_peak_with_the_pod_once_which_the_node_has_when_it_is_there() -> None:
    tested = LiveScorer(12.0, pods=[pod_of(5, "there", "node-0", started=at(0))])
    with tested.scorer.tables.reading() as cluster:
        view = ClusterView(cluster, PlacementIndex(cluster.state))
        tested.scorer.tables.attach(INDEXED_KINDS, view.index)
    preferred = PreferredPods(
        tested.scorer,
        view,
        DecisionRecorder([], version="1.2.3"),
        n_nodes=2,
        charge_seconds=5.0,
        bound_seconds=10.0,
        has_forecast=lambda: True,
        judge=lambda pod: Judgement("advise", ("node-0", "node-1"), {"node-0": 300.0, "node-1": 200.0}),
        clock=tested.clock,
    )
    body = preferred.prefer(pod_of(5, "asked"), due=tested.clock.now + 60.0)
    note = json.loads(body.note)["expected_peak"]
    tested.put(replace(pod_of(5, "came", "node-0"), annotations={ADVICE: body.note}))
    tested.scorer.tables.refresh_overview()
    peak = next(one.peak for one in tested.scorer.nodes().nodes if one.name == "node-0")
    assert peak is not None
    assert (note["resource"], percent(note["share"])) == (peak.resource, percent(peak.share))
