"""Columns in the whole units in which kube-scheduler compares."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cluster.tables.columns import whole_units
from cluster.tables.self_check import drifts, observe
from cluster.tables.state import ClusterState
from tests.kube.api_objects import node, pod


@pytest.mark.parametrize(
    ("kind", "amount", "expected"),
    [
        ("cpu", 0.57, 570),
        ("cpu", 0.1 + 0.2, 300),
        ("cpu", 0.0001, 1),
        ("memory", 0.5, 1),
        ("memory", 2.0**40, 2**40),
        ("nvidia.com/gpu", 8.0, 8),
        ("cpu", 0.0, 0),
        ("memory", 1e30, 2**62),
        ("memory", -1e30, -(2**62)),
    ],
)
def test_rounded_up(kind: str, amount: float, expected: int) -> None:
    assert whole_units(kind, amount) == expected


def test_nodes_and_pods_in_the_same_units() -> None:
    state = ClusterState()
    state.put_node(node("n", cpu=3.92, memory=1000.5))
    state.put_pod(pod("a", node="n", requests={"cpu": 0.1, "memory": 1.0}))
    state.put_pod(pod("b", node="n", requests={"cpu": 0.2}))
    cpu, memory, pods = (state.kinds[kind] for kind in ("cpu", "memory", "pods"))

    assert state.allocatable_units[0, [cpu, memory, pods]].tolist() == [3920, 1001, 110]
    assert state.requested_units[0, [cpu, memory]].tolist() == [300, 1]

    state.delete_pod("uid-a")
    assert state.requested_units[0, [cpu, memory]].tolist() == [200, 0]


def test_ten_thousand_absurd_pods_on_a_node_overflow_nothing_and_leave_no_trace() -> None:
    state = ClusterState()
    state.put_node(node("n", cpu=4.0))
    state.put_pod(pod("honest", node="n", requests={"cpu": 1.0, "memory": 2.0}))
    absurd = [pod(f"a{i}", node="n", requests={"cpu": 1e18, "memory": 2.0**63 - 1}) for i in range(10_000)]
    for one in absurd:
        state.put_pod(one)
    requested = state.requested_units[0, :2]
    assert (requested == 2**62).all() and (state.allocatable_units[0, :2] - requested < 0).all()
    assert np.isfinite(state.requested).all() and not list(drifts(observe(state)))
    for one in absurd:
        state.delete_pod(one.uid)
    assert state.requested_units[0, :2].tolist() == [1000, 2] and not list(drifts(observe(state)))


def test_absurd_pods_that_are_seated_together_overflow_nothing() -> None:
    state = ClusterState()
    waiting = [pod(f"a{i}", requests={"cpu": 1e18}) for i in range(10_000)]
    for one in waiting:
        state.put_pod(one)
    state.put_node(node("n", cpu=4.0))
    state.seat_all([replace(one, node="n") for one in waiting], [0] * len(waiting))
    assert state.requested_units[0, 0] == 2**62 and state.pod_count[0] == 10_000
