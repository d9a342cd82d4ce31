"""The extender places each pod by the policy that is chosen for it, and writes down by which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from extender.extender import Extender
from extender.extender_api import VictimsByUid
from extender.extender_options import ExtenderOptions
from extender.score_sources import LocalScores
from kube.decoding.decoding import Kind
from kube.objects.objects import PodInfo
from placement.card_types.listed_cards import ListedCards
from placement.filters.domain import DOMAIN_LABEL, Domain
from placement.node_order import ORDER_POINTS
from placement.node_rule_settings import CardOptions, Protection
from placement.policies.policy import ChosenPolicy, Policy
from scorer.options import ScorerOptions
from scorer.scorer_api import Scored
from scorer.scores.score_catalogue import SCORES
from scorer.scoring_policy import SETTINGS_POLICY, ScoringPolicy, scoring_policy
from tests.extender.test_extender import LOADED, NODES, AtOnce, Said
from tests.scorer.live_cluster import node, pod_of
from tests.scorer.scorer_at import LiveScorer

USUAL = Policy(scoring_policy(ScorerOptions()))
STACK = ScoringPolicy("stack", {"most_allocated": 1.0}, SCORES)


class Table:
    """A policy by the name of the pod; what it says may be changed at any time."""

    def __init__(self, policies: Mapping[str, Policy]) -> None:
        self.policies = dict(policies)
        self.placed = Counter[str]()

    def choose(self, pod: PodInfo) -> ChosenPolicy:
        policy = self.policies.get(pod.name)
        return ChosenPolicy(USUAL) if policy is None else ChosenPolicy(policy, "its name")

    def count(self, policy: str) -> None:
        self.placed[policy] += 1


def extender_of(tested: LiveScorer, policies: Table, **options: object) -> tuple[Extender, Said]:
    said = Said()
    made = AtOnce(
        tested.scorer,
        ExtenderOptions(**options),  # type: ignore[arg-type]
        policies=policies,
        recorder=said,  # type: ignore[arg-type]
        clock=tested.clock,
    )
    return made, said


def test_filters_and_points_are_those_of_the_policy() -> None:
    tested = LiveScorer()
    tested.scorer.tables.put(Kind.NODES, replace(node("node-1"), labels={DOMAIN_LABEL: "batch"}))
    table = Table({"strict": Policy(STACK, (Domain(),))})
    made, _ = extender_of(tested, table)
    assert made.filter(pod_of(0, "strict"), NODES).nodes == ["node-0", "node-2", "node-3"]
    assert made.filter(pod_of(0, "other"), NODES).nodes == NODES
    table.policies.clear()
    assert made.filter(pod_of(0, "strict"), NODES).nodes == NODES
    made, said = extender_of(LiveScorer(pods=LOADED), Table({"stack": Policy(STACK)}))
    stacked, usual = (made.prioritize(pod_of(0, name), NODES) for name in ("stack", "other"))
    assert stacked["node-0"] == max(stacked.values()) > 0
    assert usual["node-0"] == min(usual.values()) < 0
    assert [(one.policy, one.policy_because) for one in said.advice] == [("stack", "its name"), (SETTINGS_POLICY, "")]


def test_without_a_model_points_come_from_the_other_scores_and_the_log_says_so() -> None:
    tested = LiveScorer(pods=LOADED, without_model=True)
    tested.measure({"node-0": 30.0, "node-1": 10.0, "node-2": 20.0, "node-3": 20.0})
    mixed = ScoringPolicy("mixed", {"predicted_peak": 1.0, "most_available": 1.0}, SCORES)
    made, said = extender_of(tested, Table({"mixed": Policy(mixed)}))
    points = made.prioritize(pod_of(0, "mixed"), NODES)
    assert points["node-1"] > 10 and points["node-0"] < -10
    assert "predicted_peak is neutral: no model is in use, most_available counts as before" in said.advice[0].reasons
    assert made.prioritize(pod_of(0, "usual"), NODES) == {"node-0": -100}  # it is full
    assert "predicted_peak is neutral: no model is in use" in said.advice[1].reasons


class Elsewhere(LocalScores):
    """A scorer that reads other policies."""

    def score(self, pod: PodInfo, nodes: Sequence[str], policy: ScoringPolicy | None = None) -> Scored:
        return replace(super().score(pod, nodes), policy=pod.name)


def test_the_advice_says_where_a_scorer_elsewhere_goes_by_another_policy() -> None:
    tested, said = LiveScorer(), Said()
    made = AtOnce(
        tested.scorer,
        scores=Elsewhere(tested.scorer),
        policies=Table({"stack": Policy(STACK), "x" * 99: Policy(STACK)}),
        recorder=said,  # type: ignore[arg-type]
        clock=tested.clock,
    )
    for name in ("stack", "other", "x" * 99, ""):
        made.prioritize(pod_of(0, name), NODES)
    told = [[reason for reason in one.reasons if "elsewhere" in reason] for one in said.advice]
    by = "the scorer elsewhere scored by policy "
    assert told == [[], [by + "other"], [by + "x" * 63 + "..."], []]


def test_pods_are_counted_by_policy_and_scores_of_another_are_not_used() -> None:
    tested, table = LiveScorer(), Table({"stack": Policy(STACK)})
    made, _ = extender_of(tested, table)
    for name in ("stack", "other"):
        made.prioritize(pod_of(0, name), NODES)
    assert not table.placed
    tested.put(pod_of(0, "stack", "node-1"))
    tested.put(pod_of(0, "other", "node-2"))
    tested.put(pod_of(0, "stack", "node-1"))
    assert table.placed == {"stack": 1, SETTINGS_POLICY: 1}
    table = Table({})
    made, _ = extender_of(LiveScorer(pods=LOADED), table)
    pod = pod_of(0, "stack")
    made.prepare(pod, NODES)
    table.policies["stack"] = Policy(STACK)
    points = made.prioritize(pod, NODES)
    assert points["node-0"] == max(points.values()) > 0


def test_nodes_with_cards_come_last_as_the_policy_says() -> None:
    free_to_go = ListedCards(CardOptions(without_cards=Protection.OFF))
    scoring = scoring_policy(ScorerOptions())
    policies = {
        "last": Policy(scoring, (ListedCards(),)),
        "anywhere": Policy(scoring, (free_to_go,), cards=free_to_go),
    }
    points = []
    for name in policies:
        tested = LiveScorer()
        gpus = {**node("node-1").allocatable, "nvidia.com/gpu": 8.0}
        tested.scorer.tables.put(Kind.NODES, replace(node("node-1"), allocatable=gpus))
        made, _ = extender_of(tested, Table(policies))
        points.append(made.prioritize(pod_of(0, name), NODES))
    assert points[0] == dict.fromkeys([name for name in NODES if name != "node-1"], ORDER_POINTS)
    assert points[1] == {}


def test_a_victim_is_kept_where_the_policy_of_the_pod_lets_it_in() -> None:
    tested = LiveScorer()
    tested.scorer.tables.put(Kind.NODES, replace(node("node-1"), labels={DOMAIN_LABEL: "batch"}))
    made, _ = extender_of(tested, Table({"strict": Policy(STACK, (Domain(),))}))
    victims = {name: VictimsByUid(("u1",)) for name in ("node-0", "node-1")}
    assert made.preempt(pod_of(0, "strict"), victims).keys() == {"node-0"}
    assert made.preempt(pod_of(0, "other"), victims).keys() == {"node-0", "node-1"}
