"""Carrying a nomination out on a real API server."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from cluster.tables.state import ClusterState
from kube.client.api_answer import ApiAnswer, answered
from kube.client.kubernetes_client import api_client
from kube.decoding.decoding import Kind, decode_object
from kube.objects.objects import PodInfo
from kube.session.api_session import ApiSession
from placement.plugins import Nomination
from scheduler.preemption.executor import PreemptionExecutor
from scheduler.preemption.nominated import NominatedPods
from testing.servers.cluster_objects import ClusterWriter, Manifest, node, pod
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.pool import control_plane


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with control_plane() as running:
        yield running


@pytest.fixture(scope="module")
def writer(plane: ControlPlane) -> Iterator[ClusterWriter]:
    with ClusterWriter(plane) as writing:
        writing.create(node("n"))
        yield writing


class Harness:
    """An executor over a session with a real API server, and tables with what it was told."""

    def __init__(self, plane: ControlPlane, writer: ClusterWriter) -> None:
        self.writer, self.state, self.leads = writer, ClusterState(), True
        self.told: list[tuple[str, str, str]] = []
        self.failed: list[str] = []
        self.ended: list[str] = []
        self.evicted = 0
        self._lock = threading.RLock()
        self.nominated = NominatedPods(self.state, ended=lambda pod, node: self.ended.append(pod.name))
        self.session = ApiSession(api_client(plane.kubeconfig), may_write=lambda: self.leads)
        self.executor = PreemptionExecutor(
            self.session,
            self.nominated,
            locked=self._locked,
            tell=lambda pod, reason, note: self.told.append((pod.name, reason, note)),
            failed=lambda pod: self.failed.append(pod.name),
            evicted=self._count,
        )
        self.state.replace(Kind.NODES, [self._read(one) for one in writer.list_all("nodes")])

    def _count(self) -> None:
        self.evicted += 1

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._lock:
            yield

    @staticmethod
    def _read(manifest: Manifest) -> Any:
        kind = Kind.PODS if manifest["kind"] == "Pod" else Kind.NODES
        return decode_object(kind, json.dumps(manifest).encode())[0]

    def create(self, name: str, *, on: str = "") -> PodInfo:
        """A pod, as it is decoded."""
        made: PodInfo = self._read({"kind": "Pod"} | self.writer.create(pod(name, node=on)))
        self.state.put_pod(made)
        return made

    def found(self, name: str) -> Manifest | None:
        return next((one for one in self.writer.list_all("pods") if one["metadata"]["name"] == name), None)

    def wait(self, uid: str) -> None:
        until(lambda: not self.executor.is_running(uid))


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.02)


@pytest.fixture
def harness(plane: ControlPlane, writer: ClusterWriter) -> Iterator[Harness]:
    made = Harness(plane, writer)
    made.session.start()
    yield made
    made.session.stop()
    writer.delete_many(writer.list_all("pods"))


def is_going(one: Manifest | None) -> bool:
    return one is not None and "deletionTimestamp" in one["metadata"]


def test_the_pod_is_nominated_and_its_victims_go_with_a_reason(harness: Harness) -> None:
    preemptor, victims = harness.create("x"), [harness.create("v1", on="n"), harness.create("v2", on="n")]
    bystander = harness.create("b", on="n")
    assert harness.executor.carry_out([(preemptor, Nomination("n", tuple(victims)))])
    assert harness.nominated.of("x") is None and harness.nominated.of(preemptor.uid) is not None
    harness.wait(preemptor.uid)
    assert harness.found("x")["status"]["nominatedNodeName"] == "n"  # type: ignore[index]
    for victim in victims:
        now = harness.found(victim.name)
        assert now is not None and is_going(now)
        assert now["metadata"]["deletionGracePeriodSeconds"] == 30  # the pod's own
        condition = next(one for one in now["status"]["conditions"] if one["type"] == "DisruptionTarget")
        assert (condition["status"], condition["reason"]) == ("True", "PreemptionByScheduler")
        assert condition["message"] == "default-scheduler: preempting to accommodate a higher priority pod"
    assert not is_going(harness.found(bystander.name))
    note = f"Preempted by pod x ({preemptor.uid}) on node n"
    assert sorted(harness.told) == [("v1", "Preempted", note), ("v2", "Preempted", note)]
    assert harness.evicted == 2 and not harness.failed


def test_a_pod_of_the_same_name_as_a_victim_that_went_stays(harness: Harness) -> None:
    preemptor, victim = harness.create("x"), harness.create("v", on="n")
    harness.writer.delete(pod("v"))
    later = harness.create("v", on="n")
    assert later.uid != victim.uid
    assert harness.executor.carry_out([(preemptor, Nomination("n", (victim,)))])
    harness.wait(preemptor.uid)
    assert not is_going(harness.found("v")) and not harness.failed
    assert harness.evicted == 0 and harness.nominated.of(preemptor.uid) is not None


def test_nobody_is_evicted_for_a_pod_that_is_gone(harness: Harness) -> None:
    preemptor, victim = harness.create("x"), harness.create("v", on="n")
    harness.writer.delete(pod("x"))
    assert harness.executor.carry_out([(preemptor, Nomination("n", (victim,)))])
    harness.wait(preemptor.uid)
    assert not is_going(harness.found("v"))
    until(lambda: harness.failed == ["x"])
    assert harness.nominated.of(preemptor.uid) is None and harness.ended == ["x"]


def test_a_conflict_does_not_mean_that_the_pod_is_gone(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when a controller writes the same status in the same moment."""
    preemptor, victim = harness.create("x"), harness.create("v", on="n")
    asked: list[str] = []
    real = harness.session.request

    async def request(method: str, path: str, body: bytes | None, **more: Any) -> ApiAnswer:
        asked.append(f"{method} {path.rpartition('pods/')[2]}")
        if asked.count(asked[-1]) == 1:
            return answered(409, b'{"message":"the object has been modified"}')
        return await real(method, path, body, **more)

    monkeypatch.setattr(harness.session, "request", request)
    assert harness.executor.carry_out([(preemptor, Nomination("n", (victim,)))])
    harness.wait(preemptor.uid)
    assert asked == [one for one in ("PATCH x/status", "PATCH v/status", "DELETE v") for _ in range(2)]
    assert is_going(harness.found("v")) and harness.evicted == 1 and not harness.failed


