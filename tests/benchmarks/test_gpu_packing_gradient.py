from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from benchmarks.gpu_packing_gradient import GradientDescent, growth_by_card, growth_of_whole
from profiles.gpu.fragmentation.fragmentation import MixColumns
from profiles.gpu.fragmentation.idle_of_nodes import fits
from profiles.gpu.fragmentation.pod_shapes import PodShape, ShapeMix
from tests.profiles.gpu.fragmentation import cases
from tests.profiles.gpu.fragmentation.cases import Row

HALF, WHOLE_ONE = PodShape(1000, 0, 1, 500), PodShape(1000, 0, 1, 1000)
MIX = ShapeMix((HALF, WHOLE_ONE), np.array([0.5, 0.5]))


def slow_growth(mix: ShapeMix, shape: PodShape, row: Row, cards: list[int]) -> float:
    """With `shape` on the node and `cards` left."""
    cpu, memory, model, _ = row
    after = cases.slow_fragmentation(mix, cpu - shape.cpu_milli, memory - shape.memory_mib, model, cards)
    return after - cases.slow_fragmentation(mix, *row)


@given(mix=cases.mixes, shape=cases.shapes, rows=cases.nodes)
def test_growth_is_what_fragmentation_has_grown_by(mix: ShapeMix, shape: PodShape, rows: list[Row]) -> None:
    room = [row for row in rows if cases.slow_fits(shape, *row)]
    if not room:
        return
    columns, nodes = MixColumns(mix, cases.MODELS), cases.node_states(room)
    if not shape.is_shared:
        expected = [slow_growth(mix, shape, row, cases.with_whole(row[3], shape.count)) for row in room]
        assert growth_of_whole(shape, columns, nodes) == pytest.approx(expected)
        return
    growth = growth_by_card(shape, columns, nodes)
    for at, row in enumerate(room):
        for card, free in enumerate(row[3]):
            if free < shape.milli:
                assert growth[at, card] == np.inf
            else:
                assert growth[at, card] == pytest.approx(
                    slow_growth(mix, shape, row, cases.with_part(row[3], card, shape.milli))
                )


def test_points_are_those_of_the_published_scheduler() -> None:
    # Beside the half, fragmentation shrinks: the half of the mix that wants whole cards could not use what was left.
    nodes = cases.node_states([(8000, 0, 0, [1000, 500]), (8000, 0, 0, [1000, 1000]), (500, 0, 0, [1000])])
    cost, device = GradientDescent(MIX, cases.MODELS).cost(HALF, nodes)
    beside, alone = 100 / (1 + np.exp(-0.25)), 100 / (1 + np.exp(0.25))
    assert cost.tolist() == [-int(beside), -int(alone), np.inf]
    assert device.tolist() == [1, 0, -1]


@given(mix=cases.mixes, shape=cases.shapes, rows=cases.nodes)
def test_a_card_has_room_for_what_takes_part_of_it(mix: ShapeMix, shape: PodShape, rows: list[Row]) -> None:
    nodes = cases.node_states(rows)
    cost, device = GradientDescent(mix, cases.MODELS).cost(shape, nodes)
    assert (np.isfinite(cost) == fits(shape, nodes, cases.MODELS)).all()
    for row, card, is_open in zip(rows, device.tolist(), np.isfinite(cost).tolist(), strict=True):
        assert (card >= 0) == (is_open and shape.is_shared)
        if card >= 0:
            assert row[3][card] >= shape.milli
