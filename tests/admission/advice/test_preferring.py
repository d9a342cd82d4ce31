"""What of a pod the advisor is sent, and the affinity that comes of its answer."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from admission.advice.asked_advice import affinity_with, pod_to_ask_about, why_not_asked
from placement.gate_exemptions import ADVICE
from placement.preferred_nodes import PREFERRED, PreferredNode, preferred_terms

NODES = [PreferredNode("n1", 100), PreferredNode("n2", 60)]
TERMS = preferred_terms(NODES)
OWN = {"weight": 5, "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}}
REQUIRED: dict[str, Any] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}


@pytest.mark.parametrize(
    ("affinity", "ours"),
    [
        (None, {"nodeAffinity": {PREFERRED: TERMS}}),
        ({}, {"nodeAffinity": {PREFERRED: TERMS}}),
        ({"nodeAffinity": None}, {"nodeAffinity": {PREFERRED: TERMS}}),
        ({"podAffinity": {"x": 1}}, {"podAffinity": {"x": 1}, "nodeAffinity": {PREFERRED: TERMS}}),
        ({"nodeAffinity": {PREFERRED: [OWN]}}, {"nodeAffinity": {PREFERRED: [OWN, *TERMS]}}),
        ({"nodeAffinity": REQUIRED}, {"nodeAffinity": {**REQUIRED, PREFERRED: TERMS}}),
        ({"nodeAffinity": {PREFERRED: {}}}, None),
        ({"nodeAffinity": []}, None),
        ("anything", None),
    ],
)
def test_our_terms_stand_behind_those_of_the_pod(affinity: Any, ours: Any) -> None:
    before = json.dumps(affinity)
    assert affinity_with(affinity, NODES) == ours
    assert json.dumps(affinity) == before


def _asked(pod: object, affinity: Any = None) -> dict[str, Any] | None:
    return pod_to_ask_about(msgspec.Raw(json.dumps(pod).encode()), "q-1", "shop", affinity)


def test_the_question_stands_for_the_uid_and_what_may_be_secret_stays_here() -> None:
    container: dict[str, Any] = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "1"}}}
    secrets: dict[str, Any] = {
        "env": [{"name": "TOKEN", "value": "x"}],
        "envFrom": [{}],
        "command": ["a"],
        "args": ["--password=x"],
        "lifecycle": {"preStop": {"exec": {"command": ["x"]}}},
        "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": "x"}]}},
    }
    metadata: dict[str, Any] = {
        "generateName": "cart-",
        "labels": {"app": "cart"},
        "annotations": {"team": "shop"},
        "creationTimestamp": None,
    }
    last_applied = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(secrets)}
    pod: dict[str, Any] = {
        "metadata": metadata | {"annotations": metadata["annotations"] | last_applied},
        "spec": {
            "containers": [container | secrets],
            "initContainers": [container | secrets],
            "nodeSelector": {"a": "b"},
        },
    }
    asked = _asked(pod)
    assert asked is not None
    assert asked["metadata"] == metadata | {"uid": "q-1", "namespace": "shop", "name": "cart-"}
    assert asked["spec"] == {"containers": [container], "initContainers": [container], "nodeSelector": {"a": "b"}}
    shaped = _asked(pod, {"nodeAffinity": REQUIRED})
    assert shaped is not None and shaped["spec"]["affinity"] == {"nodeAffinity": REQUIRED}


@pytest.mark.parametrize("pod", [None, [], "x", 7, {}, {"metadata": []}, {"metadata": {}, "spec": None}])
def test_what_is_no_pod_is_not_asked_about(pod: object) -> None:
    assert _asked(pod) is None


@pytest.mark.parametrize("containers", [None, {}, [None, "x", {"env": 1}]])
def test_odd_containers_raise_nothing(containers: object) -> None:
    assert _asked({"metadata": {"name": "a"}, "spec": {"containers": containers}}) is not None


def test_a_pod_that_has_preferences_or_a_gate_is_not_asked_about() -> None:
    assert why_not_asked({"metadata": {"annotations": {ADVICE: "{}"}}})
    assert why_not_asked({"metadata": {}, "spec": {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}})
    specs: list[Any] = [{}, {"schedulingGates": None}, {"schedulingGates": []}, None]
    for metadata in ({}, {"annotations": None}, {"annotations": {"a": "b"}}, None):
        for spec in specs:
            assert not why_not_asked({"metadata": metadata, "spec": spec})
