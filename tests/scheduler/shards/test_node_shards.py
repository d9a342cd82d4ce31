"""Labels and annotations of nodes: read with tolerance, and back as they were written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.objects.objects import NodeInfo
from scheduler.shards.node_shards import (
    HANDED_OVER,
    SHARD_LABEL,
    WANTED,
    HandedOver,
    LoanRequest,
    handed_over,
    handing_over,
    pods_digest,
    shard_of,
    wanted,
    wanting,
)
from testing.objects import node_info

RECORDS = st.builds(
    HandedOver, source=st.integers(0, 255), to=st.integers(0, 255), pods=st.text(max_size=30), home=st.integers(-1, 255)
)
WISHES = st.builds(LoanRequest, to=st.integers(0, 255), until=st.floats(0.0, 1e12))


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
def test_a_wish_comes_back_as_it_was_written(wish: LoanRequest) -> None:
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
