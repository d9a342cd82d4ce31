"""The policies in effect: what takes effect, what stays, what is told, and readers that never see a half of it."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from kube.objects.objects import PodInfo
from placement.gate_exemptions import AdviceMode
from placement.policies.compiling import PolicyDefaults
from placement.policies.provider import OutcomeKind, PolicyProvider
from testing.settable_clock import SettableClock
from tests.placement.policies.made_up import DOCUMENT, pod

BROKEN = DOCUMENT.replace("qos_balance", "qos_ballance")
OTHER = "default: other\npolicies: {other: {}}"


def provider(clock: SettableClock[float] | None = None) -> PolicyProvider:
    return PolicyProvider(PolicyDefaults(), source="file policies.yaml", clock=clock or SettableClock(1000.0))


def test_a_good_document_takes_effect_as_a_whole() -> None:
    clock = SettableClock(1000.0)
    policies = provider(clock)
    outcome = policies.offer(DOCUMENT, "v1")
    assert outcome is not None and outcome.kind is OutcomeKind.ACCEPTED
    assert outcome.message == "3 policies and 3 rules are in effect, version v1"
    assert policies.choose(pod({"app": "cart"})).policy.name == "latency-critical"
    assert policies.scoring(pod({"app": "cart"})).because == "rule 1: carts"
    status = policies.status
    assert (status.version, status.since, status.n_rules, status.default) == ("v1", 1000.0, 3, "balanced")
    assert status.refusal is None and status.outcomes[OutcomeKind.ACCEPTED] == 1


def test_a_broken_document_leaves_the_last_good_one_in_effect_and_is_told_once() -> None:
    clock = SettableClock(1000.0)
    policies = provider(clock)
    policies.offer(DOCUMENT, "v1")
    before = policies.policies
    clock.now = 1010.0
    outcome = policies.offer(BROKEN, "v2")
    assert outcome is not None and outcome.kind is OutcomeKind.REFUSED
    assert "qos_ballance" in outcome.message and outcome.message.endswith("; version v1 stays in effect")
    clock.now = 1020.0
    assert policies.offer(BROKEN, "v3") is None  # listed again
    assert policies.policies is before
    status = policies.status
    assert status.version == "v1" and status.refusal is not None and status.refusal.at == 1010.0
    assert status.outcomes == {OutcomeKind.ACCEPTED: 1, OutcomeKind.REFUSED: 1, OutcomeKind.GONE: 0}
    again = policies.offer(DOCUMENT, "v4")
    assert again is not None and again.kind is OutcomeKind.ACCEPTED
    assert policies.status.refusal is None and policies.status.version == "v4"


def test_waiting_for_the_first_document_is_told_unless_there_is_word_of_it() -> None:
    policies = provider()
    policies.still_waiting("no answer")
    assert policies.status.refusal is not None and policies.status.refusal.message == "no answer"
    policies.offer(DOCUMENT)
    policies.still_waiting("no answer")
    assert policies.status.refusal is None


def test_a_mistake_of_ours_costs_the_document_only(monkeypatch: pytest.MonkeyPatch) -> None:
    policies = provider()
    policies.offer(DOCUMENT, "v1")

    def fail(*unused: object) -> None:
        raise ZeroDivisionError("a mistake")

    monkeypatch.setattr("placement.policies.provider.compile_document", fail)
    outcome = policies.offer(OTHER)
    assert outcome is not None and "ZeroDivisionError: a mistake" in outcome.message
    assert policies.choose(pod()).policy.name == "balanced"


def test_an_unknown_name_is_counted_and_told_once_per_pod() -> None:
    told: list[tuple[str, str, set[str]]] = []

    def listen(about: PodInfo, name: str, known: Collection[str]) -> None:
        told.append((about.uid, name, set(known)))

    policies = provider()
    policies.offer(DOCUMENT)
    policies.tell_unknown(listen)
    for _ in range(3):
        for uid in ("a", "b"):
            policies.choose(pod(policy="bath", uid=uid))
            policies.scoring(pod(policy="bath", uid=uid))
    policies.choose(pod(policy="batch", uid="c"))
    known = {"settings", "balanced", "latency-critical", "batch"}
    assert told == [("a", "bath", known), ("b", "bath", known)]
    assert policies.status.unknown == 2


def test_a_listener_that_fails_costs_no_pod_its_policy(caplog: pytest.LogCaptureFixture) -> None:
    policies, told = provider(), list[str]()

    def fail(about: PodInfo, name: str, known: Collection[str]) -> None:
        raise ValueError("a mistake")

    policies.offer(DOCUMENT)
    policies.tell_unknown(fail)
    policies.tell_unknown(lambda about, name, known: told.append(about.uid))
    for uid in ("a", "b"):
        assert policies.choose(pod(policy="bath", uid=uid)).policy.name == "balanced"
    assert told == ["a", "b"]
    assert [record.message for record in caplog.records if record.exc_info].count(
        "a pod that names no policy could not be reported"
    ) == 1


def test_namespaces_whose_labels_are_asked_for_and_not_known_are_told() -> None:
    policies = provider()
    policies.offer(DOCUMENT)
    policies.read_labels_with({"lake": {"team": "data"}}.get)
    assert policies.unread(["shop", "lake", "shop", "other"]) == ("other", "shop")
    policies.offer("policies: {a: {}}\nrules: [{policy: a, namespaces: [shop], namespace_selector: {}}]")
    assert policies.unread(["shop", "lake", "other"]) == ("shop",)
    policies.offer("policies: {a: {}}\nrules: [{policy: a, namespaces: [shop]}]")
    assert policies.unread(["shop"]) == ()


def test_names_of_pods_and_policies_that_come_and_go_take_bounded_room() -> None:
    policies = provider()
    for number in range(25_000):
        policies.choose(pod(policy="x", uid=f"uid-{number}"))
        policies.count(f"policy-{number}")
    assert policies.status.unknown == 25_000
    assert len(policies.pods) <= 1_000
    assert len(policies._unknown._seen) == 10_000


def test_a_policy_says_what_the_webhook_does_with_its_pods() -> None:
    policies = provider()
    assert policies.advice(pod()) is None
    policies.offer("default: held\npolicies: {held: {advice: advise}, free: {advice: off}, plain: {}}")
    assert [policies.advice(pod(policy=name)) for name in (None, "free", "plain", "unknown")] == [
        AdviceMode.ADVISE,
        AdviceMode.OFF,  # without quotes it is the truth value false to YAML
        None,
        AdviceMode.ADVISE,
    ]
    outcome = policies.offer("policies: {held: {advice: always}}")
    assert outcome is not None and outcome.kind is OutcomeKind.REFUSED and "policies.held.advice" in outcome.message
