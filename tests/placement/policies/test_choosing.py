"""Which pod gets which policy: precedence, and the index against the slow loop over rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.objects.constraints import LabelSelector, Operator, Requirement
from kube.objects.objects import PodInfo
from placement.policies.compiling import PolicyDefaults, compile_document
from placement.policies.document import read_document
from placement.policies.policy_set import RuleIndex
from placement.policies.rules import PolicyRule
from tests.placement.policies.made_up import DOCUMENT, pod

TEAMS = {"shop": {"team": "web"}, "lake": {"team": "data"}}


@pytest.mark.parametrize(
    ("asked", "policy", "because"),
    [
        (pod({"app": "cart"}, policy="batch"), "batch", "its annotation"),
        (pod({"app": "cart"}, policy="settings"), "settings", "its annotation"),
        (pod({"app": "cart"}), "latency-critical", "rule 1: carts"),
        (pod({"app": "cart"}, policy="c"), "latency-critical", "rule 1: carts; its annotation names no policy: 'c'"),
        (pod({"app": "cart"}, namespace="lake"), "batch", "rule 2"),
        (pod({"app": "cart"}, namespace="other"), "balanced", "the default"),
        (pod({"kind": "job"}, namespace="other"), "batch", "rule 3"),
        (pod({"kind": "job", "urgent": ""}, namespace="other"), "balanced", "the default"),
        (pod(policy="x"), "balanced", "the default; its annotation names no policy: 'x'"),
    ],
)  # fmt: skip
def test_precedence(asked: PodInfo, policy: str, because: str) -> None:
    policies = compile_document(read_document(DOCUMENT), PolicyDefaults())
    chosen = policies.choose(asked, TEAMS.get)
    assert (chosen.policy.name, chosen.because) == (policy, because)
    choice = policies.choice(asked, TEAMS.get)
    assert choice.scoring.policy is chosen.policy.scoring and choice.scoring.because == because


def test_an_endless_annotation_is_not_repeated_in_full() -> None:
    policies = compile_document(read_document(DOCUMENT), PolicyDefaults())
    assert len(policies.choose(pod(policy="x" * 200_000), TEAMS.get).because) < 200


def test_a_namespace_whose_labels_are_not_known_is_chosen_by_name_only() -> None:
    negative = LabelSelector((Requirement("team", Operator.NOT_IN, ("data",)),))
    index = RuleIndex([PolicyRule(1, "a", namespace_selector=negative), PolicyRule(2, "b", frozenset({"shop"}))])
    assert index.first(pod(), lambda namespace: None) == 1
    assert index.first(pod(), {"shop": {"team": "data"}}.get) == 1
    assert index.first(pod(), {"shop": {"team": "web"}}.get) == 0


def test_more_namespaces_than_are_remembered_are_answered_alike() -> None:
    index = RuleIndex([PolicyRule(1, "a", namespace_selector=LabelSelector((Requirement("n", Operator.IN, ("7",)),)))])
    for _ in range(2):
        answers = [index.first(pod(namespace=f"n{i}"), lambda name: {"n": name[1:]}) for i in range(5_000)]
        assert answers == [0 if i == 7 else None for i in range(5_000)]
        assert len(index._known) <= 4096


class Counted(dict[str, str]):
    """Labels that count how often somebody looks."""

    looks = 0

    def get(self, key: str, default: Any = None) -> Any:
        Counted.looks += 1
        return super().get(key, default)

    def __getitem__(self, key: str) -> str:
        Counted.looks += 1
        return super().__getitem__(key)


def rule(number: int, *requirements: Requirement) -> PolicyRule:
    return PolicyRule(number, "a", selector=LabelSelector(requirements))


PROD = Requirement("env", Operator.IN, ("prod",))
SHAPES: dict[str, Callable[[int], PolicyRule]] = {
    "a common value and a rare label": lambda n: rule(n, PROD, Requirement(f"label-{n}", Operator.EXISTS)),
    "two common values": lambda n: rule(n, PROD, Requirement("zone", Operator.IN, ("b", f"zone-{n}"))),
    "a value that is forbidden": lambda n: rule(n, Requirement("app", Operator.NOT_IN, ("cart", f"app-{n}"))),
    "labels that are forbidden": lambda n: rule(
        n, Requirement("env", Operator.DOES_NOT_EXIST), Requirement(f"label-{n}", Operator.DOES_NOT_EXIST)
    ),
    "a common value and one that is forbidden": lambda n: rule(n, PROD, Requirement("app", Operator.NOT_IN, ("cart",))),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_pod_s_labels_are_looked_up_a_few_times_however_many_rules_fail(shape: Callable[[int], PolicyRule]) -> None:
    made = [shape(number) for number in range(1000)]
    labels = {"app": "cart", "env": "prod", "zone": "a", "tier": "web"}
    index, Counted.looks = RuleIndex(made), 0
    assert index.first(replace(pod(), labels=Counted(labels)), TEAMS.get) is None
    assert Counted.looks <= 20
    assert not any(one.holds(pod(labels), TEAMS.get) for one in made)


@pytest.mark.parametrize("operator", [Operator.IN, Operator.NOT_IN])
def test_the_first_pod_of_a_namespace_does_not_try_all_rules(operator: Operator) -> None:
    teams = [Requirement("team", operator, (f"team-{n}",)) for n in range(1000)]
    index = RuleIndex(
        [PolicyRule(n, "a", namespace_selector=LabelSelector((PROD, one))) for n, one in enumerate(teams)]
    )
    for number in (0, 7, 999):
        Counted.looks = 0
        labels = Counted({"env": "prod", "team": f"team-{number}"})
        assert index.first(pod(namespace=f"ns-{number}"), {f"ns-{number}": labels}.get) == (
            number if operator is Operator.IN else int(number == 0)
        )
        assert Counted.looks <= 20


KEYS, VALUES, NAMESPACES = ["a", "b", "c"], ["1", "2", "3"], ["n1", "n2", "n3", "n4"]
requirements = st.builds(
    Requirement,
    st.sampled_from(KEYS),
    st.sampled_from([Operator.IN, Operator.NOT_IN]),
    st.lists(st.sampled_from(VALUES), max_size=3).map(tuple),
) | st.builds(Requirement, st.sampled_from(KEYS), st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST]))
selectors = st.none() | st.builds(LabelSelector, st.lists(requirements, max_size=4).map(tuple))
rules = st.builds(
    PolicyRule,
    number=st.just(0),
    policy=st.just("p"),
    namespaces=st.none() | st.frozensets(st.sampled_from(NAMESPACES), min_size=1, max_size=3),
    namespace_selector=st.none() | selectors,
    selector=selectors,
)
labels = st.dictionaries(st.sampled_from([*KEYS, "d", "e", "f"]), st.sampled_from([*VALUES, ""]), max_size=6)


@given(
    st.lists(rules, max_size=12),
    st.lists(st.tuples(st.sampled_from(NAMESPACES), labels), min_size=1, max_size=6),
    st.dictionaries(st.sampled_from(NAMESPACES), labels),
)
def test_the_index_finds_what_the_slow_loop_finds(
    made: list[PolicyRule], pods: list[tuple[str, dict[str, str]]], namespaces: dict[str, dict[str, str]]
) -> None:
    index = RuleIndex(made)
    for namespace, of_pod in pods:
        asked = pod(of_pod, namespace=namespace)
        slow = next((place for place, rule in enumerate(made) if rule.holds(asked, namespaces.get)), None)
        assert index.first(asked, namespaces.get) == slow
