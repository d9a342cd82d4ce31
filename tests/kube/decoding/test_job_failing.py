"""What a Job's spec says of failures, as the API server writes it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kube.decoding.decoding import Kind, decode_object
from kube.decoding.job_specs import Failing, OnDisruption
from kube.decoding.jobs import JobInfo

DISRUPTED = [{"type": "DisruptionTarget", "status": "True"}]


def decode(spec: dict[str, Any], **status: Any) -> JobInfo:
    manifest = {"metadata": {"name": "work", "uid": "u"}, "spec": spec, "status": status}
    job = decode_object(Kind.JOBS, json.dumps(manifest).encode())[0]
    assert isinstance(job, JobInfo)
    return job


def rule(action: str, conditions: list[dict[str, str]] | None = None) -> dict[str, Any]:
    return {"action": action, "onPodConditions": DISRUPTED if conditions is None else conditions}


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([rule("Ignore")], OnDisruption.IGNORED),
        ([rule("Ignore", [{"type": "DisruptionTarget"}])], OnDisruption.IGNORED),
        ([rule("FailJob")], OnDisruption.FATAL),
        ([rule("FailIndex")], OnDisruption.FATAL),
        ([rule("Count"), rule("Ignore")], OnDisruption.COUNTS),
        ([rule("FailJob", [{"type": "ConfigIssue", "status": "True"}]), rule("Ignore")], OnDisruption.IGNORED),
        ([rule("Ignore", [{"type": "DisruptionTarget", "status": "False"}])], OnDisruption.COUNTS),
        ([{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}], OnDisruption.COUNTS),
        ([], OnDisruption.COUNTS),
        (None, OnDisruption.COUNTS),
    ],
)
def test_the_first_rule_that_matches_a_disruption_decides(rules: Any, expected: OnDisruption) -> None:
    failing = decode({"podFailurePolicy": {"rules": rules}, "backoffLimit": 3}).failing
    assert failing == Failing(3, expected, replaces_only_ended=True)


def test_what_the_controller_is_about_to_count_is_read() -> None:
    run = decode({}, failed=2, terminating=3, uncountedTerminatedPods={"failed": ["a", "b"], "succeeded": ["c"]})
    assert (run.failed, run.uncounted_failed, run.terminating) == (2, 2, 3)
    assert decode({}, uncountedTerminatedPods={"failed": None}).uncounted_failed == 0
