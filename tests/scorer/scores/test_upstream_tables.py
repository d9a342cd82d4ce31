"""kube-scheduler's own test tables, v1.36.1: pkg/scheduler/framework/plugins/noderesources/*_test.go (Apache-2.0).

Columns: CPU in cores, memory in bytes, one extended resource. `pods` are the sums that the tables' pods come to; pods
that request nothing and have no container count as 0 there.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import pytest

from base.arrays import Floats
from scorer.scores.balanced_allocation import balanced_allocation_score
from scorer.scores.least_allocated import UNREQUESTED, least_allocated_score, nonzero_requests
from scorer.scores.most_allocated import most_allocated_score
from scorer.scores.requested_to_capacity_ratio import broken_line, requested_to_capacity_ratio_score
from scorer.scores.resource_allocation import resource_weights, weights_for_pod

GIB = 1024.0**3


KINDS = ("cpu", "memory", "example.com/device")
MIB = 1024.0 * 1024

Row = Sequence[float]


def table(*rows: Row) -> Floats:
    """Rows with the extended resource filled up with 0."""
    return np.array([[*row, 0.0][:3] for row in rows])


def weights_of(pod: Floats, cpu: float = 1, memory: float = 1, device: float = 0) -> Floats:
    weights = {"cpu": cpu, "memory": memory, "example.com/device": device}
    return weights_for_pod(KINDS, resource_weights(KINDS, weights), pod)


# name, pod, nodes, existing pods' sums, weights (cpu, memory, device), scores of least allocated
LEAST = [
    ("nothing scheduled, nothing requested", (0, 0), [(4000, 10000)] * 2, [(0, 0)] * 2, (1, 1, 0), [100, 100]),
    ("differently sized nodes", (3000, 5000), [(4000, 10000), (6000, 10000)], [(0, 0)] * 2, (1, 1, 0), [37, 50]),
    ("no resources requested", (0, 0), [(10000, 20000)] * 2, [(6000, 0), (6000, 5000)], (1, 1, 0), [70, 57]),
    ("resources requested", (3000, 5000), [(10000, 20000)] * 2, [(3000, 0), (3000, 5000)], (1, 1, 0), [57, 45]),
    (
        "resources requested, differently sized nodes",
        (3000, 5000),
        [(10000, 20000), (10000, 50000)],
        [(3000, 0), (3000, 5000)],
        (1, 1, 0),
        [57, 60],
    ),
    ("exceed node capacity", (3000, 0), [(4000, 10000)] * 2, [(3000, 0), (3000, 5000)], (1, 1, 0), [50, 25]),
    ("zero node resources", (0, 0), [(0, 0)] * 2, [(3000, 0), (3000, 5000)], (1, 1, 0), [0, 0]),
    ("different weight", (3000, 5000), [(4000, 10000), (6000, 10000)], [(0, 0)] * 2, (1, 2, 0), [41, 50]),
    ("bypass extended", (3000, 5000), [(6000, 10000), (6000, 10000, 4)], [(0, 0)] * 2, (1, 1, 1), [50, 50]),
    ("honor extended", (3000, 5000, 2), [(6000, 10000, 4), (6000, 10000, 10)], [(0, 0)] * 2, (1, 1, 1), [50, 60]),
    ("node without it", (3000, 4000), [(6000, 10000), (6000, 10000, 4)], [(0, 0)] * 2, (1, 1, 2), [55, 55]),
]

MOST = [
    ("nothing scheduled, nothing requested", (0, 0), [(4000, 10000)] * 2, [(0, 0)] * 2, (1, 1, 0), [0, 0]),
    ("differently sized nodes", (3000, 5000), [(4000, 10000), (6000, 10000)], [(0, 0)] * 2, (1, 1, 0), [62, 50]),
    ("no resources requested", (0, 0), [(10000, 20000)] * 2, [(6000, 0), (6000, 5000)], (1, 1, 0), [30, 42]),
    ("resources requested", (3000, 5000), [(10000, 20000)] * 2, [(3000, 0), (3000, 5000)], (1, 1, 0), [42, 55]),
    ("equal node capacity", (5000, 9000), [(5000, 10000), (10000, 9000)], [(0, 0)] * 2, (1, 1, 0), [95, 75]),
    ("different weight", (3000, 5000), [(4000, 10000), (6000, 10000)], [(0, 0)] * 2, (1, 2, 0), [58, 50]),
    (
        "nonzero request for resource",
        (0.1, 200 * MIB),
        [(0.25, 1000 * MIB)] * 2,
        [(0.2, 400 * MIB), (0, 0)],
        (1, 1, 0),
        [80, 30],
    ),
    ("bypass extended", (3000, 5000), [(6000, 10000), (6000, 10000, 4)], [(0, 0)] * 2, (1, 1, 1), [50, 50]),
    ("honor extended", (3000, 5000, 2), [(6000, 10000, 4), (6000, 10000, 10)], [(0, 0)] * 2, (1, 1, 1), [50, 40]),
    ("node without it", (3000, 4000), [(6000, 10000), (6000, 10000, 4)], [(0, 0)] * 2, (1, 1, 2), [45, 45]),
]

LEAST_REQUESTED_SHAPE = ((0, 10), (100, 0))
RATIO = [
    ("nothing scheduled, nothing requested", (0, 0), [(4000, 10000)] * 2, [(0, 0)] * 2, [100, 100]),
    ("differently sized nodes", (3000, 5000), [(4000, 10000), (6000, 10000)], [(0, 0)] * 2, [38, 50]),
    ("no resources requested", (0, 0), [(4000, 10000), (6000, 10000)], [(3000, 5000)] * 2, [38, 50]),
]

# Only extended resources: foo in the column of memory, bar in that of the device, so that neither is in millicores.
EXTENDED_SHAPE = ((0, 0), (100, 1))
RATIO_EXTENDED = [
    ("single, nothing requested", (0, 0), [(8, 0), (4, 0)], [(0, 0)] * 2, (1, 0), [0, 0]),
    ("single, less resources", (2, 0), [(8, 0), (4, 0)], [(0, 0)] * 2, (1, 0), [2, 5]),
    ("single, existing pod", (2, 0), [(8, 0), (4, 0)], [(0, 0), (2, 0)], (1, 0), [2, 10]),
    ("single, more resources", (4, 0), [(8, 0), (4, 0)], [(0, 0)] * 2, (1, 0), [5, 10]),
    ("multiple, nothing requested", (0, 0), [(8, 4), (4, 8)], [(0, 0)] * 2, (3, 5), [0, 0]),
    ("multiple, less resources", (2, 2), [(8, 4), (4, 8)], [(0, 0)] * 2, (3, 5), [4, 3]),
    ("multiple, existing pod", (2, 2), [(8, 4), (4, 8)], [(0, 0), (4, 2)], (3, 5), [4, 7]),
    ("multiple, more resources", (4, 2), [(8, 4), (4, 8)], [(0, 0)] * 2, (3, 5), [5, 5]),
]

BALANCED = [
    ("differently sized nodes", (3, 5000), [(4, 10000), (6, 10000)], [(0, 0)] * 2, [68, 75]),
    ("resources requested", (3, 5000), [(10, 20000)] * 2, [(3, 0), (3, 5000)], [73, 74]),
    ("pods, differently sized nodes", (3, 5000), [(10, 20000), (10, 50000)], [(3, 0), (3, 5000)], [73, 70]),
    ("nodes to reach min/max score", (0, 5000), [(3, 5000)] * 2, [(3, 0), (0, 0)], [100, 50]),
    ("requested resources at node capacity", (3, 0), [(6, 10000)] * 2, [(3, 0), (3, 5000)], [62, 62]),
    ("scalar resource is included", (0, 0, 1), [(3.5, 40000, 8)] * 2, [(3, 5000, 3), (3, 5000, 0)], [75, 76]),
    ("devices on one node only", (0, 0, 1), [(3.5, 40000, 8), (3.5, 40000, 0)], [(3, 0), (3, 5000)], [76, 75]),
]


def ids(cases: Sequence[tuple[object, ...]]) -> list[str]:
    return [str(case[0]) for case in cases]


@pytest.mark.parametrize(("name", "pod", "nodes", "pods", "weights", "scores"), LEAST, ids=ids(LEAST))
def test_least_allocated(
    name: str, pod: Row, nodes: list[Row], pods: list[Row], weights: Row, scores: list[int]
) -> None:
    incoming = table(pod)[0]
    result = least_allocated_score(table(*pods), incoming, table(*nodes), weights_of(incoming, *weights))
    assert result.tolist() == scores


@pytest.mark.parametrize(("name", "pod", "nodes", "pods", "weights", "scores"), MOST, ids=ids(MOST))
def test_most_allocated(
    name: str, pod: Row, nodes: list[Row], pods: list[Row], weights: Row, scores: list[int]
) -> None:
    incoming = table(pod)[0]
    result = most_allocated_score(table(*pods), incoming, table(*nodes), weights_of(incoming, *weights))
    assert result.tolist() == scores


@pytest.mark.parametrize(("name", "pod", "nodes", "pods", "scores"), RATIO, ids=ids(RATIO))
def test_requested_to_capacity_ratio(name: str, pod: Row, nodes: list[Row], pods: list[Row], scores: list[int]) -> None:
    incoming = table(pod)[0]
    result = requested_to_capacity_ratio_score(
        table(*pods), incoming, table(*nodes), weights_of(incoming), LEAST_REQUESTED_SHAPE
    )
    assert result.tolist() == scores


@pytest.mark.parametrize(("name", "pod", "nodes", "pods", "weights", "scores"), RATIO_EXTENDED, ids=ids(RATIO_EXTENDED))
def test_requested_to_capacity_ratio_of_extended_resources(
    name: str, pod: Row, nodes: list[Row], pods: list[Row], weights: Row, scores: list[int]
) -> None:
    kinds = ("cpu", "example.com/foo", "example.com/bar")
    incoming = np.array([0.0, *pod])
    result = requested_to_capacity_ratio_score(
        np.array([[1.0, *row] for row in pods]),
        incoming,
        np.array([[4.0, *row] for row in nodes]),
        weights_for_pod(kinds, np.array([0.0, *weights]), incoming),
        EXTENDED_SHAPE,
    )
    assert result.tolist() == scores


@pytest.mark.parametrize(
    ("points", "values"),
    [
        (
            ((10, 1), (90, 9)),
            {-10: 1, 0: 1, 9: 1, 10: 1, 15: 1, 19: 1, 20: 2, 89: 8, 90: 9, 99: 9, 100: 9, 110: 9},
        ),
        (((0, 2), (40, 10), (100, 0)), {-10: 2, 0: 2, 20: 6, 30: 8, 40: 10, 70: 5, 100: 0, 110: 0}),
        (((0, 2), (40, 2), (100, 2)), {-10: 2, 0: 2, 20: 2, 30: 2, 40: 2, 70: 2, 100: 2, 110: 2}),
        (((50, 7),), {0: 7, 50: 7, 100: 7}),
        # 10 + (0 - 10) * 1 / 3 truncates towards 0 in Go: 10 - 3
        (((0, 10), (3, 0)), {1: 7, 2: 4}),
    ],
)
def test_broken_line(points: list[tuple[int, int]], values: dict[int, int]) -> None:
    assert broken_line(points, np.array(list(values))).tolist() == list(values.values())


@pytest.mark.parametrize(("name", "pod", "nodes", "pods", "scores"), BALANCED, ids=ids(BALANCED))
def test_balanced_allocation(name: str, pod: Row, nodes: list[Row], pods: list[Row], scores: list[int]) -> None:
    n_columns = 3 if len(pod) == 3 else 2
    requested, incoming, allocatable = table(*pods), table(pod)[0], table(*nodes)
    result = balanced_allocation_score(requested[:, :n_columns], incoming[:n_columns], allocatable[:, :n_columns])
    assert result.tolist() == scores


def test_what_is_not_known_or_not_requested_is_passed_over_as_upstream_does() -> None:
    unknown = np.array([[4.0, np.inf], [4.0, np.nan], [4.0, 0.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        score = least_allocated_score(np.zeros((3, 2)), np.array([1.0, 1e9]), unknown)
    assert score.tolist() == [75, 75, 75]
    assert balanced_allocation_score(np.ones((2, 2)), np.zeros(2), np.full((2, 2), 4.0)).tolist() == [0, 0]
    np.testing.assert_array_equal(nonzero_requests(np.array([np.nan, 0.0])), UNREQUESTED)
    np.testing.assert_array_equal(nonzero_requests(np.array([2.0, GIB])), [2.0, GIB])
    result = requested_to_capacity_ratio_score(np.zeros((1, 2)), np.array([6.0, 0.0]), np.array([[10.0, 1e9]]))
    assert result.tolist() == [60]
    pod = np.array([3.0, 5000.0, 0.0])
    counted = weights_of(pod, device=1) > 0
    nodes = np.array([[3.5, 40000.0, 8.0], [3.5, 40000.0, 0.0]])
    result = balanced_allocation_score(np.zeros((2, 3))[:, counted], pod[counted], nodes[:, counted])
    assert result.tolist() == [56, 56]
