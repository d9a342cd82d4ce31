from __future__ import annotations

from dataclasses import replace

from cluster.tables.changes import PodChange, Seat
from cluster.tables.state import ClusterState
from forecast.service_key import ServiceKey
from tenants.seen_pods import SeenPods
from tests.scorer.live_cluster import pod_of, service


def seen(**most: int) -> SeenPods:
    return SeenPods(ClusterState(), lambda namespace: namespace == "shop", **most)


def test_the_last_pod_of_a_service_is_remembered_when_it_is_gone() -> None:
    found, first, last = seen(), pod_of(1, "a", cpu=1), pod_of(1, "b", cpu=2)
    found.apply([PodChange(first, None, None), PodChange(last, None, None)])
    found.apply([PodChange(last, Seat(0, 0, 1.0), None)])
    found.apply([PodChange(replace(pod_of(2, "c"), namespace="other"), None, None)])
    assert len(found) == 1, "pods of no tenant are not remembered"
    assert found.last(service(1)) is last


def test_beyond_the_limit_the_service_that_was_asked_for_longest_ago_is_forgotten() -> None:
    found = seen(lasting=2)
    for number in (1, 2):
        found.note(service(number), pod_of(number, "p"))
    assert found.last(service(1)) is not None
    found.note(service(3), pod_of(3, "p"))
    assert found.last(service(2)) is None and found.last(service(1)) is not None and len(found) == 2


def test_bare_jobs_do_not_push_out_services() -> None:
    found = seen(lasting=2, passing=1)
    found.note(service(1), pod_of(1, "p"))
    for number in range(5):
        found.note(ServiceKey("shop", "Job", f"job-{number}"), pod_of(None, "p"))
    assert found.last(service(1)) is not None and len(found) == 2
