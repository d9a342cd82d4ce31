"""Columns in the whole units in which kube-scheduler compares."""

from __future__ import annotations

import pytest

from kube.tables.columns import whole_units
from kube.tables.state import ClusterState
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
