"""What a pod is taken to use as long as no metric has seen it."""

from __future__ import annotations

import numpy as np
import pytest

from cluster.live.virtual_request import virtual_request
from cluster.predicted.pod_bounds import VIRTUAL_REQUEST_ANNOTATION
from forecast.resources import CPU, MEMORY
from forecast.usage_limits import LARGEST
from tests.scorer.live_cluster import pod_of

PROFILE = np.array([1.0, 2.0, 3.0, np.nan, 5.0])


def said(text: str) -> dict[str, str]:
    return {VIRTUAL_REQUEST_ANNOTATION: text}


def test_the_annotation_wins_for_what_it_names_then_the_profile_then_requests() -> None:
    pod = pod_of(0, "p", cpu=0.5, memory=7.0)
    of_requests, of_profile = virtual_request(pod, None), virtual_request(pod, PROFILE)
    np.testing.assert_array_equal(of_requests.amount, [0.5, 7.0, 0, 0, 0])
    assert of_requests.source == "requests"
    np.testing.assert_array_equal(of_profile.amount, [1, 2, 3, 0, 5])
    assert of_profile.source == "profile of the service at this hour"
    pod = pod_of(0, "p", annotations=said('{"cpu": "800m", "network": "20M"}'))
    found = virtual_request(pod, PROFILE)
    np.testing.assert_array_equal(found.amount, [0.8, 2, 3, 20e6, 5])
    assert found.source == "annotation, else profile of the service at this hour"
    everything = '{"cpu": 1, "memory": "1Ki", "disk": 0, "network": "1", "log": "5"}'
    whole = virtual_request(pod_of(0, "p", annotations=said(everything)), None)
    np.testing.assert_array_equal(whole.amount, [1, 1024, 0, 1, 5])
    assert whole.source == "annotation"


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"gpu": 1}',
        '{"cpu": "many"}',
        '{"cpu": -1}',
        '{"cpu": NaN}',
        '{"cpu": 1e999}',
        '{"cpu": true}',
        '{"cpu":' * 100_000,
        "\x00",
    ],
    ids=lambda text: text[:16],
)
def test_a_mistake_in_the_annotation_is_told_and_changes_nothing(text: str) -> None:
    found = virtual_request(pod_of(0, "p", annotations=said(text)), PROFILE)
    np.testing.assert_array_equal(found.amount, [1, 2, 3, 0, 5])
    assert found.mistake is not None
    assert len(found.mistake) < 300
    assert "\n" not in found.mistake


def test_no_pod_is_taken_to_use_more_than_any_machine_has() -> None:
    for pod in (
        pod_of(None, "p", cpu=1e29, memory=1e29),
        pod_of(None, "p", annotations=said('{"cpu": 1e29, "memory": 1e29}')),
    ):
        amount = virtual_request(pod, None).amount
        assert amount[CPU] == LARGEST[CPU]
        assert amount[MEMORY] == LARGEST[MEMORY]
