from __future__ import annotations

from dataclasses import replace

import pytest

from forecast.service_key import Owner
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
        pytest.param("", [PASSES, PASSES, RESERVED, RESERVED], id="an empty annotation"),
        pytest.param(" , ,", [PASSES, PASSES, RESERVED, RESERVED], id="only commas"),
        pytest.param("batch", [ELSEWHERE, ELSEWHERE, PASSES, RESERVED], id="names one"),
        pytest.param("edge, batch", [ELSEWHERE, ELSEWHERE, PASSES, PASSES], id="names two"),
        pytest.param("Batch", [ELSEWHERE, ELSEWHERE, RESERVED, RESERVED], id="names nobody's"),
        pytest.param("x," * 100_000, [ELSEWHERE, ELSEWHERE, RESERVED, RESERVED], id="a long list"),
    ],
)
def test_it_works_both_ways(groups: str | None, expected: list[Verdict]) -> None:
    assert list(verdicts(MachineGroup(), pod(groups), VIEW).values()) == expected


def test_pods_of_a_daemon_set_go_everywhere() -> None:
    assert not MachineGroup().filter(replace(pod("batch"), owner=Owner("DaemonSet", "agent")), VIEW)


def test_a_cluster_without_groups() -> None:
    view = view_of([node_named("a")])

    assert not MachineGroup().filter(pod(None), view)
    assert verdicts(MachineGroup(), pod("batch"), view) == {"a": ELSEWHERE}
