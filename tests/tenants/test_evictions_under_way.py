"""Pods that are evicted take time to leave. What has been begun counts at once, or more would go than was lent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kube.decoding.decoding import Kind
from profiles.dry_loop import DryLoop
from tenants.elastic_quota import ElasticQuota
from tests.tenants.tenant_world import TenantWorld, nodes, quota, tenant_pod


@pytest.fixture
def evicted(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of the pods that the loop evicts: they terminate, and keep their nodes until a test ends them."""
    names: set[str] = set()

    def begin(loop: DryLoop) -> None:
        nominations, loop._nominations = loop._nominations, []
        for pod, nomination in nominations:
            loop._scorer.tables.put(Kind.PODS, replace(pod, nominated_node=nomination.node))
            for victim in nomination.victims:
                names.add(victim.name)
                loop._scorer.tables.put(Kind.PODS, replace(victim, terminating=True))

    monkeypatch.setattr(DryLoop, "_evict", begin)
    return names


def borrowed(*quotas: ElasticQuota, n: int = 8) -> TenantWorld:
    """Tenant b has all n cores."""
    pods = [tenant_pod(f"b{at}", "b", created=1000.0 + at) for at in range(n)]
    world = TenantWorld(nodes(n // 4), quotas, pods)
    world.run()
    assert world.used("b") == 1000 * n
    return world


def wanted(tenant: str, n: int) -> tuple[str, ...]:
    return tuple(f"{tenant}{at}" for at in range(n))


def settle(world: TenantWorld) -> None:
    for _ in range(3):
        world.run()
        world.try_again()
    world.run()


def test_an_owner_that_waits_for_more_than_its_min_has_no_more_than_that_evicted(evicted: set[str]) -> None:
    world = borrowed(quota("a", 4), quota("b", 4))
    world.put(*(tenant_pod(name, "a") for name in wanted("a", 8)))
    settle(world)
    assert len(evicted) == 4, "b would be below its min"
    world.end(*evicted)
    settle(world)
    assert world.used("a") == world.used("b") == 4000


def test_pods_that_leave_by_themselves_are_lent_no_more(evicted: set[str]) -> None:
    world = borrowed(quota("a", 6), quota("b", 2))
    world.put(*(replace(world.pods[name], terminating=True) for name in wanted("b", 5)))
    world.put(*(tenant_pod(name, "a") for name in wanted("a", 6)))
    settle(world)
    assert len(evicted - set(wanted("b", 5))) == 1, "5 of the 6 cores that are lent return anyway"
