"""Table of framework/plugins/schedulinggates/scheduling_gates_test.go."""

from __future__ import annotations

from placement.filters.scheduling_gates import SchedulingGates
from testing.placement.views import PASSES, Verdict, node_named, pod_with, verdict


def test_a_pod_without_gates_passes() -> None:
    assert verdict(SchedulingGates(), pod_with({"schedulingGates": []}), node_named("n")) == PASSES


def test_gates_are_named() -> None:
    pod = pod_with({"schedulingGates": [{"name": "foo"}, {"name": "bar"}]})

    assert verdict(SchedulingGates(), pod, node_named("n")) == Verdict.no("waiting for scheduling gates: [foo bar]")
