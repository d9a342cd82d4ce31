"""What a node can do, by the first who knows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cluster.predicted.node_capacity import CAPACITY_ANNOTATION, KnownCapacities, read_amounts
from tests.scorer.live_cluster import assuming, model, node

ELSEWHERE = {"disk": 7.0, "network": 8.0}


def test_a_capacity_is_that_of_the_first_who_knows() -> None:
    capacity = model().node_capacity.copy()
    capacity[:, 4] = np.nan
    known = KnownCapacities(replace(model(), node_capacity=capacity), {"log": 5.0, "disk": 7.0})
    np.testing.assert_array_equal(known.of(node("node-0", 20.0)), [20, 20, 40, 40, 5])
    said = node("node-0", annotations={CAPACITY_ANNOTATION: '{"disk": "200M", "cpu": "500m"}'})
    np.testing.assert_array_equal(known.of(said), [0.5, 40, 200e6, 40, 5])
    capacity = model().node_capacity.copy()
    capacity[0, 2], capacity[1, 2], capacity[2, 2] = 30, 50, np.nan
    capacity[3, [0, 2]] = 99.0, 1000.0
    known = KnownCapacities(replace(model(), node_capacity=capacity), ELSEWHERE)
    assert known.of(node("new-1"))[2] == 40.0  # the median of 30 and 50
    np.testing.assert_array_equal(known.of(node("new-1", 3.0)), [3, 3, 7, 8, np.nan])
    np.testing.assert_array_equal(KnownCapacities(None).of(node("a", 8.0)), [8, 8, np.nan, np.nan, np.nan])
    bare = replace(node("a"), capacity={}, allocatable={"cpu": 3.0})
    np.testing.assert_array_equal(KnownCapacities(None).of(bare)[:2], [3, np.nan])
    np.testing.assert_array_equal(KnownCapacities(None).of(replace(bare, allocatable={})), np.full(5, np.nan))


def test_an_assumed_capacity_is_marked_and_gives_way_to_every_known_one() -> None:
    learned = assuming({0: 60.0, 1: 60.0})
    found = KnownCapacities(learned).look_up(node("node-0"))
    np.testing.assert_array_equal(found.amount, [40, 40, 60, 40, 40])
    np.testing.assert_array_equal(found.assumed, [False, False, True, False, False])
    configured = KnownCapacities(learned, {"disk": 7.0})
    found = configured.look_up(node("node-0"))
    assert found.amount[2] == 7 and not found.assumed.any()
    found = configured.look_up(node("node-0", annotations={CAPACITY_ANNOTATION: '{"disk": 9}'}))
    assert found.amount[2] == 9 and not found.assumed.any()
    found = KnownCapacities(learned).look_up(node("node-0", annotations={CAPACITY_ANNOTATION: '{"disk": 0}'}))
    assert found.amount[2] == 0 and not found.assumed.any()  # declared to be no limit
    found = KnownCapacities(assuming({0: 60.0}, known={1: 80.0})).look_up(node("node-0"))
    assert found.amount[2] == 80 and not found.assumed.any()
    known = KnownCapacities(assuming({0: 60.0, 1: 60.0}))
    found = known.look_up(node("new-1"))
    assert found.amount[2] == 60 and found.assumed.tolist() == [False, False, True, False, False]
    other = known.look_up(node("new-2", 3.0))
    assert np.isnan(other.amount[2]) and not other.assumed.any()


@pytest.mark.parametrize(
    ("text", "kept", "wrong"),
    [
        ('{"disk": "200M", "gpu": 1}', {"disk": 200e6}, ["'gpu'"]),
        ('{"disk": "fast", "log": "2M"}', {"log": 2e6}, ["'fast'"]),
        ('{"network": -1, "disk": 1, "x": 2}', {"disk": 1.0}, ["network", "'x'"]),
        ('{"disk": {"read": 1}, "log": 5}', {"log": 5.0}, ["read"]),
        ("[1]", {}, ["no JSON object"]),
        ("", {}, []),
    ],
)
def test_valid_keys_of_an_annotation_count_beside_invalid_ones(
    text: str, kept: dict[str, float], wrong: list[str]
) -> None:
    read = read_amounts(text)
    assert dict(read.by_name) == kept
    assert len(read.mistakes) == len(wrong)
    assert all(what in mistake for what, mistake in zip(wrong, read.mistakes, strict=True))
    found = KnownCapacities(None).look_up(node("node-0", annotations={CAPACITY_ANNOTATION: text}))
    assert found.mistakes == read.mistakes
    assert {name: amount for name, amount in kept.items() if amount in found.amount} == kept


def test_no_annotation_makes_a_long_list_of_mistakes() -> None:
    text = "{" + ",".join(f'"{i}": 1' for i in range(10_000)) + "}"
    assert len(read_amounts(text).mistakes) == 5
