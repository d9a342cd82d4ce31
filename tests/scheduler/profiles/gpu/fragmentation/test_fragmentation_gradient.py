from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.profiles.gpu.fragmentation.fragmentation import MixColumns, fragmentation
from scheduler.profiles.gpu.fragmentation.fragmentation_gradient import GradientDescent, growth_by_card, growth_of_whole
from scheduler.profiles.gpu.fragmentation.nodes import NodeStates, fits
from scheduler.profiles.gpu.fragmentation.shapes import PodShape, ShapeMix, mix_of
from tests.scheduler.profiles.gpu.fragmentation import cases
from tests.scheduler.profiles.gpu.fragmentation.cases import Row

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


@given(mix=cases.mixes, rows=cases.nodes)
def test_as_counted_shape_by_shape(mix: ShapeMix, rows: list[cases.Row]) -> None:
    found = fragmentation(MixColumns(mix, cases.MODELS), cases.node_states(rows))
    assert found == pytest.approx([cases.slow_fragmentation(mix, *row) for row in rows])


def as_tuples(nodes: NodeStates) -> list[tuple[object, ...]]:
    columns = (nodes.cpu_free, nodes.memory_free, nodes.model, nodes.cpu_total, nodes.memory_total, nodes.n_devices)
    return list(zip(*(column.tolist() for column in columns), map(tuple, nodes.free_milli.tolist()), strict=True))


@given(kinds=cases.nodes, order=st.lists(st.integers(0, 5), min_size=1, max_size=40))
def test_each_node_has_the_state_that_stands_for_it(kinds: list[Row], order: list[int]) -> None:
    nodes = cases.node_states([kinds[at % len(kinds)] for at in order])
    first, state = nodes.distinct()
    found = as_tuples(nodes.take(first))
    assert len(set(found)) == len(found)
    assert [found[at] for at in state.tolist()] == as_tuples(nodes)


def test_states_of_one_sum_are_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoFactors:
        def integers(self, low: int, high: int, size: int) -> object:
            return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(np.random, "default_rng", lambda seed: NoFactors())
    nodes = cases.node_states([(1000, 1024, 0, [500]), (2000, 1024, 0, [500])])
    first, state = nodes.distinct()
    assert (first.tolist(), state.tolist()) == ([0, 1], [0, 1])


SMALL, BIG, RARE = PodShape(1000, 0, 1, 250), PodShape(8000, 0, 1, 1000), PodShape(2000, 0, 8, 1000)


def test_the_mix_of_pods_is_sorted_by_how_many_there_are() -> None:
    mix = mix_of([SMALL, BIG, BIG, RARE])
    assert mix.shapes == (BIG, RARE, SMALL)  # of equally many, what asks for more first
    assert mix.weight.tolist() == [0.5, 0.25, 0.25]


def test_what_is_rare_is_cut_off_and_the_rest_sums_to_one() -> None:
    mix = mix_of({SMALL: 6.0, BIG: 3.0, RARE: 1.0}, coverage=0.9)
    assert mix.shapes == (SMALL, BIG)
    assert mix.weight == pytest.approx([2 / 3, 1 / 3])
