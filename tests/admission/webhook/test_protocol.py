"""AdmissionReviews in and out, and the JSON patch: right whatever the pod has already."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.webhook.admission_review import (
    MalformedReview,
    allowed,
    decode_review,
    patch_of,
    pod_of,
    shortened,
)
from testing.reviews import patched, review_of

AFFINITY: dict[str, Any] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}


def _after(pod: Any, affinity: Any, annotations: dict[str, str | None]) -> Any:
    return patched(pod, allowed("u-1", patch_of(pod, affinity, annotations)))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}',
        b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":null}',
        b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":""}}',
        b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":7}}',
        b'{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{"uid":"u"}}',
        b'{"apiVersion":"admission.k8s.io/v1","kind":"Pod","request":{"uid":"u"}}',
        b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"\xff"}}',
        b"[" * 100_000,
        b'{"x":' * 100_000,
    ],
)
def test_what_is_no_review_is_said_to_be_none(body: bytes) -> None:
    with pytest.raises(MalformedReview, match="no AdmissionReview"):
        decode_review(body)


@pytest.mark.parametrize("pod", [None, 7, [], "pod"])
def test_an_object_that_is_no_object_is_malformed(pod: Any) -> None:
    with pytest.raises(MalformedReview, match="no pod"):
        pod_of(decode_review(review_of(pod)))


@pytest.mark.parametrize(
    "metadata", [{}, {"annotations": None}, {"annotations": {}}, {"annotations": {"a/b~c": "old", "kept": "1"}}]
)
@pytest.mark.parametrize("spec", [{}, {"affinity": None}, {"affinity": {"podAffinity": {}}}])
def test_the_patch_fits_whatever_the_pod_has_already(metadata: dict[str, Any], spec: dict[str, Any]) -> None:
    pod = {"metadata": metadata, "spec": spec}
    made = _after(pod, AFFINITY, {"a/b~c": "new", "~1/~0": "x", "not/there": None})
    kept = {"kept": "1"} if metadata.get("annotations") else {}
    assert made == {"metadata": {"annotations": kept | {"a/b~c": "new", "~1/~0": "x"}}, "spec": {"affinity": AFFINITY}}
    assert _after(made, None, {"a/b~c": None})["metadata"] == {"annotations": kept | {"~1/~0": "x"}}
    assert patch_of(pod, None, {"not/there": None}) is patch_of(pod, None, {}) is None


@pytest.mark.parametrize("spec", [{}, {"schedulingGates": None}, {"schedulingGates": [{"name": "a"}]}])
def test_gates_are_set_as_a_whole(spec: dict[str, Any]) -> None:
    gates = [{"name": "a"}, {"name": "b"}]
    pod = {"metadata": {}, "spec": spec}
    made = patched(pod, allowed("u-1", patch_of(pod, None, {}, gates)))
    assert made == {"metadata": {}, "spec": {"schedulingGates": gates}}
    shaped = patched(pod, allowed("u-1", patch_of(pod, AFFINITY, {"a": "b"}, gates)))
    assert shaped["spec"] == {"affinity": AFFINITY, "schedulingGates": gates}


@pytest.mark.parametrize("pod", [{}, {"spec": 7, "metadata": []}, {"spec": None, "metadata": None}])
def test_a_pod_without_the_places_is_left_alone(pod: Any) -> None:
    assert patch_of(pod, AFFINITY, {"a": "b"}, [{"name": "a"}]) is None


@given(st.text(max_size=400))
def test_warnings_are_one_line_that_the_api_server_passes_on(text: str) -> None:
    line = shortened(text)
    assert len(line) <= 120 and (line.isprintable() or not line)


def test_what_is_asked_is_read_and_warnings_are_few() -> None:
    affinity: dict[str, Any] = {"nodeAffinity": {}}
    pod = {"metadata": {"name": "cart", "uid": "u"}, "spec": {"containers": [], "affinity": affinity}}
    request = decode_review(review_of(pod, dryRun=True))
    assert (request.uid, request.namespace, request.operation, request.dry_run) == ("u-1", "shop", "CREATE", True)
    assert (request.kind.group, request.kind.version, request.kind.kind) == ("", "v1", "Pod")
    assert pod_of(request) == {"metadata": {"name": "cart"}, "spec": {"affinity": affinity}}  # what templates look at
    response = json.loads(allowed("u-1", None, []))
    assert response == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "u-1", "allowed": True},
    }
    warnings = json.loads(allowed("u-1", None, ["x" * 200] * 50))["response"]["warnings"]
    assert 1 < len(warnings) <= 8 and {len(one) for one in warnings} == {120}
