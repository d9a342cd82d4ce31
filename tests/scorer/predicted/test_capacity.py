"""What a node can do, by the first who knows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from forecast.errors import InputError
from scorer.predicted.capacity import CAPACITY_ANNOTATION, KnownCapacities, amounts_in
from tests.scorer.live_cluster import model, node

ELSEWHERE = {"disk": 7.0, "network": 8.0}


def test_the_annotation_wins_then_the_node_then_the_model_then_the_defaults() -> None:
    capacity = model().node_capacity.copy()
    capacity[:, 4] = np.nan
    known = KnownCapacities(replace(model(), node_capacity=capacity), {"log": 5.0, "disk": 7.0})
    np.testing.assert_array_equal(known.of(node("node-0", 20.0)), [20, 20, 40, 40, 5])
    said = node("node-0", annotations={CAPACITY_ANNOTATION: '{"disk": "200M", "cpu": "500m"}'})
    np.testing.assert_array_equal(known.of(said), [0.5, 40, 200e6, 40, 5])


def test_a_node_the_model_does_not_know_is_taken_for_one_with_as_much_cpu() -> None:
    capacity = model().node_capacity.copy()
    capacity[0, 2], capacity[1, 2], capacity[2, 2] = 30, 50, np.nan
    capacity[3, [0, 2]] = 99.0, 1000.0
    known = KnownCapacities(replace(model(), node_capacity=capacity), ELSEWHERE)
    assert known.of(node("new-1"))[2] == 40.0  # the median of 30 and 50
    np.testing.assert_array_equal(known.of(node("new-1", 3.0)), [3, 3, 7, 8, np.nan])


def test_without_a_model_cpu_and_memory_are_those_of_the_node() -> None:
    np.testing.assert_array_equal(KnownCapacities(None).of(node("a", 8.0)), [8, 8, np.nan, np.nan, np.nan])
    bare = replace(node("a"), capacity={}, allocatable={"cpu": 3.0})
    np.testing.assert_array_equal(KnownCapacities(None).of(bare)[:2], [3, np.nan])
    np.testing.assert_array_equal(KnownCapacities(None).of(replace(bare, allocatable={})), np.full(5, np.nan))


@pytest.mark.parametrize("text", ["{", '{"gpu": 1}', '{"disk": -1}', "[" * 100_000])
def test_a_mistake_in_the_annotation_does_not_take_the_node_away(text: str) -> None:
    broken = node("node-0", annotations={CAPACITY_ANNOTATION: text})
    np.testing.assert_array_equal(KnownCapacities(model()).of(broken), np.full(5, 40.0))
    with pytest.raises(InputError):
        amounts_in(text)
