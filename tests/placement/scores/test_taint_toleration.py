"""Table of framework/plugins/tainttoleration/taint_toleration_test.go, with the gates as they are by default."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kube.objects.objects import Taint
from placement.scores.taint_toleration import TaintTolerationScore
from testing.placement.views import node_named, pod_with, scores, view_of

SOFT, HARD = "PreferNoSchedule", "NoSchedule"


def tolerates(key: str, value: str, effect: str) -> dict[str, Any]:
    return {"key": key, "operator": "Equal", "value": value, "effect": effect}


CPU, DISK = Taint("cpu-type", "arm64", SOFT), Taint("disk-type", "ssd", SOFT)
BOTH = [tolerates("cpu-type", "arm64", SOFT), tolerates("disk-type", "ssd", SOFT)]


@pytest.mark.parametrize(
    ("tolerations", "taints", "expected"),
    [
        pytest.param(
            [tolerates("foo", "bar", SOFT)], [[Taint("foo", "bar", SOFT)], [Taint("foo", "blah", SOFT)]], [100, 0],
            id="tolerated taints are better",
        ),
        pytest.param(BOTH, [[], [CPU], [CPU, DISK]], [100, 100, 100], id="how many are tolerated does not matter"),
        pytest.param(
            [tolerates("foo", "bar", SOFT)], [[], [CPU], [CPU, DISK]], [100, 50, 0], id="the count of others does"
        ),
        pytest.param(
            [tolerates("cpu-type", "arm64", HARD), tolerates("disk-type", "ssd", HARD)],
            [[], [Taint("cpu-type", "arm64", HARD)], [CPU, DISK]],
            [100, 100, 0],
            id="only PreferNoSchedule counts, of taints and tolerations",
        ),
        pytest.param(
            [{"key": "sla", "operator": "Gt", "value": "950", "effect": SOFT}],
            [[Taint("sla", "800", SOFT)], [Taint("sla", "999", SOFT)], []],
            [0, 0, 100],
            id="Gt is off by default",
        ),
    ],
)  # fmt: skip
def test_upstream(tolerations: list[dict[str, Any]], taints: list[list[Taint]], expected: list[int]) -> None:
    view = view_of([node_named(f"n{i}", taints=of_node) for i, of_node in enumerate(taints)])

    found = scores(TaintTolerationScore(), pod_with({"tolerations": tolerations}), view)

    assert list(found.values()) == expected


def test_only_nodes_that_passed_count() -> None:
    view = view_of([node_named("a", taints=[CPU]), node_named("b", taints=[CPU, DISK]), node_named("c")])

    assert TaintTolerationScore().score(pod_with(), view, np.array([0, 2])).tolist() == [0, 100]
    assert TaintTolerationScore().score(pod_with(), view, np.array([2])).tolist() == [100]
    assert TaintTolerationScore().score(pod_with(), view, np.zeros(0, dtype=np.int64)).tolist() == []
