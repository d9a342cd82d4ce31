"""Room that is reserved counts in the quota of its namespace once, whether it is held or a pod has taken it over."""

from __future__ import annotations

from dataclasses import replace

from cluster.held_rooms import HeldRoom
from kube.objects.constraints import LabelSelector, Operator, Requirement
from tests.tenants.tenant_world import NOW, TenantWorld, nodes, quota, tenant_pod

OWNERS = LabelSelector((Requirement("app", Operator.IN, ("cart",)),))


def with_reserved_room(cpu: float) -> TenantWorld:
    """Of tenant b, which may use 2 cores; a is guaranteed the rest of the 4."""
    world = TenantWorld(nodes(1), [quota("a", 2), quota("b", 2, 2)])
    stand_in = replace(tenant_pod("reservation:r", "b", cpu=cpu, node="n0"), uid="room", stands_in=True)
    with world.scorer.tables.changing() as cluster:
        cluster.hold_room(HeldRoom(stand_in, OWNERS, NOW - 10, 1e9))
    return world


def test_a_pod_takes_its_room_over_in_a_full_quota() -> None:
    world = with_reserved_room(2.0)
    assert world.used("b") == 2000
    world.put(tenant_pod("stranger", "b", cpu=1.0), tenant_pod("own", "b", cpu=2.0, labels={"app": "cart"}))
    planned = world.run()
    assert planned["own"].node == "n0" and not planned["stranger"].node
    assert world.used("b") == 2000, "the room and the pod in it are counted twice"


def test_reserved_room_is_not_taken_back() -> None:
    world = with_reserved_room(2.0)
    world.set_quotas([quota("a", 4), quota("b", 0)])
    world.put(*(tenant_pod(f"a{at}", "a") for at in range(4)))
    world.run()
    assert sum(name.startswith("a") for name in world.seats()) == 2 and not world.evicted
