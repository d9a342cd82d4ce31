"""Marks on nodes of a real API server: set, renewed, removed, whatever happens in between; marks of others stay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from autoscaling.nodes.guard import NodesNow
from autoscaling.nodes.guard_hand import GuardHand, nodes_now
from autoscaling.nodes.node_marks import KEPT_UNTIL, kept_until
from autoscaling.nodes.options import GuardOptions
from autoscaling.nodes.pods_ahead import BUFFER_LABEL
from forecast.service_key import Owner
from kube.decoding.decoding import Kind
from kube.objects.objects import ReplicaSetInfo, Taint
from kube.session.api_session import ApiSession
from scorer.live_tables import LiveTables
from testing.objects import node_info, pod_info
from testing.servers.cluster_objects import ClusterWriter, node
from testing.servers.control_plane.control_plane import ControlPlane
from tests.autoscaling.nodes.conftest import Api, Counting, Killed, refusal
from tests.autoscaling.nodes.made_up import GIB, at, nodes_with, ramp, services_ahead

OPTIONS = GuardOptions(margin=0.0, fill=1.0, slack=0.0, most_share=1.0)
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

    def now(self) -> NodesNow:
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


def test_two_at_once_agree(api: Api, nodes: Nodes) -> None:
    for now, wanted in ((RAMP, ["n1", "n2", "n3", "n4"]), (VALLEY, []), (RAMP, ["n1", "n2", "n3", "n4"])):
        for one in [api.session.submit(hand_of(api.session, nodes).act(AHEAD, now)) for _ in range(2)]:
            one.result(60)
        api.run(hand_of(api.session, nodes).act(AHEAD, now))
        assert nodes.marked() == wanted


def test_marks_of_others_stay_and_their_nodes_are_not_ours(api: Api, nodes: Nodes) -> None:
    nodes.annotate("n4", **{KARPENTER: "true"})
    nodes.annotate("n3", **{CLUSTER_AUTOSCALER: "true"})
    hand = hand_of(api.session, nodes)
    api.run(hand.act(AHEAD, RAMP))
    api.run(hand.act(AHEAD, RAMP))  # what it has learned: two nodes hold their share without us
    assert nodes.marked() == ["n1", "n2"]
    api.run(hand.act(AHEAD, VALLEY))
    api.run(hand.retreat())
    assert [one for one in nodes.annotations().values() if one] == [{CLUSTER_AUTOSCALER: "true"}, {KARPENTER: "true"}]


def test_what_others_changed_of_a_mark_stays_as_they_left_it(api: Api, nodes: Nodes) -> None:
    hand = hand_of(api.session, nodes)
    api.run(hand.act(AHEAD, RAMP))
    nodes.annotate("n4", **{KARPENTER: "false"})
    api.run(hand.retreat())
    assert nodes.annotations()["n4"] == {KARPENTER: "false"}


def test_a_mark_with_an_unreadable_time_is_ours_and_over(api: Api, nodes: Nodes) -> None:
    nodes.annotate("n4", **{KEPT_UNTIL: "soon", KARPENTER: "true", CLUSTER_AUTOSCALER: "true"})
    api.run(hand_of(api.session, nodes).act(AHEAD, VALLEY))
    assert nodes.annotations()["n4"] == {}


def test_a_node_that_another_writes_to_meanwhile_waits_for_the_next_call(api: Api, nodes: Nodes) -> None:
    class Interfering(Counting):
        """Another client writes to a node between our reading and our patch of it."""

        async def request(self, method: str, path: str, body: bytes | None, **more: Any) -> Any:
            if method == "PATCH" and not self.writes:
                await api.session.request(
                    "PATCH",
                    path,
                    b'{"metadata": {"labels": {"theirs": "now"}}}',
                    content_type="application/merge-patch+json",
                    seconds=30,
                )
            return await super().request(method, path, body, **more)

    api.run(hand_of(Interfering(api.session), nodes).act(AHEAD, RAMP))
    assert len(nodes.marked()) in (0, 1, 2, 3)
    api.run(hand_of(api.session, nodes).act(AHEAD, RAMP))
    assert len(nodes.marked()) == 4


def test_no_rights_is_an_error_with_the_way_out(api: Api, nodes: Nodes, powerless: ApiSession) -> None:
    for work in (hand_of(powerless, nodes).act(AHEAD, RAMP), hand_of(powerless, nodes).retreat()):
        text = refusal(powerless, work)
        assert "forbidden" in text and "autoscaler-writes/rbac.yaml" in text


def test_after_a_restart_of_the_api_server_it_goes_on(plane: ControlPlane, api: Api, nodes: Nodes) -> None:
    before = nodes.now()
    hand = GuardHand(api.session, lambda: before, OPTIONS, seconds=2)
    plane.api_server.stop()
    assert "tried again" in refusal(api.session, hand.act(AHEAD, RAMP))
    plane.api_server.start()
    api.run(hand.act(AHEAD, RAMP))
    assert len(nodes.marked()) == 4


def test_a_node_that_is_gone_is_no_error(api: Api, nodes: Nodes) -> None:
    before = replace(nodes.now(), names=("n0", "n1", "gone", "n3", "n4"))
    api.run(GuardHand(api.session, lambda: before, OPTIONS).act(AHEAD, RAMP))
    assert nodes.marked() == ["n1", "n3", "n4"]


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
        [pod_info("p", node="a", requests=requests), pod_info("q", node="a", requests=requests, **placeholder)],
    )
    found = nodes_now(tables)
    assert found.names == ("a", "b", "c", "d", "e")
    assert found.usable.tolist() == [True, False, False, False, True]
    assert found.until.tolist() == [at(11), 0, 0, 0, 0]
    assert found.requested[0].tolist() == [2.0, GIB] and not found.requested[1:].any()
    assert np.array_equal(found.allocatable, np.tile([10.0, 20 * GIB], (5, 1)))
