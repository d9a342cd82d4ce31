"""What the answers of the API server to an eviction mean. Bodies are those of kube-apiserver 1.36, shortened."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.client.api_answer import answered
from kube.client.eviction import Evicted, eviction_body, eviction_of, eviction_path
from tests.scheduler.overcommit.nodes import pod

BUDGET = json.dumps(
    {
        "kind": "Status",
        "status": "Failure",
        "message": "Cannot evict pod as it would violate the pod's disruption budget.",
        "reason": "TooManyRequests",
        "details": {
            "causes": [{"reason": "DisruptionBudget", "message": "The disruption budget b needs 2 healthy pods"}]
        },
        "code": 429,
    }
).encode()
TWO_BUDGETS = (
    b'{"message":"This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."}'
)


@pytest.mark.parametrize(
    ("status", "body", "outcome"),
    [
        (201, b"{}", Evicted.GOING),
        (200, b"{}", Evicted.GOING),
        (404, b"{}", Evicted.GOING),
        (429, BUDGET, Evicted.REFUSED),
        (429, b"Too many requests, please try again later.", Evicted.NOT_NOW),
        (429, b'{"message":"busy","details":{"retryAfterSeconds":1}}', Evicted.NOT_NOW),
        (500, TWO_BUDGETS, Evicted.REFUSED),
        (500, b'{"message":"etcdserver: request timed out"}', Evicted.UNKNOWN),
        (503, b"", Evicted.UNKNOWN),
        (504, b"", Evicted.UNKNOWN),
        (409, b'{"message":"Precondition failed: UID in precondition"}', Evicted.NOT_NOW),
        (401, b"", Evicted.NOT_NOW),
        (403, b'{"message":"forbidden"}', Evicted.NOT_NOW),
        (422, b"{}", Evicted.REFUSED),
    ],
)
def test_answers(status: int, body: bytes, outcome: Evicted) -> None:
    assert eviction_of(answered(status, body)).outcome is outcome


@given(
    st.integers(100, 599),
    st.binary() | st.sampled_from([b'{"details":7}', b'{"message":null}', b"[]", b'{"message":"\\ud800"}']),
)
def test_any_answer_means_something(status: int, body: bytes) -> None:
    assert len(eviction_of(answered(status, body)).why) < 400


def test_an_eviction_names_its_pod_its_reason_and_whether_it_is_a_dry_run() -> None:
    assert eviction_of(answered(429, BUDGET)).why == "The disruption budget b needs 2 healthy pods"
    assert eviction_of(answered(403, b'{"message":"forbidden"}')).why == "403 forbidden: grant create on pods/eviction"
    assert eviction_of(answered(201, b"{}")).why == ""
    one = pod("web-0")
    assert eviction_path(one) == "/api/v1/namespaces/default/pods/web-0/eviction"
    assert json.loads(eviction_body(one))["deleteOptions"] == {"preconditions": {"uid": one.uid}}
    asked = json.loads(eviction_body(pod("web-0"), dry_run=True))["deleteOptions"]
    assert asked == {"preconditions": {"uid": pod("web-0").uid}, "dryRun": ["All"]}
