"""Levels of tenants are read without the lock of the tables, also while quotas are exchanged."""

from __future__ import annotations

from scheduler.quota_queues.owner_levels import KnownFlow
from scheduler.quota_queues.queue_of import QueueOwner
from scheduler.quota_queues.tenant_levels import TenantLevels
from tenants.quota_tree import quota_tree
from tests.tenants.tenant_world import TenantWorld, nodes, quota, tenant_pod


def flow(tenant: str) -> KnownFlow:
    return KnownFlow("tenants/", None, QueueOwner("tenants", tenant), 1.0)


def test_levels_while_quotas_are_exchanged_are_those_before() -> None:
    world = TenantWorld(nodes(2), [quota("a", 4), quota("b", 4)], [tenant_pod("a0", "a"), tenant_pod("a1", "a")])
    world.run()
    levels, pod = TenantLevels(world.ledger), tenant_pod("a2", "a")
    assert levels.level(flow("a"), pod) == (0.5,)
    before, tree = world.ledger.tree, quota_tree([quota("a", 8, memory=2.0**30), quota("b", 4), quota("c", 4)])
    world.ledger.tree = tree  # the first step of an exchange, whose amounts follow in a moment
    assert levels.level(flow("a"), pod) == (0.5,)
    assert levels.to_level(flow("a"), pod, (1.0,)) == (0.125, 2.0)
    world.ledger.tree = before
    world.quotas.use(tree, world.scorer.tables.reading)
    assert levels.level(flow("a"), pod) == (0.25,)
