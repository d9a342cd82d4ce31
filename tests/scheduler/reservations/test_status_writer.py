"""The leader writes what becomes of Reservations, on top of what was read, and not again and again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from cluster.assuming_cluster import AssumingCluster
from kube.client.api_answer import ApiAnswer
from kube.objects.objects import RESERVATION
from placement.reservations.reservations import Reservations
from scheduler.pod_reports import LoopReports
from scheduler.reservation_status_writer import ReservationReports, ReservationWriter
from scorer.options import ScorerOptions
from testing.objects import node_info, pod_info
from tests.placement.reservations.test_decoding import AVAILABLE, CREATED, reservation

OWNER = pod_info("cart-1", namespace="shop", labels={"app": "cart"}, requests={"cpu": 2.0})


class World:
    def __init__(self) -> None:
        self.now, self.leads, self.answer = CREATED + 60, True, ApiAnswer(200)
        self.sent: list[tuple[str, Any]] = []
        self.cluster = AssumingCluster(ScorerOptions(), now=self.now)
        self.cluster.put(node_info("a", allocatable={"cpu": 8.0, "memory": 2.0**36, "pods": 110.0}))
        self.reservations = Reservations(lambda: nullcontext(self.cluster), clock=lambda: self.now, places=["ours"])
        self.writer = ReservationWriter(
            self,
            lambda: nullcontext(self.cluster),
            self.reservations,
            may_write=lambda: self.leads,
            clock=lambda: self.now,
        )

    def submit(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(asyncio.run(work))
        return done

    async def request(
        self, method: str, path: str, body: bytes | None, *, content_type: str = "", seconds: float
    ) -> ApiAnswer:
        assert body is not None and path.endswith("/namespaces/shop/reservations/release/status")
        self.sent.append((method, json.loads(body)))
        return self.answer

    def statuses(self) -> list[Any]:
        self.writer.step()
        sent, self.sent = self.sent, []
        return [(body["metadata"]["resourceVersion"], body["status"]["phase"]) for _, body in sent]


def test_a_bound_pod_makes_it_taken_and_an_assumed_one_does_not() -> None:
    world = World()
    world.reservations.put(reservation(**AVAILABLE))
    world.cluster.put_pod(OWNER)
    world.cluster.assume(OWNER, "a", 1e12)
    assert world.statuses() == []
    world.cluster.put_pod(replace(OWNER, node="a", annotations={RESERVATION: "uid-release"}))
    assert world.statuses() == [("7", "Taken")]


def test_only_the_leader_writes() -> None:
    world = World()
    world.leads = False
    world.reservations.put(reservation({"lifetime": "1s"}))
    assert world.statuses() == []
    world.leads = True
    assert world.statuses() == [("7", "Expired")]


def test_what_was_written_is_not_written_again_until_the_watch_had_time() -> None:
    world = World()
    world.reservations.put(reservation({"lifetime": "1s"}))
    assert world.statuses() == [("7", "Expired")]
    assert world.statuses() == []
    world.now += 11
    assert world.statuses() == [("7", "Expired")]
    world.reservations.put(replace(reservation({"lifetime": "1s"}), version="8"))
    assert world.statuses() == [("8", "Expired")]


def test_why_it_waits_is_in_its_status_and_nowhere_else() -> None:
    """Not in the condition or the event of a pod, which it is not."""
    world = World()
    world.reservations.put(reservation({"schedulerName": "ours"}))
    reports = ReservationReports(_NoPods(), world.writer.note)
    stand_in = world.cluster.state.pods["uid-release"]
    reports.failed(stand_in, "0/1 nodes are available")
    reports.scheduled(stand_in, "a")
    world.writer.step()
    ((_, body),) = world.sent
    assert body["status"] == {"phase": "Pending", "message": "0/1 nodes are available"}
    reports.paused(stand_in, "waits", by="Valley")
    world.sent.clear()
    world.now += 11
    world.writer.step()
    assert world.sent[0][1]["status"]["message"] == "waits"


class _NoPods(LoopReports):
    """Reports about pods: there must be none."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"a report about a pod: {name}")


def test_a_missing_right_is_found_out_once_per_step() -> None:
    world = World()
    world.answer = ApiAnswer(403)
    world.reservations.replace([reservation({"lifetime": "1s"}), replace(reservation({"lifetime": "1s"}), uid="other")])
    world.writer.step()
    assert len(world.sent) == 1
