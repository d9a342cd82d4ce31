"""Counting pods by what their annotations record: event by event as from a list."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from admission.templates.shaping_annotations import TEMPLATES_ANNOTATION, Applied, record_text
from admission.webhook.recorded_pods import POD_RECORDS, RecordedPod, RecordedPods


def _metadata(annotations: Any, uid: str = "u-1") -> bytes:
    metadata = {"name": "p", "namespace": "shop", "uid": uid, "resourceVersion": "12", "annotations": annotations}
    return json.dumps({"kind": "PartialObjectMetadata", "metadata": metadata}).encode()


def test_records_of_a_pod_are_read_and_what_others_wrote_counts_nothing() -> None:
    annotations = {
        TEMPLATES_ANNOTATION: record_text([Applied("evening", 1, "NodeSchedulerConfig/a", 2), Applied("b", 1, "x", 1)]),
        "other": "x",
    }  # fmt: skip
    assert POD_RECORDS.decoded(_metadata(annotations)) == (RecordedPod("u-1", ("evening", "b")), "12")
    assert POD_RECORDS.decoded(_metadata(None)) == (RecordedPod("u-1"), "12")
    assert POD_RECORDS.metadata_only
    for text in ("", "[", "{}", "[{}]", '[{"binding":""}]', "[" * 10_000, "x" * 10**6):
        assert POD_RECORDS.decoded(_metadata({TEMPLATES_ANNOTATION: text}))[0] == RecordedPod("u-1")
    many = record_text([Applied(f"b-{i}", 1, "t", 1) for i in range(300)])
    assert len(POD_RECORDS.decoded(_metadata({TEMPLATES_ANNOTATION: many}))[0].shaped_by) == 64
    names = ["x" * 300, "No_Name", "a", "a"]
    odd = record_text([Applied(name, 1, "t", 1) for name in names])
    assert POD_RECORDS.decoded(_metadata({TEMPLATES_ANNOTATION: odd}))[0].shaped_by == ("a",)


_names = st.lists(st.sampled_from("abc"), max_size=3, unique=True).map(tuple)
_records = st.builds(RecordedPod, st.sampled_from(["u1", "u2", "u3"]), _names)
_steps = st.lists(
    st.tuples(st.sampled_from(["put", "delete"]), _records)
    | st.tuples(st.just("replace"), st.lists(_records, unique_by=lambda one: one.uid)),
    max_size=30,
)


@given(_steps)
def test_counts_follow_every_event(steps: list[tuple[str, Any]]) -> None:
    pods, plain = RecordedPods(), dict[str, RecordedPod]()
    for act, what in steps:
        getattr(pods, act)(what)
        if act == "replace":
            plain = {one.uid: one for one in what}
        elif act == "put":
            plain[what.uid] = what
        else:
            plain.pop(what.uid, None)
        assert pods.counts() == Counter(name for one in plain.values() for name in one.shaped_by)
