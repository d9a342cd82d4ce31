"""What kube-scheduler 1.36 makes of an extender's points: nothing is clamped, a node left out of the answer has 0."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pytest

from placement.node_order import ORDER_POINTS
from testing.servers.cluster_objects import ClusterWriter, node, pod
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.servers.control_plane.pool import control_plane
from testing.servers.probe_extender import ProbeExtender


@dataclass
class Chooser:
    """Two nodes: `roomy` is empty, `busy` nearly full, so that kube-scheduler prefers `roomy` by far."""

    writer: ClusterWriter
    probe: ProbeExtender
    names: list[str] = field(default_factory=list)

    def chosen(self, points: Mapping[str, int]) -> str:
        """Where a new pod would have been bound, with these points in the answer of /prioritize."""
        self.probe.points = dict(points)
        self.names.append(f"probe-{len(self.names)}")
        uid = self.writer.create(pod(self.names[-1]))["metadata"]["uid"]
        deadline = time.monotonic() + 30
        while uid not in self.probe.chosen:
            assert time.monotonic() < deadline, "kube-scheduler chose no node"
            time.sleep(0.02)
        return self.probe.chosen[uid]


@pytest.fixture(scope="module")
def chooser() -> Iterator[Chooser]:
    with ProbeExtender() as probe, control_plane() as plane, ClusterWriter(plane) as writer:
        writer.create_many([node("roomy"), node("busy")])
        writer.create(pod("sits", node="busy", cpu="14", memory="10Gi"))
        with KubeScheduler(plane, [probe.settings("prioritize", "bind")], settings={"podInitialBackoffSeconds": 10}):
            yield Chooser(writer, probe)


def test_negative_points_move_the_choice_away(chooser: Chooser) -> None:
    assert chooser.chosen({}) == "roomy"
    # Clamped to 0 they would change nothing; `busy`, which is left out, has 0.
    assert chooser.chosen({"roomy": -100}) == "busy"


def test_points_beyond_the_nominal_ten_count_in_full(chooser: Chooser) -> None:
    assert chooser.chosen({"roomy": 10, "busy": 40}) == "busy"
    assert chooser.chosen({"roomy": -40, "busy": -10}) == "busy"


def test_points_that_put_pools_in_order_count_in_full(chooser: Chooser) -> None:
    assert chooser.chosen({"roomy": -20 * ORDER_POINTS, "busy": -19 * ORDER_POINTS}) == "busy"
