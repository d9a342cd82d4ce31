from __future__ import annotations

import pytest
from hypothesis import given

from profiles.gpu.fragmentation.fragmentation import MixColumns, fragmentation
from profiles.gpu.fragmentation.pod_shapes import ShapeMix
from tests.profiles.gpu.fragmentation import cases


@given(mix=cases.mixes, rows=cases.nodes)
def test_as_counted_shape_by_shape(mix: ShapeMix, rows: list[cases.Row]) -> None:
    found = fragmentation(MixColumns(mix, cases.MODELS), cases.node_states(rows))
    assert found == pytest.approx([cases.slow_fragmentation(mix, *row) for row in rows])
