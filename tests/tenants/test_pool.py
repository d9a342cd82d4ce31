"""The pool of all quotas: all mins together, or what the nodes have but for pods without a quota."""

from __future__ import annotations

from tenants.elastic_quota import ElasticQuota
from tenants.tenant_settings import QuotaPool, TenantOptions
from tests.tenants.tenant_world import TenantWorld, nodes, quota, tenant_pod

NODES = TenantOptions(grace=0, pool=QuotaPool.NODES)


def pool_of(world: TenantWorld) -> list[int]:
    pool = world.quotas.pool()
    assert pool is not None
    return [int(units) for units in pool]


def test_quotas_share_what_the_nodes_have_but_for_pods_without_a_quota() -> None:
    free = [tenant_pod(f"free{at}", "free", node="n0") for at in range(4)]
    pods = [tenant_pod(f"b{at}", "b", created=at) for at in range(14)]
    world = TenantWorld(nodes(3), [quota("a", 2), quota("b", 2)], [*free, *pods], options=NODES)
    assert pool_of(world) == [8000]
    world.run()
    assert world.used("b") == 8000
    world.lose_node("n1")
    assert pool_of(world) == [4000]


def test_cards_count_in_thousandths() -> None:
    gpus = {"nvidia.com/gpu": 4.0}
    of_a = ElasticQuota("a", "a", guaranteed={"cpu": 2.0, "nvidia.com/gpu": 2.0})
    world = TenantWorld(nodes(2, **gpus), [of_a], options=NODES)
    assert pool_of(world) == [8000, 8000]
    world.put(tenant_pod("free", "free", node="n0", requests={"nvidia.com/gpu": 1.0}))
    assert pool_of(world) == [7000, 7000]
