"""Which replica a unit goes to: by weight, alike in every process, and with few moves when a replica dies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.objects.objects import NodeInfo
from scheduler.shards.dispatch import Dispatcher, dispatcher
from scheduler.shards.node_shards import (
    HANDED_OVER,
    SHARD_LABEL,
    WANTED,
    HandedOver,
    Wanted,
    handed_over,
    handing_over,
    pods_digest,
    shard_of,
    wanted,
    wanting,
)
from testing.objects import node_info

UNITS = [f"owner:team-{i % 50}/{i:x}" for i in range(4000)]
HOLDERS = {number: f"replica-{number % 4}" for number in range(16)}

ELSEWHERE = """
from scheduler.shards.dispatch import dispatcher
one = dispatcher({number: f"replica-{number % 4}" for number in range(16)}, {3: 2.5, 7: 0.3})
print([one.in_order(f"unit-{i}") for i in range(300)])
"""


def firsts(one: Dispatcher) -> dict[str, str]:
    return {unit: one.in_order(unit)[0] for unit in UNITS}


@pytest.mark.parametrize("weight", [0.25, 1.0, 2.0, 4.0])
def test_a_shard_gets_units_by_its_room(weight: float) -> None:
    """4,000 units: five standard deviations of a binomial count around the share."""
    counts = Counter(firsts(dispatcher({0: "a", 1: "b", 2: "c"}, {0: weight})).values())
    share = weight / (weight + 2)
    bound = 5 * (len(UNITS) * share * (1 - share)) ** 0.5
    assert abs(counts["a"] - len(UNITS) * share) < bound
    assert abs(counts["b"] - counts["c"]) < 5 * (len(UNITS) * (1 - share)) ** 0.5


def test_a_holder_that_dies_moves_only_its_units_and_to_the_next_in_their_order() -> None:
    before = dispatcher(HOLDERS, {})
    after = dispatcher({number: one for number, one in HOLDERS.items() if one != "replica-2"}, {})
    n_moved = 0
    for unit in UNITS:
        without = tuple(one for one in before.in_order(unit) if one != "replica-2")
        assert after.in_order(unit) == without
        n_moved += before.in_order(unit)[0] == "replica-2"
    assert 0 < n_moved < len(UNITS) / 2


def test_a_shard_that_changes_hands_moves_no_unit_of_another_replica() -> None:
    before, after = firsts(dispatcher(HOLDERS, {})), firsts(dispatcher(HOLDERS | {5: "replica-3"}, {}))
    moved = {(before[unit], after[unit]) for unit in UNITS if before[unit] != after[unit]}
    assert moved == {("replica-1", "replica-3")}


def test_another_process_says_the_same() -> None:
    """str.__hash__ differs from process to process."""
    said = [
        subprocess.run(
            [sys.executable, "-c", ELSEWHERE],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]
    ours = dispatcher(HOLDERS, {3: 2.5, 7: 0.3})
    assert said == [f"{[ours.in_order(f'unit-{i}') for i in range(300)]}\n"] * 2


@given(
    holders=st.dictionaries(st.integers(0, 255), st.sampled_from("abcde"), max_size=30),
    rooms=st.dictionaries(st.integers(0, 255), st.floats(0.0, 1e9), max_size=30),
    unit=st.text(max_size=80),
)
def test_the_order_has_every_holder_once(holders: dict[int, str], rooms: dict[int, float], unit: str) -> None:
    order = dispatcher(holders, rooms).in_order(unit)
    assert sorted(order) == sorted(set(holders.values()))
    assert dispatcher(dict(reversed(holders.items())), rooms).in_order(unit) == order


RECORDS = st.builds(
    HandedOver, source=st.integers(0, 255), to=st.integers(0, 255), pods=st.text(max_size=30), home=st.integers(-1, 255)
)
WISHES = st.builds(Wanted, to=st.integers(0, 255), until=st.floats(0.0, 1e12))


def labelled(shard: str, name: str = "node") -> NodeInfo:
    return node_info(name, labels={SHARD_LABEL: shard})


def annotated(key: str, text: str) -> NodeInfo:
    return node_info("node", annotations={key: text})


def patched(patch: bytes) -> NodeInfo:
    """A node with nothing but what the patch says."""
    metadata = json.loads(patch)["metadata"]
    said = {key: text for key, text in metadata["annotations"].items() if text is not None}
    return node_info("node", labels=metadata.get("labels", {}), annotations=said)


@pytest.mark.parametrize("label", ["", "8", "-1", "1.5", "x", "1000", "٣", "²", " 1"])
def test_a_label_that_names_no_shard_is_no_label(label: str) -> None:
    assert shard_of(labelled(label), 8) == shard_of(node_info("node"), 8)


@given(record=RECORDS)
def test_a_hand_over_comes_back_as_it_was_written(record: HandedOver) -> None:
    patch = handing_over("17", record)
    node = patched(patch)
    assert handed_over(node) == record and shard_of(node, 256) == record.to
    metadata = json.loads(patch)["metadata"]
    assert metadata["resourceVersion"] == "17", "or a hand-over could undo another one"
    assert metadata["annotations"][WANTED] is None


@given(wish=WISHES)
def test_a_wish_comes_back_as_it_was_written(wish: Wanted) -> None:
    node = patched(wanting(wish))
    assert wanted(node) == wish and shard_of(node, 8) == shard_of(node_info("node"), 8)
    assert wanted(patched(wanting(None))) is None


@given(text=st.text() | st.sampled_from(['{"source":1}', '{"source":"1","to":2,"pods":""}', "[]", "null", '{"to":1}']))
def test_damaged_annotations_say_nothing(text: str) -> None:
    assert handed_over(annotated(HANDED_OVER, text)) is None
    assert wanted(annotated(WANTED, text)) is None


@given(uids=st.sets(st.uuids().map(str), max_size=20), more=st.uuids().map(str))
def test_a_digest_tells_sets_of_pods_apart_whatever_their_order(uids: set[str], more: str) -> None:
    assert pods_digest(sorted(uids)) == pods_digest(sorted(uids, reverse=True))
    if more not in uids:
        assert pods_digest({*uids, more}) != pods_digest(uids)
