"""Table of framework/plugins/schedulinggates/scheduling_gates_test.go."""

from __future__ import annotations

from placement.filters.scheduling_gates import SchedulingGates
from testing.placement.views import PASSES, Verdict, node_named, pod_with, verdict


def test_a_pod_without_gates_passes() -> None:
    assert verdict(SchedulingGates(), pod_with({"schedulingGates": []}), node_named("n")) == PASSES


def test_gates_are_named() -> None:
    pod = pod_with({"schedulingGates": [{"name": "foo"}, {"name": "bar"}]})

    assert verdict(SchedulingGates(), pod, node_named("n")) == Verdict.no("waiting for scheduling gates: [foo bar]")


def test_the_gate_of_who_asks_is_open_and_others_are_not() -> None:
    asks, node = SchedulingGates("ours"), node_named("n")
    assert verdict(asks, pod_with({"schedulingGates": [{"name": "ours"}]}), node) == PASSES
    pod = pod_with({"schedulingGates": [{"name": "foo"}, {"name": "ours"}, {"name": "bar"}]})
    assert verdict(asks, pod, node) == Verdict.no("waiting for scheduling gates: [foo bar]")
    assert verdict(SchedulingGates(), pod, node) == Verdict.no("waiting for scheduling gates: [foo ours bar]")
