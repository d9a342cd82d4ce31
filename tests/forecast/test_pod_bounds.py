"""What pods can use at most, whatever they request."""

from __future__ import annotations

import numpy as np
import pytest

from forecast.resources import CPU, MEMORY
from forecast.usage_limits import LARGEST, bounded_by_nodes, largest_node

CAPACITY = np.array([[4.0, 16e9], [32.0, np.nan], [np.nan, np.nan]])


@pytest.mark.parametrize("absurd", [1e18, 2.0**63 - 1, 1e30, np.inf])
@pytest.mark.parametrize(
    ("node", "most"),
    [(0, [4.0, 16e9]), (1, [32.0, 16e9]), (2, [32.0, 16e9]), (-1, [32.0, 16e9])],
    ids=["its node", "a node of unknown memory", "an unknown node", "no node"],
)
def test_a_pod_can_use_what_its_node_has_or_else_the_largest(absurd: float, node: int, most: list[float]) -> None:
    assert bounded_by_nodes(np.full((1, 2), absurd), CAPACITY, np.array([node])).tolist() == [most]


def test_what_fits_and_what_is_unknown_stays() -> None:
    requests = np.array([[0.5, 1e9], [np.nan, 16e9]])
    np.testing.assert_array_equal(bounded_by_nodes(requests, CAPACITY, np.array([0, 0])), requests)


def test_without_nodes_there_is_still_a_bound() -> None:
    none = np.zeros((0, 2))
    assert bounded_by_nodes(np.full((1, 2), 1e30), none)[0].tolist() == [LARGEST[CPU], LARGEST[MEMORY]]
    assert largest_node(np.zeros((0, len(LARGEST)))).tolist() == LARGEST.tolist()
