from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from scheduler.profiles.gpu.fragmentation.shape_capacity import RoomColumns
from scheduler.profiles.gpu.fragmentation.shapes import PodShape, ShapeMix
from tests.scheduler.profiles.gpu.fragmentation import cases
from tests.scheduler.profiles.gpu.fragmentation.cases import Row


@pytest.mark.parametrize(
    ("shape", "row", "pods"),
    [
        (PodShape(1000, 1024, 1, 250), (8000, 8192, 0, [1000, 700]), 6),  # by the cards: 4 and 2
        (PodShape(2000, 1024, 1, 250), (5000, 8192, 0, [1000, 700]), 2.5),  # by the cores
        (PodShape(2000, 4096, 1, 250), (9000, 6144, 0, [1000, 700]), 1.5),  # by the memory
        (PodShape(2000, 1024, 1, 250), (1999, 8192, 0, [1000, 700]), 0),
        (PodShape(1000, 1024, 2, 1000), (8000, 8192, 0, [1000] * 5), 2),
        (PodShape(1000, 1024, 2, 1000), (8000, 8192, 0, [1000, 999]), 0),
        (PodShape(0, 0, 1, 1000), (0, 0, 0, [1000, 999]), 1),
    ],
)
def test_pods_that_fit(shape: PodShape, row: Row, pods: float) -> None:
    columns, node = RoomColumns(ShapeMix((shape,), np.ones(1)), cases.MODELS), cases.node_states([row])
    assert columns.pods(node.cpu_free, node.memory_free, columns.parts_on(node.free_milli)) == pytest.approx(pods)
    assert cases.slow_pods(shape, *row) == pytest.approx(pods)


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


def test_shapes_that_differ_in_models_share_a_column() -> None:
    shapes = (PodShape(1000, 0, 1, 500, frozenset({"T4"})), PodShape(1000, 0, 1, 500), PodShape(1000, 0, 0, 0))
    columns = RoomColumns(ShapeMix(shapes, np.array([0.25, 0.25, 0.5])), cases.MODELS)
    assert columns.column.tolist() == [0, 0]
    assert columns.takes.tolist() == [[False, True], [True, True], [False, True], [False, True]]
