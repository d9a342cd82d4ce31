"""Why pods wait, written to a scripted server: only news, the latest, so many a second, and never for ever."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from kube.status.pod_condition_writer import ConditionFigures, ConditionWriter
from kube.status.pod_conditions import WaitingCondition, condition_patch
from testing.waiting import eventually
from tests.scheduler.binding.made_up import Scripted, pod_info, scripted_server, session_to


@dataclass
class Server:
    """Keeps what it is sent; `says`: statuses for the next requests; while `gate` is not set nobody gets an answer."""

    seen: list[dict[str, Any]] = field(default_factory=list)
    says: list[int] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)  # and what with
    gate: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.gate.set()

    def __call__(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Scripted:
        patch = json.loads(body)
        kind = headers["content-type"]
        self.seen.append(
            {"method": method, "path": path, "type": kind, "uid": patch["metadata"]["uid"]} | patch["status"]
        )
        self.gate.wait(60)
        return Scripted(self.says.pop(0) if self.says else 200, self.bodies.pop(0) if self.bodies else {})

    @property
    def messages(self) -> list[str]:
        return [one["conditions"][0]["message"] for one in self.seen]


@contextmanager
def writing(server: Server, **settings: Any) -> Iterator[ConditionWriter]:
    with scripted_server(server) as url, session_to(url) as session:
        writer = ConditionWriter(session, **settings)
        writer.start()
        try:
            yield writer
        finally:
            server.gate.set()
            writer.stop()


@pytest.fixture
def server() -> Server:
    return Server()


def waiting(name: str, message: str = "0/12 nodes are available", reason: str = "Unschedulable") -> WaitingCondition:
    return WaitingCondition.of(pod_info(name), reason, message)


def test_a_condition_is_written_once(server: Server) -> None:
    with writing(server, wall=lambda: 1_767_225_600.0) as writer:
        writer.put(waiting("cart-1"))
        assert eventually(lambda: writer.figures.written == 1)
        writer.put(waiting("cart-1"))
        writer.put(waiting("cart-2"))
        assert eventually(lambda: writer.figures.written == 2)
    first, second = server.seen
    assert first == {
        "method": "PATCH",
        "path": "/api/v1/namespaces/default/pods/cart-1/status",
        "type": "application/strategic-merge-patch+json",
        "uid": "uid-cart-1",
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": "0/12 nodes are available",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
        ],
    }
    assert second["uid"] == "uid-cart-2"


def test_only_the_latest_is_written_and_what_it_said_before_is_not(server: Server) -> None:
    with writing(server) as writer:
        server.gate.clear()
        writer.put(waiting("first"))
        assert eventually(lambda: len(server.seen) == 1)
        for message in ("a", "b", "c"):
            writer.put(waiting("cart-1", message))
        writer.put(waiting("bound"))
        writer.forget("uid-bound")
        server.gate.set()
        assert eventually(lambda: writer.figures.written == 2)
        writer.put(waiting("cart-1", "d"))
        assert eventually(lambda: writer.figures.written == 3)
    assert server.messages == ["0/12 nodes are available", "c", "d"]
    assert "lastTransitionTime" not in server.seen[-1]["conditions"][0]


def test_what_was_said_already_takes_back_what_waits(server: Server) -> None:
    with writing(server) as writer:
        writer.put(waiting("cart-1", "a"))
        assert eventually(lambda: writer.figures.written == 1)
        server.gate.clear()
        writer.put(waiting("other"))
        assert eventually(lambda: len(server.seen) == 2)
        writer.put(waiting("cart-1", "b"))
        writer.put(waiting("cart-1", "a"))
        assert writer.waiting == 0
    assert server.messages == ["a", "0/12 nodes are available"]


@pytest.mark.parametrize(
    ("says", "figures", "tries"),
    [
        ([503, 429, 200], ConditionFigures(1, 0, 0, 0), 3),
        ([404], ConditionFigures(0, 0, 1, 0), 1),
        ([409, 200], ConditionFigures(1, 0, 0, 0), 2),
        ([403], ConditionFigures(0, 0, 0, 1), 1),
    ],
)
def test_what_is_worth_it_is_tried_again(
    server: Server, says: list[int], figures: ConditionFigures, tries: int
) -> None:
    server.says = says
    with writing(server) as writer:
        writer.put(waiting("cart-1"))
        assert eventually(lambda: writer.figures == figures)
        writer.put(waiting("cart-2"))
        assert eventually(lambda: writer.figures.written == figures.written + 1)
    assert Counter(one["uid"] for one in server.seen) == {"uid-cart-1": tries, "uid-cart-2": 1}


def test_a_pod_that_was_bound_meanwhile_is_not_told_that_it_waits(server: Server) -> None:
    """The first try fails while it is forgotten; another would overwrite PodScheduled=True."""
    server.says = [503]
    with writing(server) as writer:
        server.gate.clear()
        writer.put(waiting("bound"))
        assert eventually(lambda: len(server.seen) == 1)
        writer.forget("uid-bound")
        writer.put(waiting("other"))
        server.gate.set()
        assert eventually(lambda: writer.figures.written == 1)
        assert writer.figures == ConditionFigures(1, 0, 0, 0)
    assert [one["uid"] for one in server.seen] == ["uid-bound", "uid-other"]


def test_there_is_room_for_so_many(server: Server) -> None:
    with writing(server, most=3) as writer:
        server.gate.clear()
        writer.put(waiting("under-way"))
        assert eventually(lambda: len(server.seen) == 1)
        for number in range(10):
            writer.put(waiting(f"cart-{number}"))
        writer.put(waiting("cart-0", "newer"))
        assert (writer.waiting, writer.figures.dropped) == (3, 7)
        server.gate.set()
        assert eventually(lambda: writer.figures.written == 4)
    assert server.messages[1] == "newer"


def test_so_many_a_second(server: Server) -> None:
    now = [0.0]
    with writing(server, rate=1000.0, burst=5.0, clock=lambda: now[0]) as writer:
        for number in range(20):
            writer.put(waiting(f"cart-{number}"))
        assert eventually(lambda: writer.figures.written == 5)
        now[0] = 0.003
        assert eventually(lambda: writer.figures.written >= 8)
    assert len(server.seen) <= 9  # 5 + 3, and rounding


def test_a_message_is_kept_within_bounds() -> None:
    pod = WaitingCondition.of(pod_info("cart-1"), "Unschedulable", "ä\ud800" * 100_000)
    assert 4000 < len(pod.message.encode()) <= 4096
    assert json.loads(condition_patch(pod, now=0.0, is_first=True))
