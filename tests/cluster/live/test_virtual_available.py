"""What nodes have left now, and how wrong the forecast is now."""

from __future__ import annotations

import numpy as np

from cluster.live.usage import NodeUsage, usage_by_row
from cluster.live.virtual_request import virtual_available
from tests.scorer.live_cluster import measured


def test_it_is_capacity_less_usage_less_charges_and_unknown_without_a_limit_or_a_measurement() -> None:
    capacity = np.array([[10.0, 10.0, np.nan, 0.0]])
    usage = np.array([[4.0, np.nan, 4.0, 4.0]])
    charged = np.array([[7.0, 1.0, 1.0, 1.0]])
    np.testing.assert_array_equal(virtual_available(capacity, usage, charged), [[-1.0, np.nan, np.nan, np.nan]])


def test_usage_is_by_row_under_whichever_name_and_unknown_nodes_are_passed_over() -> None:
    usage, sampled = usage_by_row(measured({"10.0.0.2": 2.0, "gone": 9.0, "b": 1.0}, 7.0), {"b": 0, "10.0.0.2": 2}, 4)
    np.testing.assert_array_equal(usage[:, 0], [1.0, np.nan, 2.0, np.nan])
    np.testing.assert_array_equal(sampled, [7.0, np.nan, 7.0, np.nan])
    read = NodeUsage(
        ("10.0.0.1", "a"), np.array([[3.0, np.nan], [np.nan, 4.0]]), np.array([90.0, 80.0])
    )  # fmt: skip
    usage, sampled = usage_by_row(read, {"a": 0, "10.0.0.1": 0}, 1)
    np.testing.assert_array_equal(usage, [[3.0, 4.0]])
    np.testing.assert_array_equal(sampled, [80.0])
