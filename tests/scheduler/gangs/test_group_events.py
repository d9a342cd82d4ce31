"""Events on PodGroups: which, and how often."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson

from kube.decoding.stored_templates import Condition
from kube.events.event_recorder import EventFigures
from placement.pod_groups.pod_group import PodGroupStatus
from scheduler.gangs.gang_gate import Reason
from scheduler.gangs.group_events import GroupEvents, Turns
from scheduler.gangs.group_status import Wanted
from tests.scheduler.gangs.made_up import NOW, group

WANTED = Wanted("Pending", 0, 0, 0, 0, "", "", "False", Reason.QUEUED, "m", 1)


def due(turns: Turns, reason: Reason, at: float = 0.0, **changes: Any) -> str:
    return turns.due(group(**changes), replace(WANTED, reason=reason), NOW + at)[0]


def test_each_turn_is_told_once() -> None:
    turns = Turns()
    course = [
        (Reason.QUEUED, ""),
        (Reason.UNSCHEDULABLE, "Unschedulable"),
        (Reason.UNSCHEDULABLE, ""),
        (Reason.TIMEOUT, "ScheduleTimeout"),
        (Reason.TIMEOUT, ""),
        (Reason.SCHEDULED, "Scheduled"),
        (Reason.SCHEDULED, ""),
        (Reason.QUEUED, ""),
        (Reason.SCHEDULED, ""),
        (Reason.INVALID_SPEC, "InvalidSpec"),
    ]
    assert [due(turns, reason) for reason, _ in course] == [told for _, told in course]
    assert due(turns, Reason.INVALID_SPEC, uid="another") == "InvalidSpec"
    turns.forget("ml/train")
    assert due(turns, Reason.INVALID_SPEC, uid="another") == "InvalidSpec"


def test_what_the_status_says_has_been_told_before() -> None:
    said = PodGroupStatus(conditions=(Condition("Scheduled", "False", "Timeout"),))
    assert due(Turns(), Reason.TIMEOUT, status=said) == ""
    assert due(Turns(), Reason.SCHEDULED, status=said) == "Scheduled"
    odd = PodGroupStatus(conditions=(Condition("Scheduled", "False", "Whatever"), Condition("Other", "True")))
    assert due(Turns(), Reason.TIMEOUT, status=odd) == "ScheduleTimeout"


def test_members_that_are_missing_are_told_of_after_a_while() -> None:
    turns, wanted = Turns(), replace(WANTED, reason=Reason.NOT_ENOUGH_MEMBERS)
    assert turns.due(group(), wanted, NOW) == ("", True)
    assert turns.due(group(), wanted, NOW + 29) == ("", True)
    assert turns.due(group(), wanted, NOW + 30) == ("NotEnoughMembers", False)
    assert turns.due(group(), wanted, NOW + 90) == ("", False)
    turns = Turns()
    turns.due(group(), wanted, NOW)
    turns.due(group(), replace(WANTED, reason=Reason.QUEUED), NOW + 20)
    assert turns.due(group(), wanted, NOW + 31) == ("", True)
    assert turns.due(group(), wanted, NOW - 50) == ("", True), "the clock was set back"
    assert turns.due(group(), wanted, NOW - 20) == ("NotEnoughMembers", False)


def test_a_group_without_pods_is_nothing_to_warn_of() -> None:
    turns, wanted = Turns(), replace(WANTED, reason=Reason.NOT_ENOUGH_MEMBERS, is_empty=True)
    assert turns.due(group(), wanted, NOW) == turns.due(group(), wanted, NOW + 99) == ("", False)


def test_events_as_they_are_posted() -> None:
    posted: list[tuple[str, dict[str, Any]]] = []

    def post(path: str, body: bytes) -> int:
        posted.append((path, orjson.loads(body)))
        return 201

    events = GroupEvents(post, instance="one", rate=1.0, burst=2.0)
    events.start()
    events.tell(group(), "Unschedulable", "1 of 2 members fit", NOW)
    events.tell(group(), "Scheduled", "2 members have a node", NOW + 0.5)
    events.tell(group(), "Unschedulable", "too many", NOW + 0.5)
    events.stop(timeout=30)
    assert events.figures == EventFigures(posted=2, limited=1, dropped=0, failed=0)
    assert {path for path, _ in posted} == {"/apis/events.k8s.io/v1/namespaces/ml/events"}
    assert [(one["reason"], one["type"], one["note"]) for _, one in posted] == [
        ("Unschedulable", "Warning", "1 of 2 members fit"),
        ("Scheduled", "Normal", "2 members have a node"),
    ]
    assert posted[0][1]["regarding"] == {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "namespace": "ml",
        "name": "train",
        "uid": "uid-of-train",
    }
    assert posted[0][1]["reportingController"] == "forecast-scheduler.io/gangs"
