"""Table of framework/plugins/nodeunschedulable/node_unschedulable_test.go."""

from __future__ import annotations

from typing import Any

import pytest

from placement.filters.node_unschedulable import NodeUnschedulable
from testing.placement.views import PASSES, Verdict, node_named, pod_with, verdict

KEY = "node.kubernetes.io/unschedulable"


@pytest.mark.parametrize(
    ("tolerations", "unschedulable", "expected"),
    [
        pytest.param([], True, Verdict.no("node(s) were unschedulable"), id="cordoned"),
        pytest.param([], False, PASSES, id="normal"),
        pytest.param([{"key": KEY, "effect": "NoSchedule"}], True, PASSES, id="tolerates the taint"),
        pytest.param([{"operator": "Exists"}], True, PASSES, id="tolerates everything"),
        pytest.param(
            [{"key": KEY, "effect": "NoExecute"}],
            True,
            Verdict.no("node(s) were unschedulable"),
            id="tolerates another effect",
        ),
    ],
)
def test_upstream(tolerations: list[dict[str, Any]], unschedulable: bool, expected: Verdict) -> None:
    node = node_named("n", unschedulable=unschedulable)

    assert verdict(NodeUnschedulable(), pod_with({"tolerations": tolerations}), node) == expected
