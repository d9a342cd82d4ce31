"""Idle min is lent, and comes back: first by lending no more, then by evicting who borrows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kube.objects.constraints import LabelSelector, Operator, Requirement
from kube.objects.objects import PodInfo
from placement.disruption_budgets import DisruptionBudget
from placement.gate_exemptions import ADVICE
from placement.pod_importance import SYSTEM_CRITICAL
from tenants.tenant_settings import TenantOptions
from tests.tenants.tenant_world import NOW, TenantWorld, gang_of, nodes, quota, tenant_pod


def pods(n: int, tenant: str, *, priority: int = 0, first: float = NOW - 5000, gang: str = "") -> list[PodInfo]:
    """Of one core each, one created after the other."""
    return [
        tenant_pod(f"{gang or tenant}{at}", tenant, priority=priority, created=first + at, gang=gang) for at in range(n)
    ]


def placed(world: TenantWorld, tenant: str) -> int:
    return sum(name.startswith(tenant) for name in world.seats())


def test_idle_min_is_lent_up_to_what_all_are_guaranteed() -> None:
    world = TenantWorld(nodes(4), [quota("a", 4), quota("b", 4)], pods(10, "b"))
    planned = world.run()
    assert placed(world, "b") == 8
    why = [one.message for one in planned.values() if not one.node]
    assert len(why) == 2 and "tenant b uses 8 cores, its min is 4 cores, others lend it 0 cores more" in why[0]


def test_no_pod_passes_the_max_because_it_says_that_it_was_advised() -> None:
    """Any client may write the annotation. Pods that our own loops place are released by no advisor."""
    said = [replace(one, annotations={ADVICE: "{}"}) for one in pods(8, "a")]
    world = TenantWorld(nodes(4), [quota("a", 2, 2), quota("b", 6)], said)
    assert world.used("a") == 0
    world.run()
    assert placed(world, "a") == 2 and world.used("a") == 2000


def test_a_quota_that_lends_nothing_keeps_its_min() -> None:
    world = TenantWorld(nodes(4), [quota("a", 4, lends=False), quota("b", 4)], pods(10, "b"))
    world.run()
    assert placed(world, "b") == 4


def test_what_an_owner_waits_for_is_not_lent() -> None:
    """Its pods fit on no node, since each asks for more than one has: the room is theirs all the same."""
    waiting = [tenant_pod("a0", "a", cpu=3.0), tenant_pod("a1", "a", cpu=3.0)]
    world = TenantWorld(nodes(6, cpu=2.0), [quota("a", 6), quota("b", 4)], [*waiting, *pods(10, "b")])
    world.run()
    assert placed(world, "b") == 4


def test_lent_room_returns_to_the_owner_up_to_its_min_and_pods_without_a_quota_stay() -> None:
    world = TenantWorld(nodes(3), [quota("a", 4), quota("b", 4)], [*pods(4, "free", priority=5), *pods(8, "b")])
    world.run()
    world.put(*pods(7, "a"))
    world.run()
    assert placed(world, "a") == placed(world, "b") == placed(world, "free") == 4
    assert len(world.evicted) == 4 and all(name.startswith("b") for name in world.evicted)


def test_borrowers_go_whatever_their_priority_and_owners_within_min_stay() -> None:
    important = pods(8, "b", priority=100)
    world = TenantWorld(nodes(2), [quota("a", 4), quota("b", 4)], important)
    world.run()
    world.put(*pods(8, "a"))
    world.run()
    assert placed(world, "a") == 4
    world.put(*[tenant_pod(f"b-high{at}", "b", priority=1000) for at in range(4)])
    world.run()
    assert placed(world, "a") == 4, "a tenant within its min was preempted by priority"
    assert placed(world, "b-high") == world.used("b") / 1000 == 4, "within a tenant priority counts"


def test_the_newest_and_least_important_go_first() -> None:
    world = TenantWorld(nodes(1, cpu=8.0), [quota("a", 4), quota("b", 4)], pods(4, "b", priority=5))
    world.run()
    world.now += 100
    world.put(*pods(2, "b", priority=1, first=world.now - 50)[:0], tenant_pod("b-low", "b", priority=1))
    world.run()
    world.now += 100
    world.put(tenant_pod("b-new", "b", priority=5))
    world.run()
    world.put(*pods(2, "a"), *[tenant_pod("b-last", "b", priority=5)])
    world.run()
    world.put(*[tenant_pod(f"a-more{at}", "a") for at in range(2)])
    world.run()
    assert placed(world, "a") == 4
    assert world.evicted[0] == "b-low" and set(world.evicted) <= {"b-low", "b-new", "b-last"}


@pytest.mark.parametrize(("minimum", "left"), [(4, 4), (8, 0)], ids=["four of eight are enough", "all eight go"])
def test_gangs_come_as_a_whole_and_go_as_far_as_their_minimum_allows(minimum: int, left: int) -> None:
    groups = [gang_of("b", "train", minimum), gang_of("a", "big", 4)]
    world = TenantWorld(nodes(2), [quota("a", 4), quota("b", 4)], pods(8, "b", gang="train"), groups=groups)
    world.run()
    assert len(world.seats()) == 8
    world.put(*pods(4, "a", gang="big"))
    world.run()
    assert placed(world, "big") == 4 and placed(world, "train") == left


def test_budgets_keep_borrowers() -> None:
    selector = LabelSelector((Requirement("app", Operator.IN, ("b",)),))
    budget = DisruptionBudget("b", "keep", selector, allowed=0)
    borrowers = [tenant_pod(f"b{at}", "b", labels={"app": "b"}) for at in range(8)]
    world = TenantWorld(nodes(2), [quota("a", 4), quota("b", 4)], borrowers, budgets=[budget])
    world.run()
    world.put(*pods(4, "a"))
    planned = world.run()
    assert not world.evicted
    assert "PodDisruptionBudgets keep the pods that borrow" in planned["a0"].message


def test_owners_wait_for_the_grace_period_first() -> None:
    world = TenantWorld(nodes(2), [quota("a", 4), quota("b", 4)], pods(8, "b"), options=TenantOptions(grace=30))
    world.run()
    owners = [tenant_pod(f"a{at}", "a", created=world.now) for at in range(4)]
    world.put(*owners)
    world.run()
    assert not world.evicted
    world.now += 31
    world.put(*(replace(one, labels={"tried": "again"}) for one in owners))
    world.run()
    assert placed(world, "a") == 4 and len(world.evicted) == 4


def test_reclaim_can_be_switched_off() -> None:
    options = TenantOptions(grace=0, reclaim=False)
    world = TenantWorld(nodes(2), [quota("a", 4), quota("b", 4)], pods(8, "b"), options=options)
    world.run()
    world.put(*pods(4, "a"))
    world.run()
    assert not world.evicted
    world.end("b0", "b1")
    world.run()
    assert placed(world, "a") == 2, "what ends goes to its owner, not to who borrows"


def test_the_max_of_a_parent_holds_for_all_below_it() -> None:
    tree = [quota("research", 4, 6), quota("vision", 2, parent="research"), quota("speech", 2, parent="research")]
    world = TenantWorld(nodes(4), [*tree, quota("shops", 8)], [*pods(5, "vision"), *pods(5, "speech")])
    planned = world.run()
    assert world.used("research") == 6000
    why = next(one.message for one in planned.values() if not one.node)
    assert "is part of research, which may use 6 cores at most" in why


def test_quotas_may_come_later_and_go() -> None:
    world = TenantWorld(nodes(2), (), pods(4, "b"))
    world.run()
    world.set_quotas([quota("b", 2, 2)])
    assert world.used("b") == 4000
    world.put(*[tenant_pod("b-more", "b")])
    assert not world.run()["b-more"].node
    world.set_quotas([])
    world.put(*[tenant_pod("b-other", "b")])
    assert world.run()["b-other"].node


def test_only_pods_of_no_tenant_are_critical_to_the_system() -> None:
    """Any client may name a PriorityClass of the system."""
    world = TenantWorld(nodes(2), [quota("a", 4), quota("b", 4)], [*pods(4, "a"), *pods(4, "b")])
    world.run()
    world.put(*(tenant_pod(f"b-critical{at}", "b", priority=SYSTEM_CRITICAL) for at in range(8)))
    world.run()
    assert world.used("a") == 4000 and not any(name.startswith("a") for name in world.evicted)
    world.put(*(tenant_pod(f"free{at}", "free", priority=SYSTEM_CRITICAL) for at in range(8)))
    world.run()
    assert placed(world, "free") == 8 - placed(world, "b-critical"), "all that is less important went for them"
