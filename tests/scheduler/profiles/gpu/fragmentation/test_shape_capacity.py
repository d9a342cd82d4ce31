from __future__ import annotations

import pytest
from hypothesis import given

from scheduler.profiles.gpu.fragmentation.shape_capacity import RoomColumns
from scheduler.profiles.gpu.fragmentation.shapes import ShapeMix
from tests.scheduler.profiles.gpu.fragmentation import cases
from tests.scheduler.profiles.gpu.fragmentation.cases import Row


@given(mix=cases.mixes, rows=cases.nodes)
def test_as_counted_node_by_node(mix: ShapeMix, rows: list[Row]) -> None:
    columns, nodes = RoomColumns(mix, cases.MODELS), cases.node_states(rows)
    pods = columns.pods(nodes.cpu_free, nodes.memory_free, columns.parts_on(nodes.free_milli))
    asking = [shape for shape in mix.shapes if shape.count]
    for at, shape in enumerate(asking):
        expected = [cases.slow_pods(shape, *row) for row in rows]
        assert pods[:, columns.column[at]] == pytest.approx(expected)
    taken = [
        sum(cases.slow_pods(shape, *row) for row in rows if cases.takes(shape, row[2])) * shape.asked_milli
        for shape in asking
    ]
    assert columns.in_cluster(nodes) == pytest.approx(taken)
