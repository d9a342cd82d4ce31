"""Like pods with devices are placed together, and get the nodes and devices that they would get one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cluster.degradation import Level
from placement.devices.gpu_devices import GpuDevices
from placement.filters.catalogue import standard_filters
from placement.policies.policy import Policy
from scheduler.cycle.batch_plan import BatchPlan
from scheduler.cycle.placing import Placed, UnitPlacer
from scorer.options import ScorerOptions
from scorer.scoring_policy import scoring_policy
from tests.placement.devices.device_world import INDEX, DeviceWorld, card_node, card_pod


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    made: list[BatchPlan] = []
    begin = BatchPlan.__init__

    def counted(plan: BatchPlan, *arguments: Any, **others: Any) -> None:
        made.append(plan)
        begin(plan, *arguments, **others)

    monkeypatch.setattr(BatchPlan, "__init__", counted)
    return lambda: len(made)


def placed(asks: dict[str, Any], n_pods: int, *, one_by_one: bool) -> tuple[Placed, list[tuple[int, ...]], DeviceWorld]:
    there = [
        card_pod("known", "a", milli=650, said={INDEX: "2"}),
        card_pod("unknown", "b", n=1),
        card_pod("shared", "c", memory=6, said={INDEX: "0"}),
    ]
    nodes = [
        card_node("a", 4),
        card_node("b", 2),
        card_node("c", shared=3, memory=16),
        card_node("d"),
        card_node("e", 1),
    ]
    world = DeviceWorld(nodes, there)
    pods = [card_pod(f"p{i}", **asks) for i in range(n_pods)]
    world.put(*pods)
    placer = UnitPlacer(world.view, world.cluster, Level.REQUESTS, until=1e9, one_by_one=one_by_one)
    policy = Policy(scoring_policy(ScorerOptions()))
    found = placer.place(pods, (*standard_filters(), GpuDevices(world.table)), policy)
    return found, [world.devices(pod.name) for pod in pods], world


@pytest.mark.parametrize(
    ("asks", "fit"),
    [
        pytest.param({"milli": 300}, 3 * 3 + 1 + 3 + 8 + 3, id="shares"),
        pytest.param({"milli": 400}, 3 * 2 + 0 + 2 + 5 + 2, id="larger shares"),
        pytest.param({"milli": 1000}, 3 + 1 + 2 + 1, id="whole cards by their index"),
        pytest.param({"n": 1}, 5, id="whole cards"),
        pytest.param({"n": 2}, 1, id="several"),
        pytest.param({"memory": 5}, 2 + 3 + 3, id="memory"),
    ],
)
def test_in_batches_as_one_by_one(asks: dict[str, Any], fit: int, plans: Callable[[], int]) -> None:
    together, devices, world = placed(asks, fit + 3, one_by_one=False)
    assert 1 <= plans() <= 4
    assert len(together.rows) == fit and not world.table.conflicts()
    assert together.why_not is not None
    assert "GpuDevices" in [name for name, _ in together.why_not.rejections]
    alone, devices_alone, _ = placed(asks, fit + 3, one_by_one=True)
    assert alone.rows == together.rows and devices == devices_alone
