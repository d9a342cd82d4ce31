from __future__ import annotations

import pytest

from scheduler.service.answers import moment
from testing.app_client import AppClient
from tests.scheduler.service.simple_scheduling import SimpleScheduling, queued


def _names(client: AppClient, query: str = "") -> list[str]:
    return [pod["name"] for pod in client.get(f"/v1/queue{query}").raise_for_status().json()["pods"]]


def test_a_waiting_pod_says_why_it_waits(client: AppClient) -> None:
    answer = client.get("/v1/queue?limit=1").json()
    assert answer["pods"] == [
        {
            "namespace": "shop",
            "name": "cart-2",
            "uid": "uid-cart-2",
            "profile": "forecast-scheduler",
            "part": "unschedulable",
            "queue": "teams/search",
            "priority": 100,
            "since": "2026-02-02T02:40:00Z",
            "attempts": 3,
            "rejected_by": ["Domain", "NodeResourcesFit"],
            "message": "0/2 nodes are available: 2 Insufficient cpu.",
        }
    ]
    assert answer["total"] == 3
    assert answer["pending"] == {"active": 1, "backoff": 0, "unschedulable": 2, "gated": 0}


def test_pods_come_by_priority_then_by_how_long_they_wait(client: AppClient, scheduling: SimpleScheduling) -> None:
    scheduling.pods = [
        queued("late", since=moment(3e8)),
        queued("early", since=moment(1e8)),
        queued("high", since=moment(9e8), priority=1),
    ]
    assert _names(client) == ["high", "early", "late"]


def test_parts_and_namespaces_can_be_asked_for(client: AppClient) -> None:
    assert _names(client, "?part=gated") == ["search-1"]
    assert _names(client, "?namespace=shop") == ["cart-2", "cart-1"]
    assert _names(client, "?namespace=shop&part=gated") == []
    assert client.get("/v1/queue?part=gated").json()["total"] == 1


def test_an_answer_is_bounded(client: AppClient, scheduling: SimpleScheduling) -> None:
    scheduling.pods = [queued(f"p-{number:05d}", since=moment(number)) for number in reversed(range(5000))]
    assert _names(client) == [f"p-{number:05d}" for number in range(100)]
    answer = client.get("/v1/queue?limit=1000").json()
    assert (len(answer["pods"]), answer["total"]) == (1000, 5000)


@pytest.mark.parametrize("limit", ["0", "1001", "many"])
def test_a_limit_that_is_none_is_refused(client: AppClient, limit: str) -> None:
    answer = client.get(f"/v1/queue?limit={limit}")
    assert answer.status_code == 422 and "query limit" in answer.json()["error"]


def test_a_part_that_is_none_is_refused_and_those_there_are_named(client: AppClient) -> None:
    answer = client.get("/v1/queue?part=unschedulble")
    assert answer.status_code == 422
    assert "'active', 'backoff', 'unschedulable', 'gated' or 'in_flight'" in answer.json()["error"]
    assert client.get("/v1/queue?part=in_flight").status_code == 200
    assert client.get("/v1/queue?part=nowhere").status_code == 422
