from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from profiles.gpu.fragmentation.idle_of_nodes import NodeStates
from profiles.gpu.fragmentation.packing_cost import Packing
from profiles.gpu.fragmentation.pod_shapes import PodShape, ShapeMix
from profiles.gpu.fragmentation.remainder_value import NodeWorth
from tests.profiles.gpu.fragmentation import cases
from tests.profiles.gpu.fragmentation.cases import Row

HALF, WHOLE_ONE, EIGHT = PodShape(4000, 0, 1, 500), PodShape(8000, 0, 1, 1000), PodShape(64_000, 0, 8, 1000)
ONLY_T4 = PodShape(8000, 0, 1, 1000, frozenset({"T4"}))
MIX = ShapeMix((HALF, WHOLE_ONE), np.array([0.5, 0.5]))


def slow_potential(mix: ShapeMix, row: Row, nodes: NodeStates) -> float:
    """What a pod's cost is the loss of."""
    _, _, model, _ = row
    asking = [(shape, weight) for shape, weight in zip(mix.shapes, mix.weight, strict=True) if shape.count]
    scarcity = []
    for shape, weight in asking:
        room = sum(
            cases.slow_pods(shape, cpu, memory, of, [1000] * count) * shape.asked_milli
            for cpu, memory, of, count in zip(
                nodes.cpu_total, nodes.memory_total, nodes.model.tolist(), nodes.n_devices.tolist(), strict=True
            )
            if cases.takes(shape, of)
        )
        scarcity.append(weight / max(room, 10 * nodes.n_devices.sum(), 1))
    crowded = sum(
        weight / sum(scarcity) * cases.slow_pods(shape, *row) * shape.asked_milli
        for (shape, _), weight in zip(asking, scarcity, strict=True)
        if cases.takes(shape, model)
    )
    return float(10_000 * NodeWorth(mix).worth(cases.node_states([row]))[0] + crowded)


@settings(max_examples=30)
@given(mix=cases.mixes, shape=cases.shapes, rows=cases.nodes)
def test_as_found_by_trying_every_card(mix: ShapeMix, shape: PodShape, rows: list[Row]) -> None:
    nodes = cases.node_states(rows)
    found, devices = Packing(mix, cases.MODELS, nodes).cost(shape, nodes)
    for row, cost, device in zip(rows, found.tolist(), devices.tolist(), strict=True):
        if not cases.slow_fits(shape, *row):
            assert (cost, device) == (np.inf, -1)
            continue
        if shape.is_shared:
            ways = {
                card: cases.with_part(row[3], card, shape.milli)
                for card, free in enumerate(row[3])
                if free >= shape.milli
            }
        else:
            ways = {-1: cases.with_whole(row[3], shape.count)}
        before = slow_potential(mix, row, nodes)
        costs = {
            card: before - slow_potential(mix, cases.with_pod(row, shape, left), nodes) for card, left in ways.items()
        }
        assert cost == pytest.approx(min(costs.values()), abs=1e-6)
        assert costs[device] == pytest.approx(cost, abs=1e-6)


def test_it_follows_the_nodes_of_the_cluster() -> None:
    nodes = cases.node_states([(64_000, 0, 0, [1000, 1000])] * 4)
    packing = Packing(MIX, cases.MODELS, nodes)
    used = replace(nodes, free_milli=np.zeros_like(nodes.free_milli))
    assert packing.following(used) is packing  # pods come and go, the nodes are the same
    doubled = nodes.take(np.array([0, 1, 2, 3, 0, 1, 2, 3]))
    other = packing.following(doubled)
    assert other is not packing
    assert other.following(doubled) is other
    assert (
        Packing(MIX, cases.MODELS).following(nodes).cost(HALF, nodes)[0].tolist()
        == packing.cost(HALF, nodes)[0].tolist()
    )


def test_a_model_that_appears_later_is_known_at_once_and_weighed_with_the_next() -> None:
    models = ["P100"]
    nodes = cases.node_states([(16_000, 0, 0, [1000]), (16_000, 0, 1, [1000])])
    packing = Packing(ShapeMix((ONLY_T4,), np.ones(1)), models)
    models.append("T4")
    assert np.isfinite(packing.cost(ONLY_T4, nodes)[0]).tolist() == [False, True]
    cost, _ = packing.following(nodes).cost(WHOLE_ONE, nodes)
    assert cost[1] > cost[0]  # what others ask for by name
