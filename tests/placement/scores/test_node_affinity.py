"""Table of framework/plugins/nodeaffinity/node_affinity_test.go."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from placement.scores.node_affinity import NodeAffinityScore
from testing.placement.views import node_named, pod_with, scores, view_of

Json = dict[str, Any]

LABELS = {
    1: {"foo": "bar"},
    2: {"key": "value"},
    3: {"az": "az1"},
    4: {"abc": "az11", "def": "az22"},
    5: {"foo": "bar", "key": "value", "az": "az1"},
}


def preferred(weight: int, **labels: str) -> Json:
    expressions = [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items()]
    return {"weight": weight, "preference": {"matchExpressions": expressions}}


def spec(*terms: Json) -> Json:
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": list(terms)}}}


ONE = [preferred(2, foo="bar")]
THREE = [preferred(2, foo="bar"), preferred(4, key="value"), preferred(5, foo="bar", key="value", az="az1")]


@pytest.mark.parametrize(
    ("terms", "nodes", "expected"),
    [
        pytest.param(ONE, [4, 2, 3], [0, 0, 0], id="no node matches"),
        pytest.param(ONE, [1, 2, 3], [100, 0, 0], id="only node1 matches"),
        pytest.param(THREE, [1, 5, 2], [18, 100, 36], id="nodes match with different weights"),
        pytest.param([preferred(7)], [1, 2], [0, 0], id="an empty term matches nothing"),
        pytest.param(
            [preferred(2, **{"invalid key": "bar"}), preferred(1, key="value")], [1, 2], [0, 100], id="broken"
        ),
    ],
)
def test_upstream(terms: list[Json], nodes: list[int], expected: list[int]) -> None:
    view = view_of([node_named(f"node{number}", labels=LABELS[number]) for number in nodes])

    assert list(scores(NodeAffinityScore(), pod_with(spec(*terms)), view).values()) == expected


@pytest.mark.parametrize(("weight", "expected"), [(-5, 0), (0, 0), (10**30, 100)])
def test_weights_that_no_api_server_accepts(weight: int, expected: int) -> None:
    pod = pod_with(spec(*ONE))
    (term,) = pod.constraints.preferred_node_terms
    odd = replace(pod, constraints=replace(pod.constraints, preferred_node_terms=(replace(term, weight=weight),)))

    assert scores(NodeAffinityScore(), odd, view_of([node_named("n", labels=LABELS[1])])) == {"n": expected}
