"""PodGroups from JSON: what is read, and what becomes of mistakes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.decoding.stored_templates import StoredCondition
from placement.pod_groups.minima import MIN_PER_ROLE, Minima
from placement.pod_groups.pod_group import PodGroupInfo, PodGroupStatus
from scheduler.gangs.group_decoding import POD_GROUPS


def manifest(spec: Any = None, status: Any = None, annotations: Any = None) -> dict[str, Any]:
    metadata = {
        "namespace": "ml",
        "name": "train",
        "uid": "u-1",
        "generation": 3,
        "resourceVersion": "77",
        "creationTimestamp": "2026-11-21T10:00:00Z",
        "annotations": annotations,
    }
    return {"metadata": metadata, "spec": spec, "status": status}


def decoded(**parts: Any) -> PodGroupInfo:
    return POD_GROUPS.decoded(json.dumps(manifest(**parts)).encode())[0]


def test_all_that_is_read() -> None:
    condition = {
        "type": "Scheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "m",
        "observedGeneration": 2,
    }
    status = {
        "phase": "Running",
        "occupiedBy": "ml/job",
        "running": 2,
        "scheduleStartTime": None,
        "conditions": [condition],
    }
    body = json.dumps(
        manifest(
            {"minMember": 4, "scheduleTimeoutSeconds": 20, "minResources": {"cpu": 5}, "other": [1]},
            status,
            {MIN_PER_ROLE: '{"ps": 1}', "others": "x"},
        )
    ).encode()
    assert POD_GROUPS.decoded(body) == (
        PodGroupInfo(
            namespace="ml",
            name="train",
            uid="u-1",
            generation=3,
            created=1795255200.0,
            minima=Minima(4, {"ps": 1}),
            timeout_seconds=20.0,
            version="77",
            status=PodGroupStatus(
                phase="Running",
                occupied_by="ml/job",
                running=2,
                conditions=(StoredCondition("Scheduled", "False", "Unschedulable", "m", observed_generation=2),),
            ),
        ),
        "77",
    )


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"spec": {"minMember": -1}}, "minMember"),
        ({"spec": {"minMember": "4"}}, "minMember"),
        ({"spec": {"minMember": 2**40}}, "minMember"),
        ({"spec": [4]}, "spec"),
        ({"annotations": {MIN_PER_ROLE: "4"}}, f"{MIN_PER_ROLE}: must be a JSON object"),
        ({"annotations": {MIN_PER_ROLE: None}}, f"{MIN_PER_ROLE}: must be a JSON object"),
        ({"annotations": {MIN_PER_ROLE: 4}}, ""),
    ],
)
def test_one_with_a_mistake_is_a_group_with_a_problem(parts: dict[str, Any], says: str) -> None:
    found = decoded(**parts)
    assert found.problem and says in found.problem
    assert found.key == "ml/train" and found.uid == "u-1" and found.created


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["minMember", "a", "b"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(JSON, JSON, st.dictionaries(st.sampled_from([MIN_PER_ROLE, "x"]), st.text() | JSON.map(json.dumps)))
def test_whatever_is_written_into_one_it_stays_a_group(spec: Any, status: Any, annotations: dict[str, str]) -> None:
    found = decoded(spec=spec, status=status, annotations=annotations)
    assert found.key == "ml/train" and len(found.problem) <= 1024


def test_only_what_is_asked_for_makes_it_another() -> None:
    a = decoded(spec={"minMember": 4})
    assert a.says_the_same(decoded(spec={"minMember": 4}, status={"phase": "Running"}))
    assert not a.says_the_same(None)
    for other in (
        {"spec": {"minMember": 5}},
        {"spec": {"minMember": 4, "scheduleTimeoutSeconds": 1}},
        {"spec": {"minMember": -1}},
    ):
        assert not a.says_the_same(decoded(**other))
