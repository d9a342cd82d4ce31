"""What no request takes on each node."""

from __future__ import annotations

from autoscaling.requests.resizing import free_on_nodes
from cluster.live_tables import LiveTables
from kube.decoding.decoding import Kind
from testing.objects import node_info, pod_info

GIB = 2.0**30


def test_room_is_what_is_allocatable_less_requests_and_never_negative() -> None:
    tables = LiveTables(clock=lambda: 0.0)
    amounts = {"cpu": 4.0, "memory": 8 * GIB, "pods": 110.0}
    tables.replace(Kind.NODES, [node_info("a", allocatable=amounts), node_info("b", allocatable=amounts)])
    tables.replace(
        Kind.PODS,
        [
            pod_info("one", node="a", requests={"cpu": 1.5, "memory": GIB}),
            pod_info("two", node="b", requests={"cpu": 5.0, "memory": GIB}),
        ],
    )
    assert free_on_nodes(tables) == {"a": (2.5, 7 * GIB), "b": (0.0, 7 * GIB)}
