"""Marks on nodes of a real API server: set, renewed, removed, whatever happens in between; marks of others stay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from autoscaling.autoscale_settings import GuardOptions
from autoscaling.nodes.guard import KEPT_UNTIL, GuardedNodes, kept_until
from autoscaling.nodes.guard_hand import GuardHand, nodes_now
from autoscaling.services_ahead import BUFFER_LABEL
from cluster.live_tables import LiveTables
from forecast.service_key import Owner
from kube.decoding.decoding import Kind
from kube.objects.objects import ReplicaSetInfo, Taint
from testing.constants import with_constants
from testing.objects import node_info, pod_info
from testing.servers.cluster_objects import ClusterWriter, node
from testing.servers.control_plane.control_plane import ControlPlane
from tests.autoscaling.conftest import Api
from tests.autoscaling.nodes.made_up import GIB, at, nodes_with, ramp, services_ahead
from tests.autoscaling.sessions import Counting, Killed

OPTIONS = with_constants(GuardOptions(), margin=0.0, fill=1.0, slack=0.0, most_share=1.0)
AHEAD = services_ahead([10], [ramp(10, 40)])
RAMP, VALLEY = at(7), at(1)
KARPENTER, CLUSTER_AUTOSCALER = "karpenter.sh/do-not-disrupt", "cluster-autoscaler.kubernetes.io/scale-down-disabled"


class Nodes:
    """Five nodes of ten cores on the API server, of which four are needed for the ramp."""

    def __init__(self, writer: ClusterWriter) -> None:
        self._writer = writer  # not the session: a hand asks for the nodes in the loop of the session

    def annotations(self) -> dict[str, dict[str, str]]:
        listed = self._writer.list_all("nodes")
        found = {one["metadata"]["name"]: one["metadata"].get("annotations", {}) for one in listed}
        return dict(sorted(found.items()))

    def marked(self) -> list[str]:
        """Names of nodes with a whole mark of ours; none may have half of one."""
        found = []
        for name, there in self.annotations().items():
            if KEPT_UNTIL in there:
                assert there[KARPENTER] == there[CLUSTER_AUTOSCALER] == "true"
                found.append(name)
        return found

    def now(self) -> GuardedNodes:
        """As the live tables would have them: the fuller the higher the number."""
        until = [kept_until(one) for one in self.annotations().values()]
        return nodes_with([1.0, 1.5, 2.0, 2.5, 3.0][: len(until)], until=until)

    def annotate(self, name: str, **annotations: Any) -> None:
        self._writer.patch({"kind": "Node", "metadata": {"name": name}}, {"metadata": {"annotations": annotations}})


@pytest.fixture
def nodes(plane: ControlPlane) -> Iterator[Nodes]:
    with ClusterWriter(plane) as writer:
        writer.create_many(node(f"n{i}", cpu="10") for i in range(5))
        yield Nodes(writer)
        writer.delete_many(writer.list_all("nodes"))


def hand_of(session: Any, nodes: Nodes) -> GuardHand:
    return GuardHand(session, nodes.now, OPTIONS, seconds=5)


def test_marks_come_before_the_ramp_and_go_in_the_valley(api: Api, nodes: Nodes) -> None:
    hand = hand_of(api.session, nodes)
    api.run(hand.act(AHEAD, RAMP))
    assert nodes.marked() == ["n1", "n2", "n3", "n4"] and hand.kept == 4
    assert nodes.annotations()["n4"][KEPT_UNTIL] == "2026-03-02T11:00:00Z"
    api.run(hand.act(AHEAD, VALLEY))
    assert nodes.marked() == [] and not any(nodes.annotations().values())


def test_marks_are_renewed_when_half_of_their_time_is_over_and_not_before(api: Api, nodes: Nodes) -> None:
    counting = Counting(api.session)
    hand = hand_of(counting, nodes)
    api.run(hand.act(AHEAD, RAMP))
    api.run(hand.act(AHEAD, RAMP + 3600))
    assert counting.writes == 4
    api.run(hand.act(AHEAD, RAMP + 2.5 * 3600))
    assert counting.writes == 8
    assert nodes.annotations()["n4"][KEPT_UNTIL] == "2026-03-02T13:30:00Z"


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("dies_at", range(4))
def test_another_goes_on_after_a_kill_at_any_write(api: Api, nodes: Nodes, dies_at: int, after: bool) -> None:
    with pytest.raises(Killed):
        api.run(hand_of(Counting(api.session, dies_at=dies_at, after=after), nodes).act(AHEAD, RAMP))
    nodes.marked()  # at no time half a mark
    api.run(hand_of(api.session, nodes).act(AHEAD, RAMP))
    assert nodes.marked() == ["n1", "n2", "n3", "n4"]
    with pytest.raises(Killed):
        api.run(hand_of(Counting(api.session, dies_at=dies_at, after=after), nodes).retreat())
    nodes.marked()
    api.run(hand_of(api.session, nodes).retreat())
    assert not any(nodes.annotations().values())


def test_marks_of_others_stay_and_their_nodes_are_not_ours(api: Api, nodes: Nodes) -> None:
    nodes.annotate("n4", **{KARPENTER: "true"})
    nodes.annotate("n3", **{CLUSTER_AUTOSCALER: "true"})
    hand = hand_of(api.session, nodes)
    api.run(hand.act(AHEAD, RAMP))
    api.run(hand.act(AHEAD, RAMP))  # what it has learned: two nodes hold their share without us
    assert nodes.marked() == ["n1", "n2"]
    nodes.annotate("n0", **{KEPT_UNTIL: "soon", KARPENTER: "true", CLUSTER_AUTOSCALER: "true"})  # ours, and over
    api.run(hand.act(AHEAD, VALLEY))
    assert [one for one in nodes.annotations().values() if one] == [{CLUSTER_AUTOSCALER: "true"}, {KARPENTER: "true"}]
    api.run(hand.act(AHEAD, RAMP))
    nodes.annotate("n2", **{KARPENTER: "false"})  # what they change of a mark of ours stays, too
    api.run(hand.retreat())
    assert nodes.annotations()["n2"] == {KARPENTER: "false"}


def test_a_node_that_another_writes_to_meanwhile_waits_for_the_next_call(api: Api, nodes: Nodes) -> None:
    def write_to_all() -> None:
        """Between our reading and our patch of the first."""
        for number in range(5):
            nodes.annotate(f"n{number}", theirs="now")

    api.run(hand_of(Counting(api.session, meddle=write_to_all), nodes).act(AHEAD, RAMP))
    assert len(nodes.marked()) in (0, 1, 2, 3)
    api.run(hand_of(api.session, nodes).act(AHEAD, RAMP))
    assert len(nodes.marked()) == 4


def test_nodes_of_the_live_tables() -> None:
    tables = LiveTables(clock=lambda: at(7))
    allocatable = {"cpu": 10.0, "memory": 20 * GIB, "pods": 110.0}
    candidate = Taint("DeletionCandidateOfClusterAutoscaler", "1772438400", "PreferNoSchedule")
    tables.replace(
        Kind.NODES,
        [
            node_info("a", allocatable=allocatable, annotations={KEPT_UNTIL: "2026-03-02T11:00:00Z"}),
            node_info("b", allocatable=allocatable, unschedulable=True),
            node_info("c", allocatable=allocatable, ready=False),
            node_info("d", allocatable=allocatable, taints=(Taint("karpenter.sh/disrupted", "", "NoSchedule"),)),
            # It may be removed in ten minutes: the mark comes in time.
            node_info("e", allocatable=allocatable, taints=(candidate,)),
        ],
    )
    deployment = Owner("Deployment", "forecast-buffer-x")
    tables.replace(
        Kind.REPLICA_SETS, [ReplicaSetInfo("u", "forecast-scheduler", "forecast-buffer-x-1", deployment, 1, 1, 0.0)]
    )
    placeholder = {"labels": {BUFFER_LABEL: "x"}, "owner": Owner("ReplicaSet", "forecast-buffer-x-1"), "owner_uid": "u"}
    requests = {"cpu": 2.0, "memory": GIB}
    tables.replace(
        Kind.PODS,
        [
            pod_info("p", node="a", requests=requests),
            pod_info("q", node="a", requests=requests, **placeholder),
            pod_info("absurd", node="b", requests={"cpu": 1e18, "memory": 1e15}),  # its node is full, and no more
        ],
    )
    found = nodes_now(tables)
    assert found.names == ("a", "b", "c", "d", "e")
    assert found.usable.tolist() == [True, False, False, False, True]
    assert found.until.tolist() == [at(11), 0, 0, 0, 0]
    assert found.requested[:2].tolist() == [[2.0, GIB], [10.0, 20 * GIB]] and not found.requested[2:].any()
    assert np.array_equal(found.allocatable, np.tile([10.0, 20 * GIB], (5, 1)))
