"""Columns in the whole units in which kube-scheduler compares."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kube.decoding.decoding import decode_pod
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


def test_more_nodes_and_resources_than_there_was_room_for() -> None:
    state = ClusterState()
    kinds = [f"example.com/device-{i}" for i in range(30)]
    for i in range(200):
        state.put_node(node(f"n{i}", **{kinds[i % 30]: float(i)}))

    for i in range(200):
        assert state.allocatable_units[state.row_of[f"n{i}"], state.kinds[kinds[i % 30]]] == i


def test_a_row_that_is_used_again_starts_from_nothing() -> None:
    state = ClusterState()
    state.put_node(node("old", **{"nvidia.com/gpu": 8.0}))
    state.delete_node("old")
    assert not state.allocatable_units.any()

    state.put_node(replace(node("new"), allocatable={"pods": 5.0}))
    assert state.row_of["new"] == 0
    assert state.allocatable_units[0].tolist() == [5 if kind == "pods" else 0 for kind in state.kinds]


def test_image_volumes_are_told_from_containers() -> None:
    spec = {
        "containers": [{"name": "a", "image": "x"}],
        "initContainers": [{"name": "b", "image": "y"}],
        "volumes": [{"name": "v", "image": {"reference": "z"}}, {"name": "w", "emptyDir": {}}],
    }
    decoded = decode_pod({"metadata": {"name": "p"}, "spec": spec})

    assert (decoded.images, decoded.image_volumes) == (("y", "x", "z"), 1)
