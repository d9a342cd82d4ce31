"""The writer of statuses with a made-up API server: what it writes, how often, and what it does when that fails."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Coroutine
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from kube.client.api_answer import NOT_SENT, ApiAnswer
from kube.decoding.stored_templates import StoredCondition
from kube.objects.objects import PodPhase
from placement.pod_groups.pod_group import PodGroupInfo, PodGroupStatus
from scheduler.gangs.gang_gate import Reason
from scheduler.gangs.group_events import Turns
from scheduler.gangs.group_status import WantedGroupStatus
from scheduler.gangs.group_status_writer import GroupStatusWriter
from tests.scheduler.gangs.made_up import NOW, Scene, group, member

PATH = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/ml/podgroups"


class Server:
    """Keeps statuses, and hands them back to the directory as a watch would, when it is asked to.

    drops  : fields that its definition does not have
    answer : what it answers, 200 = it does as it is told
    undoes : somebody else undoes at once what is written
    holds  : work is not begun before `let_go`
    """

    def __init__(self, *groups: PodGroupInfo, drops: tuple[str, ...] = ()) -> None:
        self.scene, self.drops, self.answer, self.leads, self.holds = Scene(), drops, 200, True, False
        self.undoes, self.conflicts = False, 0
        self.groups = {one.name: replace(one, version="0") for one in groups}
        self.versions = dict.fromkeys(self.groups, 0)
        self.statuses: dict[str, dict[str, Any]] = {}
        self.written: list[tuple[str, dict[str, Any]]] = []
        self.told: list[tuple[str, str, str]] = []
        self.held: list[tuple[Coroutine[Any, Any, None], Future[None]]] = []
        self.scene.directory.replace_groups(list(self.groups.values()))
        self.writer = GroupStatusWriter(
            self,
            self.scene.directory,
            tell=lambda one, reason, note, at: self.told.append((one.name, reason, note)),
            may_write=lambda: self.leads,
            clock=lambda: self.scene.now,
        )

    def submit(self, work: Coroutine[Any, Any, None]) -> Future[None]:
        done: Future[None] = Future()
        self.held.append((work, done))
        if not self.holds:
            self.let_go()
        return done

    def let_go(self) -> None:
        for work, done in self.held:
            done.set_result(asyncio.run(work))
        self.held.clear()

    async def request(
        self, method: str, path: str, body: bytes | None, *, content_type: str = "", seconds: float
    ) -> ApiAnswer:
        assert method == "PATCH" and content_type == "application/merge-patch+json" and body is not None
        change = json.loads(body)
        name = path.removeprefix(f"{PATH}/").removesuffix("/status")
        if self.answer != 200:
            return ApiAnswer(self.answer, text=f"{self.answer} no")
        if change["metadata"] != {"resourceVersion": self.version(name)}:
            self.conflicts += 1
            return ApiAnswer(409, text="409 the object has been modified")
        self.written.append((name, change["status"]))
        self.versions[name] += 1
        if self.undoes:
            self.versions[name] += 1
            return ApiAnswer(200, json.dumps({"status": change["status"]}).encode())
        kept = {key: value for key, value in change["status"].items() if key not in self.drops}
        self.statuses[name] = self.statuses.get(name, {}) | kept
        return ApiAnswer(200, json.dumps({"status": self.statuses[name]}).encode())

    def version(self, name: str) -> str:
        return str(self.versions[name])

    def watch(self) -> None:
        for name, one in self.groups.items():
            if one.version != self.version(name):
                status = msgspec.convert(self.statuses.get(name, {}), PodGroupStatus)
                self.groups[name] = replace(one, status=status, version=self.version(name))
                self.scene.directory.put_group(self.groups[name])

    def run(self, seconds: int = 1, *, watch: bool = True) -> list[tuple[str, dict[str, Any]]]:
        """What is written in so many seconds."""
        before = len(self.written)
        for _ in range(seconds):
            self.scene.directory.tick()
            self.writer.step()
            if watch:
                self.watch()
            self.scene.now += 1
        return self.written[before:]


def conditions(change: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(one["status"], one["reason"], one["message"]) for one in change["conditions"]]


def test_the_course_of_a_group() -> None:
    server = Server(group(2))
    (first,) = server.run(5)
    assert first[0] == "train" and first[1]["phase"] == "Pending"
    assert conditions(first[1]) == [
        ("False", "NotEnoughMembers", "waits for members: 0 of 2 pods of PodGroup train exist")
    ]  # fmt: skip
    server.scene.put(member("a", owner="job"), member("b", owner="job"))
    (second,) = server.run(5)
    assert second[1]["phase"] == "PreScheduling" and second[1]["scheduleStartTime"] == "2026-11-21T18:00:05Z"
    server.scene.directory.attempt_failed("ml/train", "1 of 2 members fit", "0/1 nodes are available")
    (third,) = server.run(5)
    assert third[1]["phase"] == "Scheduling" and third[1].keys() == {"phase", "conditions"}
    assert conditions(third[1]) == [("False", "Unschedulable", "1 of 2 members fit: 0/1 nodes are available")]
    server.scene.assume(member("a"), member("b"))
    (fourth,) = server.run(5)
    assert (fourth[1]["phase"], fourth[1]["scheduled"], fourth[1]["occupiedBy"]) == ("Scheduled", 2, "ml/job")
    server.scene.put(*(member(uid, owner="job", node="n1", phase=PodPhase.RUNNING) for uid in "ab"))
    assert server.run(60) == [("train", {"phase": "Running", "running": 2})]
    assert [(name, reason) for name, reason, _ in server.told] == [("train", "Unschedulable"), ("train", "Scheduled")]
    assert server.writer.waiting == 0


def test_a_watch_that_lags_costs_conflicts_and_nothing_else() -> None:
    server = Server(group(2))
    server.run(3, watch=False)
    server.scene.put(member("a"))
    assert len(server.run(5, watch=False)) == 0 and server.conflicts > 1
    (change,) = server.run(5)
    assert "1 of 2 pods" in change[1]["conditions"][0]["message"]
    assert len(server.run(40)) == 0


def test_fields_that_the_definition_does_not_have_are_noticed(caplog: pytest.LogCaptureFixture) -> None:
    server = Server(group(2), drops=("scheduled", "conditions"))
    assert len(server.run(200)) == 1
    server.scene.put(member("a", node="n1"), member("b", node="n1"))
    (change,) = server.run(200)
    assert change[1]["phase"] == "Scheduled"
    server.scene.put(member("c", node="n1"))
    assert server.run(200) == []
    server.scene.put(member("d", node="n1", phase=PodPhase.RUNNING))
    assert server.run(200) == [("train", {"running": 1})]
    words = [record.getMessage() for record in caplog.records]
    assert words == [
        "the PodGroup definition that is installed has no status.conditions: deploy/crds/podgroups has",
        (
            "the PodGroup definition that is installed has no status.conditions and no status.scheduled: "
            "deploy/crds/podgroups has"
        ),
    ]


@pytest.mark.parametrize(("answer", "within"), [(500, 2), (0, 2), (429, 2), (401, 2), (403, 31), (422, 2)])
def test_a_server_that_refuses_is_asked_again(answer: int, within: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    server = Server(group(2), group(3, name="other"))
    server.answer = answer
    server.run(10)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    server.answer = 200
    assert {name for name, _ in server.run(within + 1)} == {"train", "other"}
    server.run(1)
    assert caplog.records[-1].getMessage() == "statuses of PodGroups are written again" and len(caplog.records) == 2


@pytest.mark.parametrize("answer", [404, 409])
def test_one_that_is_gone_or_has_changed_is_no_failure(answer: int, caplog: pytest.LogCaptureFixture) -> None:
    server = Server(group(2), group(3, name="other"))
    server.answer = answer
    server.run(3)
    assert not caplog.records
    server.answer = 200
    server.scene.directory.delete_group(server.groups["train"])
    server.groups["train"] = replace(server.groups["train"], uid="another", version="7")
    server.versions["train"] = 7
    server.run(1)
    server.scene.directory.put_group(server.groups["train"])
    assert "train" in [name for name, _ in server.run(2)]


def test_a_replica_that_does_not_lead_writes_and_tells_nothing() -> None:
    server = Server(group(1))
    server.leads = False
    server.scene.put(member("a", node="n1"))
    assert server.run(5) == [] and server.told == []
    server.leads = True
    assert len(server.run(5)) == 1 and [reason for _, reason, _ in server.told] == ["Scheduled"]
    server.scene.put(member("b", node="n1"))
    server.answer = NOT_SENT  # it has just lost the lease
    assert server.run(5) == []
    server.answer = 200
    assert len(server.run(3)) == 1


def test_thousands_are_written_some_at_a_time() -> None:
    server = Server(*(group(2, name=f"g{n}") for n in range(250)))
    assert [len(server.run(1, watch=False)) for _ in range(4)] == [100, 100, 50, 0]


def test_the_clock_may_be_set_back() -> None:
    server = Server(group(2))
    server.run(3)
    server.scene.now = NOW - 5000
    server.scene.put(member("a"))
    assert len(server.run(3)) == 1


WANTED = WantedGroupStatus("Pending", 0, 0, 0, 0, "", "", "False", Reason.QUEUED, "m", 1)


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
    said = PodGroupStatus(conditions=(StoredCondition("Scheduled", "False", "Timeout"),))
    assert due(Turns(), Reason.TIMEOUT, status=said) == ""
    assert due(Turns(), Reason.SCHEDULED, status=said) == "Scheduled"
    odd = PodGroupStatus(
        conditions=(StoredCondition("Scheduled", "False", "Whatever"), StoredCondition("Other", "True"))
    )
    assert due(Turns(), Reason.TIMEOUT, status=odd) == "ScheduleTimeout"