def test_a_nomination_that_is_refused_says_why(harness: Harness, caplog: pytest.LogCaptureFixture) -> None:
    """The API server nominates no pod that has a node: that is not the pod being gone."""
    preemptor, victim = harness.create("x", on="n"), harness.create("v", on="n")
    preemptor = replace(preemptor, node="")  # which the watch does not show yet
    harness.state.put_pod(preemptor)
    with caplog.at_level(logging.WARNING):
        assert harness.executor.carry_out([(preemptor, Nomination("n", (victim,)))])
        until(lambda: harness.failed == ["x"])
    (record,) = [one for one in caplog.records if "preemption failed" in one.message]
    why = record.__dict__["why"]
    assert "cannot be nominated" in why and "already bound" in why and "is gone" not in why
    assert not is_going(harness.found("v"))


def test_a_replica_that_does_not_lead_evicts_nobody(harness: Harness) -> None:
    preemptor, victim = harness.create("x"), harness.create("v", on="n")
    harness.leads = False
    assert harness.executor.carry_out([(preemptor, Nomination("n", (victim,)))])
    until(lambda: harness.failed == ["x"])
    assert not is_going(harness.found("v")) and harness.nominated.of(preemptor.uid) is None
    assert "nominatedNodeName" not in harness.found("x")["status"]  # type: ignore[index]


