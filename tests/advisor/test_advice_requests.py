"""Bodies of patches, the note on a pod, and what a look at a pod says."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from advisor.advice_requests import PodLook, advice_note, pending_pod
from tests.advisor.made_up import OTHER_GATE, gated, pod_answer, scheduled_is
from tests.placement.decisions.made_up import advice, expecting

OF_NODE = {"resource": "cpu", "at": "2026-09-21T22:00:00+00:00"}


def test_the_note_says_what_was_advised_and_leaves_out_what_is_not_known() -> None:
    made = advice({"n1": 6, "n2": 3}, peak=expecting(0.612345), model_version="2026-09-20T02-00")
    assert msgspec.json.decode(advice_note(made)) == {
        "node": "n1",
        "expected_peak": OF_NODE | {"share": 0.6123, "upper_bound": 0.7348},
        "runner_up": "n2",
        "model": "2026-09-20T02-00",
    }
    assert msgspec.json.decode(advice_note(advice({"n1": 6}, peak=expecting(None), model_version=None))) == {
        "node": "n1"
    }
    assert msgspec.json.decode(advice_note(advice({"n1": 6}, peak=expecting(0.0), model_version=None))) == {
        "node": "n1",
        "expected_peak": OF_NODE | {"share": 0.0, "upper_bound": 0.0},
    }, "a peak of 0 is one"


@pytest.mark.parametrize("given", [None, advice({})])
def test_the_note_says_why_there_is_no_advice(given: Any) -> None:
    assert msgspec.json.decode(advice_note(given, "no node")) == {"node": None, "because": "no node"}
    assert msgspec.json.decode(advice_note(given, "late", nominated="n3")) == {"node": "n3", "because": "late"}


def test_a_pending_pod_is_read() -> None:
    held = gated("a", OTHER_GATE, nominated_node="n1")
    body = pod_answer(held, version="41", **scheduled_is("False", "SchedulingGated")).body
    assert pending_pod(body) == PodLook("41", node="", nominated="n1", is_gated=True, is_tried=False)
    bound = pod_answer(gated("a", node="n2", gates=()), **scheduled_is("True", None)).body
    assert pending_pod(bound) == PodLook("7", node="n2", nominated="", is_gated=False, is_tried=False)
    other = pod_answer(gated("a", gates=(OTHER_GATE,))).body
    assert not pending_pod(other).is_gated


@pytest.mark.parametrize(
    ("status", "reason", "is_tried"),
    [
        ("False", "Unschedulable", True),
        ("False", "SchedulerError", True),
        ("False", None, True),
        ("False", "SchedulingGated", False),
        ("True", None, False),
        ("Unknown", "Unschedulable", False),
    ],
)
def test_the_condition_says_whether_kube_scheduler_has_tried(status: str, reason: str | None, is_tried: bool) -> None:
    body = pod_answer(gated("a", gates=()), **scheduled_is(status, reason)).body
    assert pending_pod(body).is_tried is is_tried
