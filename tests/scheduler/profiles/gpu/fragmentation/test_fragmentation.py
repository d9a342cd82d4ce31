from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from scheduler.profiles.gpu.fragmentation.fragmentation import MixColumns, fragmentation
from scheduler.profiles.gpu.fragmentation.shapes import PodShape, ShapeMix
from tests.scheduler.profiles.gpu.fragmentation import cases

HALF = PodShape(1000, 0, 1, 500)
WHOLE_ONE = PodShape(1000, 0, 1, 1000)
PAIR = PodShape(1000, 0, 2, 1000)
NO_CARD = PodShape(1000, 0, 0, 0)
ONLY_T4 = PodShape(1000, 0, 1, 500, frozenset({"T4"}))


@pytest.mark.parametrize(
    ("shape", "cpu", "model", "cards", "expected"),
    [
        (HALF, 1000, 0, [1000, 500], 0),
        (HALF, 1000, 0, [1000, 400], 400),
        (WHOLE_ONE, 1000, 0, [1000, 900], 900),
        (WHOLE_ONE, 999, 0, [1000, 1000], 2000),  # no cores for it: all that is idle
        (PAIR, 1000, 0, [1000, 900], 1900),
        (PAIR, 1000, 0, [1000, 1000, 300], 300),
        (NO_CARD, 1000, 0, [1000, 700], 1700),
        (ONLY_T4, 1000, 1, [1000, 700], 0),
        (ONLY_T4, 1000, 0, [1000, 700], 1700),
        (ONLY_T4, 1000, -1, [1000, 700], 1700),  # nobody knows that it is a T4
    ],
)
def test_what_one_shape_cannot_use(shape: PodShape, cpu: int, model: int, cards: list[int], expected: int) -> None:
    mix = MixColumns(ShapeMix((shape,), np.ones(1)), cases.MODELS)
    assert fragmentation(mix, cases.node_states([(cpu, 0, model, cards)])).tolist() == [expected]


@given(mix=cases.mixes, rows=cases.nodes)
def test_as_counted_shape_by_shape(mix: ShapeMix, rows: list[cases.Row]) -> None:
    found = fragmentation(MixColumns(mix, cases.MODELS), cases.node_states(rows))
    assert found == pytest.approx([cases.slow_fragmentation(mix, *row) for row in rows])