def test_lower_nominations_to_the_node_end_and_a_nomination_can_be_withdrawn(harness: Harness) -> None:
    lower, preemptor, victim = harness.create("low"), harness.create("x"), harness.create("v", on="n")
    assert harness.executor.carry_out([(lower, Nomination("n", ()))])
    harness.wait(lower.uid)
    assert harness.found("low")["status"]["nominatedNodeName"] == "n"  # type: ignore[index]
    higher = decoded_with_priority(preemptor, 5)
    assert harness.executor.carry_out([(higher, Nomination("n", (victim,)))])
    harness.wait(higher.uid)
    assert harness.ended == ["low"] and harness.nominated.of(lower.uid) is None
    until(lambda: "nominatedNodeName" not in harness.found("low")["status"])  # type: ignore[index]
    harness.executor.withdraw(higher)
    until(lambda: "nominatedNodeName" not in (harness.found("x") or {"status": {"nominatedNodeName": ""}})["status"])
    assert len(harness.nominated) == 0


def test_a_pod_that_is_nominated_anew_when_its_preemption_fails_stays_nominated(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop tries it again at once, before its first nomination is taken out of its status."""
    preemptor, victim = harness.create("x"), harness.create("v", on="n")
    passed_on = harness.session.request
    seats = [(preemptor, Nomination("n", ()))]
    sent: list[str] = []

    async def refuse_to_delete(method: str, path: str, body: bytes | None, **options: Any) -> ApiAnswer:
        if method == "DELETE":
            return answered(403, b'{"message": "no"}')
        if method == "PATCH" and path.endswith("/x/status"):
            sent.append((body or b"").decode())
            if b"null" in (body or b""):
                await asyncio.sleep(0.3)  # others are faster
        return await passed_on(method, path, body, **options)

    monkeypatch.setattr(harness.session, "request", refuse_to_delete)
    monkeypatch.setattr(harness.executor, "_failed", lambda pod: harness.executor.carry_out(seats))
    assert harness.executor.carry_out([(preemptor, Nomination("n", (victim,)))])
    until(lambda: len(sent) >= 2)
    harness.wait(preemptor.uid)
    time.sleep(0.7)  # what would take it out comes afterwards
    assert harness.found("x")["status"].get("nominatedNodeName") == "n"  # type: ignore[index]
    assert harness.nominated.of(preemptor.uid) is not None


def test_nobody_is_evicted_where_budgets_allow_less_than_when_the_victims_were_chosen(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    preemptor, victim = harness.create("x"), harness.create("v", on="n")
    violated = iter((0, 1))
    monkeypatch.setattr(harness.executor, "_violations", lambda victims: next(violated))
    assert harness.executor.carry_out([(preemptor, Nomination("n", (victim,)))])
    until(lambda: harness.failed == ["x"])
    assert not is_going(harness.found("v")) and harness.nominated.of(preemptor.uid) is None
    assert not harness.nominated.refusing(time.time())


@pytest.mark.parametrize(("status", "refuses"), [(403, True), (404, False)])
def test_a_victim_that_is_not_deleted_is_none_for_a_while(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, status: int, refuses: bool
) -> None:
    preemptor, victim = harness.create("x"), harness.create("v", on="n")
    passed_on = harness.session.request

    async def refuse_to_delete(method: str, path: str, body: bytes | None, **options: Any) -> ApiAnswer:
        if method == "DELETE":
            return answered(status, b'{"message": "no"}')
        return await passed_on(method, path, body, **options)

    monkeypatch.setattr(harness.session, "request", refuse_to_delete)
    assert harness.executor.carry_out([(preemptor, Nomination("n", (victim,)))])
    harness.wait(preemptor.uid)
    assert (set(harness.nominated.refusing(time.time())) == {victim.uid}) is refuses
    assert not harness.nominated.refusing(time.time() + 301)
    assert not harness.nominated.refusing(time.time() - 3600), "a clock that is set back prolongs nothing"


def decoded_with_priority(pod: PodInfo, priority: int) -> PodInfo:
    return replace(pod, priority=priority)
