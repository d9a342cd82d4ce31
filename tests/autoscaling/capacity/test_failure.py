from __future__ import annotations

import numpy as np
import pytest

from autoscaling.capacity.failure import NodeLoss, busiest_slot, try_failure
from autoscaling.capacity.node_pool import RecordedPool, node_groups
from base.errors import InputError
from tests.autoscaling.capacity.tiny_prepared import N_SLOTS, by_day, steady


def test_the_busiest_hour_begins_at_a_full_hour() -> None:
    curve = np.ones((2, N_SLOTS))
    curve[:, 41] = 3.0
    assert busiest_slot(by_day(curve, n_nodes=2).recording) == 40


def test_pods_of_lost_nodes_load_those_that_remain_and_only_the_busiest_hour_counts() -> None:
    curve = np.full((4, N_SLOTS), 9.5)  # hot at all times but the busiest
    curve[:, 20:22] = 10.0
    hot = by_day(curve, n_nodes=4)
    pool = RecordedPool(node_groups(hot.recording))
    assert try_failure(hot, pool, "oracle", 4, 0, NodeLoss(nodes=1)).hot_share == 1.0
    cool = steady([4.0] * 4, n_nodes=4)
    pool = RecordedPool(node_groups(cool.recording))
    assert try_failure(cool, pool, "oracle", 4, 0, NodeLoss(nodes=2)).hot_share == 0.0
    assert try_failure(cool, pool, "oracle", 3, 0, NodeLoss(nodes=2)).hot_share == 1.0


@pytest.mark.parametrize("rule", ["native", "live", "forecast"])
def test_no_rule_places_on_a_lost_node_even_pods_without_requests(rule: str) -> None:
    prepared = steady([3.0] * 6, n_nodes=4, requests=0.0)
    pool = RecordedPool(node_groups(prepared.recording))
    trial = try_failure(prepared, pool, rule, 4, 0, NodeLoss(nodes=3))
    assert trial.hot_share == 1.0  # all six on the only node


def test_the_most_loaded_nodes_or_every_third_node_are_lost() -> None:
    share = np.array([0.1, 0.9, 0.2, 0.8, 0.3, 0.4, 0.5])
    assert sorted(NodeLoss(nodes=2).lost(share).tolist()) == [1, 3]
    assert NodeLoss(zones=3).lost(share).tolist() == [0, 3, 6]


@pytest.mark.parametrize(("nodes", "zones"), [(0, 0), (1, 3), (0, 1), (-1, 0)])
def test_a_failure_is_of_nodes_or_of_a_zone(nodes: int, zones: int) -> None:
    with pytest.raises(InputError, match="a reserve is for"):
        NodeLoss(nodes, zones)
