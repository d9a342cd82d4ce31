"""A review with real templates: what is shaped, what is told to whom, and what a dry run leaves out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.advice.asked_advice import gates_with_ours
from admission.templates.pod_arguments import ARGUMENTS_ANNOTATION
from admission.templates.shaping_annotations import TEMPLATES_ANNOTATION
from admission.webhook.admission_review import MalformedReview
from admission.webhook.binding_statuses import LastErrors
from admission.webhook.review_answers import AdmissionAnswer, AdmissionOutcome, Reviewer, asks
from admission.webhook.template_store import TemplateStore
from admission.webhook_settings import AdviceGateOptions
from base.excluded import ExcludedOptions
from kube.decoding.stored_templates import LastError
from kube.objects.objects import NamespaceInfo
from placement.gate_exemptions import ADVICE, AdviceMode
from placement.preferred_nodes import PREFERRED, PreferencesBody, PreferredNode, preferred_terms
from testing.reviews import patched, review_of
from tests.admission.webhook.made_up import a_binding, a_template

NOW = 1_795_284_000.0


def _store() -> TemplateStore:
    store = TemplateStore()
    store.node_configs.replace([a_template(), a_template("strict", required=True)])
    store.bindings.replace([
        a_binding("cart"),
        a_binding("strict", template="strict", onConflict="Merge"),
        a_binding("kept", template="strict"),
        a_binding("by-namespace", pods={"namespaceSelector": {"matchLabels": {"team": "a"}}}),
    ])  # fmt: skip
    store.namespaces.put(NamespaceInfo("team-a", {"team": "a"}))
    store.rebuild()
    assert not store.templates.problems
    return store


@pytest.fixture
def errors() -> LastErrors:
    return LastErrors()


@pytest.fixture
def reviewer(errors: LastErrors) -> Reviewer:
    return Reviewer(_store(), errors, clock=lambda: NOW)


def _pod(app: str = "cart", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"generateName": f"{app}-", "labels": {"app": app}},
        "spec": {"containers": [{"name": "main"}]} | spec,
    }


def test_a_pod_is_shaped_once_and_told_of_arguments_that_nothing_takes(reviewer: Reviewer) -> None:
    pod = _pod()
    pod["metadata"]["annotations"] = {ARGUMENTS_ANNOTATION: '{"Pool": "fast"}'}
    answer = reviewer.review(review_of(pod))
    (warning,) = json.loads(answer.body)["response"]["warnings"]
    assert warning == f"{ARGUMENTS_ANNOTATION}: no template of the pod has a parameter 'Pool'; there are none"
    assert answer.applied == ("cart",)
    answer = reviewer.review(review_of(_pod()))
    assert (answer.outcome, answer.applied) == (AdmissionOutcome.SHAPED, ("cart",))
    made = patched(_pod(), answer.body)
    assert "nodeAffinity" in made["spec"]["affinity"] and TEMPLATES_ANNOTATION in made["metadata"]["annotations"]
    again = reviewer.review(review_of(made, uid="another"))
    assert (again.outcome, again.applied) == (AdmissionOutcome.UNCHANGED, ()) and "patch" not in json.loads(again.body)[
        "response"
    ]


def test_labels_of_the_namespace_count(reviewer: Reviewer) -> None:
    assert reviewer.review(review_of(_pod("x"), namespace="team-a")).applied == ("by-namespace",)
    assert reviewer.review(review_of(_pod("x"), namespace="unknown")).applied == ()


@pytest.mark.parametrize(
    "request_",
    [
        {"operation": "UPDATE"},
        {"operation": "DELETE", "object": None},
        {"subResource": "ephemeralcontainers"},
        {"kind": {"group": "apps", "version": "v1", "kind": "Deployment"}},
        {"kind": {"group": "other.io", "version": "v1", "kind": "Pod"}},
        {"kind": {"group": "", "version": "v2", "kind": "Pod"}},
    ],
)
def test_anything_but_a_new_pod_passes_as_it_is(reviewer: Reviewer, request_: dict[str, Any]) -> None:
    answer = reviewer.review(review_of(_pod(), **request_))
    response = json.loads(answer.body)["response"]
    assert answer.outcome is AdmissionOutcome.IGNORED and response["allowed"] and "patch" not in response
    assert ("warnings" in response) == (request_.get("kind", {}).get("version") == "v2")


def test_contradictions_are_told_and_conflicts_that_the_pod_wins_are_none(
    reviewer: Reviewer, errors: LastErrors
) -> None:
    pod = _pod("strict", nodeSelector={"pool": "slow"})
    dry = reviewer.review(review_of(pod, dryRun=True))
    assert not errors.pending()
    answer = reviewer.review(review_of(pod))
    assert answer.body == dry.body and "patch" not in json.loads(answer.body)["response"]
    (warning,) = json.loads(answer.body)["response"]["warnings"]
    assert warning.startswith("strict: ")
    error = errors.pending()["strict"]
    assert (error.pod, error.time) == ("shop/strict-*", "2026-11-21T18:00:00Z") and "no node" in error.message
    newer = LastError("newer", "shop/b", "2")
    errors.put("strict", newer)
    errors.told("strict", error)
    assert errors.pending() == {"strict": newer}, "the newest waits until it is told"
    errors.told("strict", newer)
    assert not errors.pending()
    answer = reviewer.review(review_of(_pod("kept", nodeSelector={"pool": "slow"})))
    assert not errors.pending() and "patch" not in json.loads(answer.body)["response"]
    (warning,) = json.loads(answer.body)["response"]["warnings"]
    assert warning.startswith("kept: ") and "left out on pool" in warning
    said = reviewer.review(review_of(_pod("kept", nodeSelector={"pool": "fast"})))
    assert "warnings" not in json.loads(said.body)["response"], "the pod says itself what was left out"


def _holding(errors: LastErrors, *, is_alive: bool = True, unlabelled: AdviceMode = AdviceMode.OFF) -> Reviewer:
    """A reviewer that asks for the gate as the webhook does."""
    options = AdviceGateOptions(unlabelled=unlabelled)
    return Reviewer(
        _store(),
        errors,
        gates_of=lambda pod, namespace, labels, *, dry_run: (
            gates_with_ours(pod, namespace, labels, options, ExcludedOptions()) if is_alive else None
        ),
    )


def _asking(**spec: Any) -> dict[str, Any]:
    pod = _pod("x", **spec)
    pod["metadata"]["labels"][ADVICE] = "advise"
    return pod


def test_a_pod_that_asks_is_held_once_and_shaped_in_the_same_patch(errors: LastErrors) -> None:
    reviewer, other = _holding(errors), {"name": "kueue.x-k8s.io/admission"}
    answer = reviewer.review(review_of(_asking(schedulingGates=[other])))
    assert answer.outcome is AdmissionOutcome.SHAPED and answer.applied == ()
    made = patched(_asking(schedulingGates=[other]), answer.body)
    assert made["spec"]["schedulingGates"] == [other, {"name": ADVICE}]
    again = reviewer.review(review_of(made))
    assert again.outcome is AdmissionOutcome.UNCHANGED
    pod = _asking()
    pod["metadata"]["labels"]["app"] = "cart"
    made = patched(pod, _holding(errors).review(review_of(pod)).body)
    assert "nodeAffinity" in made["spec"]["affinity"] and made["spec"]["schedulingGates"] == [{"name": ADVICE}]
    made = patched(pod, _holding(errors, is_alive=False).review(review_of(pod)).body)
    assert "nodeAffinity" in made["spec"]["affinity"] and "schedulingGates" not in made["spec"]


def _preferring(
    errors: LastErrors, found: PreferencesBody | None, *, is_alive: bool = True
) -> tuple[Reviewer, list[tuple[Any, bool]]]:
    """A reviewer that asks an advisor which answers like this, and what it was asked."""
    asked: list[tuple[Any, bool]] = []

    def ask(pod: Any, *, dry_run: bool) -> PreferencesBody | None:
        asked.append((pod, dry_run))
        return found

    return Reviewer(_store(), errors, ask_of=asks(ask, AdviceGateOptions(), lambda: is_alive, ExcludedOptions())), asked


def _wishing(app: str = "x", **spec: Any) -> dict[str, Any]:
    pod = _pod(app, **spec)
    pod["metadata"]["labels"][ADVICE] = "prefer"
    return pod


FOUND = PreferencesBody([PreferredNode("n1", 100), PreferredNode("n2", 60)], note='{"node": "n1"}')


def test_a_pod_that_asks_prefers_nodes_behind_the_terms_of_its_templates(errors: LastErrors) -> None:
    reviewer, asked = _preferring(errors, FOUND)
    pod = _wishing()
    made = patched(pod, reviewer.review(review_of(pod)).body)
    assert made["spec"]["affinity"] == {"nodeAffinity": {PREFERRED: preferred_terms(FOUND.nodes)}}
    assert made["metadata"]["annotations"] == {ADVICE: FOUND.note} and "schedulingGates" not in made["spec"]
    assert reviewer.review(review_of(made, uid="u-2")).outcome is AdmissionOutcome.UNCHANGED
    ((sent, dry_run),) = asked
    assert sent["metadata"]["uid"] == "u-1" and not dry_run
    reviewer, asked = _preferring(errors, FOUND)
    pod = _wishing("cart")
    made = patched(pod, reviewer.review(review_of(pod, dryRun=True)).body)
    ((sent, dry_run),) = asked
    template = sent["spec"]["affinity"]["nodeAffinity"][PREFERRED]
    assert dry_run and made["spec"]["affinity"]["nodeAffinity"][PREFERRED] == [*template, *preferred_terms(FOUND.nodes)]
    assert made["metadata"]["annotations"].keys() == {TEMPLATES_ANNOTATION, ADVICE}


@pytest.mark.parametrize("app", ["x", "cart"])
def test_without_an_answer_a_pod_is_created_as_it_would_be_anyway(errors: LastErrors, app: str) -> None:
    pod, plain = _wishing(app), Reviewer(_store(), errors)
    for found, is_alive in ((None, True), (FOUND, False)):
        reviewer, asked = _preferring(errors, found, is_alive=is_alive)
        assert patched(pod, reviewer.review(review_of(pod)).body) == patched(pod, plain.review(review_of(pod)).body)
        assert len(asked) == is_alive


@pytest.mark.parametrize(
    ("metadata", "spec"),
    [
        ({"ownerReferences": [{"kind": "DaemonSet", "name": "log", "controller": True}]}, {}),
        ({"annotations": {"kubernetes.io/config.mirror": "8a2f"}}, {}),
        ({}, {"hostNetwork": True}),
        ({}, {"nodeName": "n1"}),
        ({}, {"schedulerName": "volcano"}),
        ({"labels": {ADVICE: "off"}}, {}),
    ],
)
def test_what_says_that_a_pod_must_not_wait_is_among_what_is_decoded_of_it(
    errors: LastErrors, metadata: dict[str, Any], spec: dict[str, Any]
) -> None:
    reviewer, asked = _preferring(errors, FOUND)
    for asking in (_asking(**spec), _wishing(**spec)):
        asking["metadata"] |= metadata
        assert _holding(errors).review(review_of(asking)).outcome is AdmissionOutcome.UNCHANGED
        assert isinstance(reviewer.begin(review_of(asking)), AdmissionAnswer)
    reviewer.review(review_of(_wishing(), namespace="kube-system"))
    reviewer.review(review_of(_asking(), namespace="team-a"))
    assert not asked


_MEMBERS = (
    *("metadata", "labels", "annotations", "ownerReferences", "name", "kind", "controller", "app", ADVICE),
    *("spec", "affinity", "nodeAffinity", "schedulingGates", "schedulerName", "hostNetwork", "nodeName"),
    "kubernetes.io/config.mirror",
)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.just("advise"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(_MEMBERS) | st.text(),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


_object = st.dictionaries(st.sampled_from(_MEMBERS), _json, max_size=4) | _json


@given(
    pod=st.fixed_dictionaries({}, optional={"metadata": _object, "spec": _object, "x": _json}),
    namespace=st.just("shop") | _json,
    uid=st.just("u-1") | _json,
)
def test_no_question_breaks_anything(pod: Any, namespace: Any, uid: Any) -> None:
    reviewer = _REVIEWER
    body = review_of(pod, namespace=namespace, uid=uid)
    try:
        answer = reviewer.review(body)
    except MalformedReview:
        assert not isinstance(uid, str) or not uid or not isinstance(namespace, str | None)
        return
    response = json.loads(answer.body)["response"]
    assert response["uid"] == uid and response["allowed"] is True
    made = patched(pod, answer.body)
    gates = made["spec"]["schedulingGates"] if answer.outcome is AdmissionOutcome.SHAPED else [{"name": ADVICE}]
    assert gates[-1] == {"name": ADVICE} and gates.count({"name": ADVICE}) == 1
    assert "patch" not in json.loads(reviewer.review(review_of(made, namespace=namespace, uid=uid)).body)["response"]


_REVIEWER = _holding(LastErrors(), unlabelled=AdviceMode.ADVISE)
