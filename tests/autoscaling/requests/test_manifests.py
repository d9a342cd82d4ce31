"""Recommendations as manifests: requests shared out to containers, below their limits, in the proportion of today's."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from autoscaling.requests.manifests import container_requests, cut_by_limits, patches, vertical_pod_autoscalers
from autoscaling.requests.pod_resources import PodContainers
from autoscaling.requests.recommending import ALWAYS, LeftAlone, Recommendation
from forecast.service_key import ServiceKey

GIB = 2.0**30
CART = ServiceKey("shop", "Deployment", "cart")
TWO = PodContainers(
    {"main": {"cpu": 0.3, "memory": 3 * GIB}, "helper": {"cpu": 0.1, "memory": GIB}}, {"main": {}, "helper": {}}
)


def recommendation(service: ServiceKey = CART, because: LeftAlone | None = None) -> Recommendation:
    """Two cores and 2 GiB."""
    return Recommendation(
        service=service,
        replicas=3.0,
        today=(0.4, 4 * GIB),
        once=2.0,
        cores={ALWAYS: 2.0},
        by_slot=np.full(336, 2.0),
        memory_bytes=2 * GIB,
        because=because,
    )


def test_containers_share_a_request_as_they_share_todays() -> None:
    shared, is_cut = container_requests(recommendation(), TWO)
    assert shared["main"] == pytest.approx({"cpu": 1.5, "memory": 1.5 * GIB})
    assert shared["helper"] == pytest.approx({"cpu": 0.5, "memory": 0.5 * GIB})
    assert not is_cut


def test_without_requests_today_the_first_container_gets_all() -> None:
    bare = PodContainers({"main": {}, "helper": {}}, {"main": {}, "helper": {}})
    shared, _ = container_requests(recommendation(), bare)
    assert shared == {"main": {"cpu": 2.0, "memory": 2 * GIB}, "helper": {}}


def test_a_limit_is_never_passed() -> None:
    limited = PodContainers({"main": {"cpu": 0.3}}, {"main": {"cpu": 1.0}})
    shared, is_cut = container_requests(recommendation(), limited)
    assert shared["main"]["cpu"] == 1.0
    assert is_cut
    assert cut_by_limits([recommendation()], {CART: limited}) == (CART,)
    assert cut_by_limits([recommendation()], {CART: TWO}) == ()


def test_a_patch_names_the_owner_and_its_containers() -> None:
    (patch,) = patches([recommendation()], {CART: TWO})
    assert patch["apiVersion"] == "apps/v1"
    assert patch["metadata"] == {"name": "cart", "namespace": "shop"}
    assert patch["spec"]["template"]["spec"]["containers"] == [
        {"name": "main", "resources": {"requests": {"cpu": "1500m", "memory": "1536Mi"}}},
        {"name": "helper", "resources": {"requests": {"cpu": "500m", "memory": "512Mi"}}},
    ]


def test_a_vertical_pod_autoscaler_only_shows_it() -> None:
    (shown,) = vertical_pod_autoscalers([recommendation()], {CART: TWO}, datetime(2026, 9, 14, tzinfo=UTC))
    assert shown["apiVersion"] == "autoscaling.k8s.io/v1"
    assert shown["spec"]["updatePolicy"] == {"updateMode": "Off"}
    assert shown["spec"]["targetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "cart"}
    targets = shown["status"]["recommendation"]["containerRecommendations"]
    assert targets[0] == {"containerName": "main", "target": {"cpu": "1500m", "memory": "1536Mi"}}


@pytest.mark.parametrize(
    "one",
    [
        recommendation(because=LeftAlone.NOT_MEASURED),
        recommendation(ServiceKey("shop", "Database", "cart")),
        recommendation(ServiceKey("shop", "Deployment", "unseen")),
    ],
)
def test_what_is_left_alone_or_not_known_has_no_manifest(one: Recommendation) -> None:
    assert not list(patches([one], {CART: TWO, ServiceKey("shop", "Database", "cart"): TWO}))
