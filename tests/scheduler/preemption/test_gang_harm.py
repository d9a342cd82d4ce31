"""What a gang that preempts must not take: pods that other members need, and members of its own."""

from __future__ import annotations

from dataclasses import replace

from kube.objects.constraints import LabelSelector, Operator, PodAffinityTerm, PodConstraints, Requirement
from kube.objects.objects import NodeInfo
from tests.scheduler.preemption.gang_world import GangWorld, gang, low, of_gang
from tests.scheduler.preemption.made_up import node, pod

_CACHE = PodAffinityTerm(
    LabelSelector((Requirement("app", Operator.IN, ("cache",)),)), "kubernetes.io/os", frozenset({"shop"})
)


def _nodes() -> list[NodeInfo]:
    return [replace(node(f"n{i}", cpu=2.0), labels={"host": f"n{i}", "kubernetes.io/os": "linux"}) for i in range(2)]


def test_a_pod_that_a_member_with_free_room_needs_stays() -> None:
    near = of_gang(pod("high-0", cpu=1.0, priority=10, constraints=PodConstraints(affinity=(_CACHE,))), "high")
    plain = of_gang(pod("high-1", cpu=2.0, priority=10), "high")
    there = [low("cache", "n1", cpu=2.0, priority=0, labels={"app": "cache"}), low("top", "n0", cpu=1.0, priority=10)]
    world = GangWorld(_nodes(), [*there, near, plain], [gang("high", 2)])
    world.run(near, plain)
    assert "cache" not in world.victims


def test_members_that_sit_are_no_victims_of_their_own_gang() -> None:
    sits = of_gang(low("high-a", "n0", cpu=2.0, priority=1), "high")
    member = of_gang(pod("high-b", cpu=2.0, priority=10), "high")
    there = [low("other", "n1", cpu=2.0, priority=5)]
    world = GangWorld(_nodes(), [sits, *there, member], [gang("high", 2)])
    world.run(member)
    assert world.victims == ["other"]
