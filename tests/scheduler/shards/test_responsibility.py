"""Whose turn it is: by hash, by node, by what a replica wrote into the pod, or the leader's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.assuming_cluster import AssumingCluster
from cluster.held_rooms import HeldRoom
from kube.objects.constraints import LabelSelector, NodeSelectorTerm, Operator, PodConstraints, Requirement
from kube.objects.objects import PodInfo
from scheduler.queue.queued_pods import unit_by_owner
from scheduler.shards.assignment import dispatcher
from scheduler.shards.passing_on import PASSED_ON, PassedOn, passed_on
from scheduler.shards.responsibility import Responsibility
from scorer.options import ScorerOptions
from testing.objects import node_info, pod_info

HOLDERS = {0: "a", 1: "b", 2: "c", 3: "a"}
SHARD_OF = {"node-0": 0, "node-1": 1, "node-9": 9}
OWNERS = LabelSelector((Requirement("app", Operator.IN, ("web",)),))


class World:
    """What each of three replicas says of a pod; `leader` leads."""

    def __init__(self, *, passes: int = 1, leader: str = "c") -> None:
        self.cluster, self.reason = AssumingCluster(ScorerOptions(), now=0.0), ""
        self.replicas = {me: self._replica(me, passes, me == leader) for me in "abc"}

    def owner(self, pod: PodInfo) -> str:
        """Return the one replica that decides."""
        deciding = [me for me, one in self.replicas.items() if one.is_mine(pod)]
        assert len(deciding) == 1, deciding
        return deciding[0]

    def is_last(self, pod: PodInfo) -> bool:
        said = {one.is_last(pod) for one in self.replicas.values()}
        assert len(said) == 1
        return said.pop()

    def _replica(self, me: str, passes: int, leads: bool) -> Responsibility:
        one = Responsibility(
            self.cluster,
            me,
            passes=passes,
            shard_of=lambda node: SHARD_OF.get(node, -1),
            unit_of=unit_by_owner,
            reason=lambda pod: self.reason,
            leads=lambda: leads,
        )
        one.use(dispatcher(HOLDERS, {}))
        return one


def of_node(*names: str, **fields: Any) -> PodInfo:
    named = Requirement("metadata.name", Operator.IN, names)
    return pod_info(
        "daemon", constraints=PodConstraints(required_node_terms=(NodeSelectorTerm((), (named,)),)), **fields
    )


def passed(pod: PodInfo, said: PassedOn) -> PodInfo:
    return replace(pod, annotations={PASSED_ON: said.text})


@given(name=st.text(min_size=1), passes=st.integers(0, 4))
def test_a_pod_is_tried_by_one_replica_after_another_and_then_by_the_leader(name: str, passes: int) -> None:
    world, pod = World(passes=passes), pod_info(name)
    order = dispatcher(HOLDERS, {}).in_order(unit_by_owner(pod).key)
    tried = [world.owner(passed(pod, PassedOn(tries))) for tries in range(min(passes + 1, len(order)))]
    assert tried == list(order[: passes + 1])
    last = passed(pod, PassedOn(len(tried)))
    assert world.owner(last) == "c" and world.is_last(last)
    assert not world.is_last(pod)


@pytest.mark.parametrize("node", ["node-9", "unknown"])
def test_a_node_without_a_live_owner_leaves_its_pods_to_the_leader(node: str) -> None:
    world = World()
    assert world.owner(of_node(node)) == "c" and world.is_last(of_node(node))


def test_a_pod_with_a_reserved_room_is_that_of_the_nodes_owner() -> None:
    world = World()
    world.cluster.apply(world.cluster.state.put_node(node_info("node-1", allocatable={"cpu": 4.0, "pods": 110.0})))
    stand_in = pod_info("reservation", node="node-1", stands_in=True)
    pods = [pod_info(f"web-{i}", labels={"app": "web"}) for i in range(30)]
    assert {world.owner(pod) for pod in pods} == set("abc")
    world.cluster.hold_room(HeldRoom(stand_in, OWNERS, 0.0, 1e9))
    assert {world.owner(pod) for pod in pods} == {"b"}


def test_a_pod_that_is_sent_to_a_shard_is_its_owners_and_the_leaders_when_that_one_dies() -> None:
    world = World()
    pods = [passed(pod_info(f"pod-{i}"), PassedOn(3, 1)) for i in range(20)]
    assert {world.owner(pod) for pod in pods} == {"b"}
    for one in world.replicas.values():
        one.use(dispatcher({0: "a", 2: "c"}, {}))
    assert {world.owner(pod) for pod in pods} == {"c"}


@given(said=st.builds(PassedOn, tries=st.integers(0, 1000), shard=st.integers(-1, 255)))
def test_what_was_written_is_read(said: PassedOn) -> None:
    assert passed_on(passed(pod_info("pod"), said)) == said


@pytest.mark.parametrize("text", ["", "x", "-1", "1@x", "@1", "1@-2", "1@2@3", "1.5", "1" * 13, "٣", "²", "1@²", " 1"])
def test_a_damaged_text_says_nothing(text: str) -> None:
    pod = pod_info("pod", annotations={PASSED_ON: text})
    assert passed_on(pod) == PassedOn()
    assert World().owner(pod) == World().owner(pod_info("pod"))


@given(text=st.text(max_size=20))
def test_any_text_is_read_without_an_error(text: str) -> None:
    said = passed_on(pod_info("pod", annotations={PASSED_ON: text}))
    assert 0 <= said.tries <= 1000 and said.shard >= -1
