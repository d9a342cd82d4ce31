from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.templates.matching import BindingIndex, means, pod_facts
from admission.templates.template_decoding import object_from_manifest
from admission.templates.template_objects import SchedulerConfigBinding
from tests.admission.templates.manifests import Manifest, binding
from tests.admission.templates.random_templates import random_manifests, random_pod


def _read(manifest: Manifest) -> SchedulerConfigBinding:
    found = object_from_manifest(manifest)
    assert isinstance(found, SchedulerConfigBinding)
    return found


METADATA: dict[str, Any] = {
    "name": "cart-7d9f8b6c5d-x2x4z",
    "labels": {"app": "cart", "pod-template-hash": "7d9f8b6c5d", "empty": ""},
    "annotations": {"team": "checkout"},
    "ownerReferences": [{"kind": "ReplicaSet", "name": "cart-7d9f8b6c5d", "uid": "u", "controller": True}],
}


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ({"namespaces": ["shop"]}, True),
        ({"namespaces": ["search"]}, False),
        ({"selector": {}}, True),
        ({"selector": {"matchLabels": {"app": "cart", "empty": ""}}}, True),
        ({"selector": {"matchLabels": {"missing": ""}}}, False),
        ({"selector": {"matchExpressions": [{"key": "missing", "operator": "NotIn", "values": ["x"]}]}}, True),
        ({"selector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["cart"]}]}}, False),
        ({"selector": {"matchExpressions": [{"key": "missing", "operator": "DoesNotExist"}]}}, True),
        ({"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}, True),
        ({"annotations": {"team": "checkout"}}, True),
        ({"annotations": {"team": "search"}}, False),
        ({"owner": {"kind": "Deployment", "name": "cart"}}, True),
        ({"owner": {"kind": "Deployment"}}, True),
        ({"owner": {"kind": "Deployment", "name": "web"}}, False),
        ({"owner": {"kind": "ReplicaSet"}}, False),
        ({"namespaceSelector": {"matchLabels": {"team": "shop"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "search"}}}, False),
        ({"namespaces": ["shop"], "annotations": {"team": "search"}}, False),
    ],
)
def test_named_cases(pods: dict[str, Any], expected: bool) -> None:
    conditions = _read(binding(pods=pods)).pods
    facts = pod_facts(METADATA, "shop", {"team": "shop"})
    assert means(conditions, facts) is expected
    assert BindingIndex([(conditions, "it")]).meaning(facts) == (["it"] if expected else [])


def test_without_known_labels_no_namespace_is_selected_but_by_an_empty_selector() -> None:
    unknown = pod_facts(METADATA, "shop", None)
    absent = {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}
    assert not means(_read(binding(pods={"namespaceSelector": absent})).pods, unknown)
    assert means(_read(binding(pods={"namespaceSelector": {}})).pods, unknown)


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ({"kind": "StatefulSet", "name": "db", "controller": True}, ("StatefulSet", "db")),
        ({"kind": "Job", "name": "night-29000000", "controller": True}, ("CronJob", "night")),
        ({"kind": "ReplicaSet", "name": "bare", "controller": True}, ("ReplicaSet", "bare")),
        ({"kind": "StatefulSet", "name": "db"}, ("", "")),
        ({"kind": "StatefulSet", "name": "d/b", "controller": True}, ("", "")),
        ({"kind": 3, "name": None, "controller": True}, ("", "")),
    ],
)
def test_the_top_owner_is_that_of_the_services(reference: dict[str, Any], expected: tuple[str, str]) -> None:
    facts = pod_facts({"generateName": "x-", "labels": {}, "ownerReferences": [reference]}, "shop", None)
    assert (facts.owner_kind, facts.owner_name) == expected


@given(st.integers(0, 2**48))
def test_the_index_finds_what_the_slow_loop_finds(seed: int) -> None:
    rng = random.Random(seed)
    bindings = [_read(one) for one in random_manifests(rng, n_bindings=rng.randint(0, 30))[4:]]
    index = BindingIndex((one.pods, one.name) for one in bindings)
    for _ in range(5):
        namespace, labels = rng.choice(["default", "search"]), rng.choice([None, {}, {"team": "shop"}])
        facts = pod_facts(random_pod(rng)["metadata"], namespace, labels)
        assert index.meaning(facts) == [one.name for one in bindings if means(one.pods, facts)]
