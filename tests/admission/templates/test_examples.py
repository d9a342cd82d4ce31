"""The examples in deploy/crds/examples do what is written above them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.admission.templates.manifests import Manifest, example_manifests, template_set
from tests.admission.templates.shaping_pods import PREFERRED, REQUIRED, on, shaped, term

IN_OTHER_ZONES = {"labelSelector": {}, "topologyKey": "topology.kubernetes.io/zone", "matchLabelKeys": ["app"]}


def pod(**metadata: Any) -> Manifest:
    return {"metadata": {"name": "pod"} | metadata, "spec": {}}


def owned(deployment: str) -> dict[str, Any]:
    owner = {"kind": "ReplicaSet", "name": f"{deployment}-7d9f8b6c5d", "uid": "u", "controller": True}
    return {"labels": {"pod-template-hash": "7d9f8b6c5d"}, "ownerReferences": [owner]}


@pytest.mark.parametrize(
    ("one", "namespace", "expected"),
    [
        (
            pod(**owned("cart")),
            "shop",
            {
                "nodeAffinity": {
                    REQUIRED: {"nodeSelectorTerms": [term(on("pool", "fast", "general"))]},
                    PREFERRED: [{"weight": 50, "preference": term(on("pool", "fast"))}],
                }
            },
        ),
        (pod(**owned("web")), "shop", None),
        (
            pod(labels={"app": "web", "spread": "zones"}),
            "default",
            {"podAntiAffinity": {PREFERRED: [{"weight": 100, "podAffinityTerm": IN_OTHER_ZONES}]}},
        ),
        (pod(labels={"spread": "zones"}), "default", None),
    ],
)
def test_what_becomes_of_a_pod(one: Manifest, namespace: str, expected: dict[str, Any] | None) -> None:
    assert shaped(one, template_set(*example_manifests()), namespace=namespace).affinity == expected


def test_the_examples_leave_pods_out_or_come_together_as_they_say() -> None:
    templates = template_set(*example_manifests())
    inside = shaped(pod(), templates, namespace_labels={})
    assert [one.binding for one in inside.applied] == ["off-the-gpu-nodes"]
    assert not shaped(pod(), templates, namespace_labels={"gpu": "yes"}).applied
    result = shaped(pod(annotations={"example.com/placement": "near-the-cache"}), template_set(*example_manifests()))
    assert result.affinity is not None and set(result.affinity) == {"podAffinity", "nodeAffinity"}
