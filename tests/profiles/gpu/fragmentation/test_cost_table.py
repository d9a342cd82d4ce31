"""Costs that are kept are those that all nodes would be given anew."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kube.decoding.decoding import Kind
from profiles.gpu.fragmentation.cost_table import CostTable, states_of_rows
from profiles.gpu.fragmentation.packing_cost import Packing
from profiles.gpu.fragmentation.pod_shapes import PodShape, ShapeMix
from tests.profiles.gpu.fragmentation.gpu_world import GpuWorld, card_node, card_pod

SHAPES = (PodShape(1000, 1024, 1, 300), PodShape(4000, 1024, 2, 1000), PodShape(2000, 1024, 0, 0))
MIX = ShapeMix(SHAPES, np.array([0.5, 0.3, 0.2]))

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
    packing = Packing(MIX, world.devices.models)
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
    packing = Packing(MIX, world.devices.models)
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
