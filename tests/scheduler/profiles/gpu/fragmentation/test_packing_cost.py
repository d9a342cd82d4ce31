from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube.decoding.decoding import Kind
from scheduler.profiles.gpu.fragmentation.cost_table import CostTable, states_of_rows
from scheduler.profiles.gpu.fragmentation.nodes import NodeStates
from scheduler.profiles.gpu.fragmentation.packing_cost import Packing
from scheduler.profiles.gpu.fragmentation.remainder_value import NodeWorth, prices_of_pieces
from scheduler.profiles.gpu.fragmentation.shapes import PodShape, ShapeMix
from tests.scheduler.profiles.gpu.fragmentation import cases
from tests.scheduler.profiles.gpu.fragmentation.cases import Row
from tests.scheduler.profiles.gpu.fragmentation.gpu_world import GpuWorld, card_node, card_pod

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


def _ways_to_cut(sizes: list[int]) -> list[tuple[int, ...]]:
    most = [range(1000 // size + 1) for size in sizes]
    return [way for way in itertools.product(*most) if np.dot(way, sizes) <= 1000]


@settings(max_examples=30)
@given(
    demands=st.dictionaries(
        st.sampled_from([130, 210, 300, 470, 500, 810, 1000]), st.integers(1, 9), min_size=1, max_size=4
    )
)
def test_no_way_to_cut_a_card_is_worth_more_than_the_card(demands: dict[int, int]) -> None:
    sizes = sorted(demands)
    prices = prices_of_pieces(np.array(sizes), np.array([demands[size] for size in sizes], dtype=np.float64))
    assert prices.min() >= -1e-9
    assert max(np.dot(way, prices) for way in _ways_to_cut(sizes)) == pytest.approx(1)


@settings(max_examples=30)
@given(mix=cases.mixes, row=cases.rows)
def test_a_node_is_never_worth_more_than_its_cards(mix: ShapeMix, row: cases.Row) -> None:
    worth = NodeWorth(mix).worth(cases.node_states([row]))[0]
    assert -1e-9 <= worth <= len(row[3]) + 1e-9


SHAPES = (PodShape(1000, 1024, 1, 300), PodShape(4000, 1024, 2, 1000), PodShape(2000, 1024, 0, 0))
THREE = ShapeMix(SHAPES, np.array([0.5, 0.3, 0.2]))

step = st.tuples(
    st.sampled_from(["land", "leave", "grow", "drain"]),
    st.integers(0, 7),
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from([{"whole": 1}, {"whole": 2}, {"milli": 300}, {"milli": 700}, {}]),
)


@settings(deadline=None)
@given(st.lists(step, max_size=25), st.integers(1, 3))
def test_costs_follow_what_changes(steps: list[tuple[str, int, str, dict[str, int]]], most_shapes: int) -> None:
    world = GpuWorld(card_node("a"), card_node("b", cards=4), card_node("c", cards=0))
    packing = Packing(THREE, world.devices.models)
    table = CostTable(world.state, world.devices, most_shapes=most_shapes)
    table.use(packing)
    for act, number, node, asked in steps:
        if act == "land":
            world.put(card_pod(f"p{number}", node=node, **asked))
        elif act == "leave":
            world.delete(card_pod(f"p{number}"))
        elif act == "grow":
            world.scorer.tables.put(Kind.NODES, card_node(node, cards=1 + number % 4))
        else:
            world.scorer.tables.put(Kind.NODES, card_node(f"new-{number}", cards=number % 3))
        shape = SHAPES[number % len(SHAPES)]
        kept = table.of(shape)
        anew = packing.cost(shape, states_of_rows(world.state, world.devices, np.arange(world.state.n_rows)))
        np.testing.assert_array_equal(kept.cost, anew[0])
        np.testing.assert_array_equal(kept.device, anew[1])


@settings(deadline=None, max_examples=20)
@given(st.lists(st.tuples(st.integers(0, 69), st.integers(0, 3), st.booleans()), max_size=150))
def test_costs_of_many_nodes_are_those_of_each(landings: list[tuple[int, int, bool]]) -> None:
    world = GpuWorld(*(card_node(f"n{row}", cards=1 + row % 2, cpu=8.0 + 8 * (row % 3 > 1)) for row in range(70)))
    packing = Packing(THREE, world.devices.models)
    table = CostTable(world.state, world.devices)
    table.use(packing)
    asked: list[dict[str, int]] = [{"whole": 1}, {"milli": 300}, {"milli": 700}, {}]
    for number, (node, kind, is_asked) in enumerate(landings):
        world.put(card_pod(f"p{number}", node=f"n{node}", **asked[kind]))
        if not is_asked:
            continue  # changes add up, so that many nodes are judged at once
        nodes = states_of_rows(world.state, world.devices, np.arange(70))
        for shape in SHAPES:
            kept, anew = table.of(shape), packing.cost(shape, nodes)
            np.testing.assert_array_equal(kept.cost, anew[0])
            np.testing.assert_array_equal(kept.device, anew[1])
