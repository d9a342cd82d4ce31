from __future__ import annotations

import pytest

from kube.objects.objects import PodInfo
from placement.machine_groups.machine_group import MachineGroup
from testing.placement.views import PASSES, Verdict, node_named, pod_with, verdicts, view_of

KEY = "forecast-scheduler.io/machine-group"
RESERVED = Verdict.no("node(s) belonged to a machine group that the pod does not name")
ELSEWHERE = Verdict.no("node(s) belonged to no machine group, the pod names one")

VIEW = view_of(
    [
        node_named("plain"),
        node_named("empty", labels={KEY: ""}),
        node_named("batch", labels={KEY: "batch"}),
        node_named("edge", labels={KEY: "edge"}),
    ]
)


def pod(groups: str | None) -> PodInfo:
    return pod_with(annotations={} if groups is None else {KEY: groups})


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        pytest.param(None, [PASSES, PASSES, RESERVED, RESERVED], id="names none"),
        pytest.param(" , ,", [PASSES, PASSES, RESERVED, RESERVED], id="only commas"),
        pytest.param("edge, batch", [ELSEWHERE, ELSEWHERE, PASSES, PASSES], id="names two"),
        pytest.param("Batch", [ELSEWHERE, ELSEWHERE, RESERVED, RESERVED], id="names nobody's"),
        pytest.param("x," * 100_000, [ELSEWHERE, ELSEWHERE, RESERVED, RESERVED], id="a long list"),
    ],
)
def test_it_works_both_ways(groups: str | None, expected: list[Verdict]) -> None:
    assert list(verdicts(MachineGroup(), pod(groups), VIEW).values()) == expected
