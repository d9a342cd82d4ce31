from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from kube.events.event_recorder import EventFigures, session_post
from scheduler.pod_reports import SchedulingEvents
from tests.scheduler.binding.made_up import Scripted, pod_info, scripted_server, session_to

Make = Callable[..., SchedulingEvents]


@pytest.fixture
def posted() -> list[dict[str, Any]]:
    return []


@pytest.fixture
def make(posted: list[dict[str, Any]]) -> Make:
    """Events that start to be posted when they are stopped: until then nothing is in a hurry."""

    def post(path: str, body: bytes) -> int:
        posted.append({"path": path} | json.loads(body))
        return 201

    def of(**settings: Any) -> SchedulingEvents:
        return SchedulingEvents(post, instance="replica-0", **settings)

    return of


def all_of(events: SchedulingEvents) -> EventFigures:
    events.start()
    events.stop(60)
    return events.figures


def test_they_are_worded_as_kube_schedulers(make: Make, posted: list[dict[str, Any]]) -> None:
    events = make()
    events.scheduled(pod_info("cart-1"), "node-1")
    events.failed(pod_info("cart-2"), "0/1 nodes are available: 1 Insufficient cpu.")
    assert all_of(events) == EventFigures(2, 0, 0, 0)
    scheduled, failed = posted
    assert scheduled["path"] == "/apis/events.k8s.io/v1/namespaces/default/events"
    assert (scheduled["reason"], scheduled["type"], scheduled["action"]) == ("Scheduled", "Normal", "Binding")
    assert scheduled["note"] == "Successfully assigned default/cart-1 to node-1"
    assert (scheduled["reportingController"], scheduled["reportingInstance"]) == ("ours", "replica-0")
    assert scheduled["regarding"]["uid"] == "uid-cart-1"
    assert (failed["reason"], failed["type"], failed["action"]) == ("FailedScheduling", "Warning", "Scheduling")
    assert failed["note"] == "0/1 nodes are available: 1 Insufficient cpu."


def test_the_same_failure_is_told_every_five_minutes(make: Make, posted: list[dict[str, Any]]) -> None:
    now = [1000.0]
    events = make(clock=lambda: now[0])
    for at, message in [(0, "a"), (10, "a"), (20, "b"), (299, "b"), (320, "b")]:
        now[0] = 1000.0 + at
        events.failed(pod_info("cart-1"), message)
    events.forget("uid-cart-1")
    events.failed(pod_info("cart-1"), "b")
    all_of(events)
    assert [event["note"] for event in posted] == ["a", "b", "b", "b"]


def test_they_go_through_the_session_and_a_lost_one_costs_only_itself() -> None:
    answers = iter([Scripted(drop=True), Scripted(403), Scripted(201)])
    with scripted_server(lambda *_: next(answers)) as url, session_to(url) as session:
        events = SchedulingEvents(session_post(session), instance="replica-0")
        for number in range(3):
            events.scheduled(pod_info(f"cart-{number}"), "node-1")
        assert all_of(events) == EventFigures(1, 0, 0, 2)
