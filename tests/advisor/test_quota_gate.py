"""Our gate stays on pods whose tenant's quota does not admit them, and goes for no more pods than it admits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.quota_gate import QuotaGate, is_released
from kube.objects.objects import PodInfo
from placement.gate_exemptions import ADVICE
from tenants.tenant_settings import QuotaPool, TenantOptions
from tests.tenants.tenant_world import TenantWorld, nodes, quota, tenant_pod


def held(name: str) -> PodInfo:
    return replace(tenant_pod(name, "b"), gates=(ADVICE,), scheduler_name="default-scheduler")


class Scene:
    """Tenant b may use 2 cores, and has 4 pods that the gate holds."""

    def __init__(self) -> None:
        self.pods = [held(f"b{at}") for at in range(4)]
        self.world = TenantWorld(nodes(2), [quota("b", 2, 2)], self.pods)
        self.leads, self.is_read, self.now = True, True, 0.0
        self.gate = QuotaGate(
            self.world.quotas,
            reading=self.world.scorer.tables.reading,
            leads=lambda: self.leads,
            is_read=lambda: self.is_read,
            clock=lambda: self.now,
        )

    def admitted(self) -> list[str]:
        return [pod.name for pod in self.pods if self.gate.admit(pod)]


def test_no_more_pods_are_released_than_the_quota_admits_also_after_a_restart() -> None:
    scene = Scene()
    assert scene.admitted() == ["b0", "b1"]
    assert scene.world.used("b") == 2000, "kube-scheduler may bind them at any moment"
    assert [scene.gate.keeps(pod.uid) for pod in scene.pods] == [False, False, True, True]
    scene.gate.withdraw("b0")  # it was not released after all
    assert [scene.gate.admit(pod) for pod in scene.pods[2:]] == [True, False]
    scene.world.end("b1")  # a pod that leaves makes room
    assert scene.gate.admit(scene.pods[3])
    # The gate is gone and the note of the advice is there: that is all that a new process knows.
    scene = Scene()
    released = replace(scene.pods[0], gates=(), annotations={ADVICE: "{}"})
    world = TenantWorld(nodes(2), [quota("b", 2, 2)], [released, *scene.pods[1:]])
    world.ledger.count_released(is_released)
    assert world.used("b") == 1000
    gate = QuotaGate(world.quotas, reading=world.scorer.tables.reading, leads=lambda: True)
    assert [pod.name for pod in scene.pods[1:] if gate.admit(pod)] == ["b1"]
    scene = Scene()
    scene.gate.released(scene.pods[0])
    assert scene.world.used("b") == 1000
    assert scene.admitted() == ["b0", "b1"], "b0 counts already"


def test_only_the_leader_releases_pods_of_tenants_and_nobody_for_a_minute_without_quotas(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = Scene()
    scene.leads = False
    assert scene.admitted() == []
    other = replace(held("free"), namespace="no-quota")
    assert scene.gate.admit(other)
    scene.leads, scene.now = True, 10.0
    assert scene.admitted() == ["b0", "b1"]
    scene = Scene()
    scene.is_read = False
    other = replace(held("free"), namespace="no-quota")
    assert not scene.gate.admit(other) and scene.admitted() == []
    scene.now = 61.0
    assert scene.gate.admit(other)
    assert "grant list and watch on elasticquotas" in caplog.text


def test_pods_that_are_kept_long_and_gone_are_forgotten_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("advisor.quota_gate._MANY", 3)
    scene = Scene()
    scene.gate = QuotaGate(
        scene.world.quotas, reading=scene.world.scorer.tables.reading, leads=lambda: False, clock=lambda: scene.now
    )
    for at in range(40):
        scene.now = 5.0 * at
        scene.gate.admit(held(f"passing{at}"))
    assert sum(scene.gate.keeps(f"passing{at}") for at in range(40)) <= 8
    assert scene.gate.keeps("passing39")


def test_what_is_promised_makes_the_room_of_the_nodes_no_larger() -> None:
    """4 of 8 cores are of pods without a quota."""
    others = [tenant_pod(f"free{at}", "no-quota", node="n0") for at in range(4)]
    pods = [held(f"b{at}") for at in range(8)]
    options = TenantOptions(pool=QuotaPool.NODES)
    world = TenantWorld(nodes(2), [quota("b", 1)], [*others, *pods], options=options)
    gate = QuotaGate(world.quotas, reading=world.scorer.tables.reading, leads=lambda: True)
    assert sum(gate.admit(pod) for pod in pods) == 4
    world.put(replace(pods[0], gates=(), node="n1"))
    assert not gate.admit(pods[7]) and world.used("b") == 4000
