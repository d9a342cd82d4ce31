"""An advisor is alive while its Lease changes, by our own clock; whatever else is answered, it is not."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
import urllib3
from kubernetes import client

from admission.advice import advisor_lease
from admission.advice.advisor_lease import AdvisorLease
from kube.client.api_answer import ApiAnswer, answered, unanswered
from kube.leader_election.lease_options import LeaseOptions
from kube.leader_election.record import lease_body, read_lease
from testing.settable_clock import SettableClock

LONG_AGO, FAR_AHEAD = 0.0, 4_000_000_000.0


class World:
    """What the API server answers to a look: a status and a body, or an exception."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = SettableClock(1000.0)
        self.answer: tuple[int, bytes] | Exception = (404, b"{}")
        self.paths: list[str] = []
        monkeypatch.setattr(advisor_lease, "send", self._send)
        api = client.ApiClient(client.Configuration())
        self.lease = AdvisorLease(api, LeaseOptions(namespace="ops", name="advisor-2"), alive_for=6, clock=self.clock)

    def _send(self, api: client.ApiClient, method: str, path: str, *, seconds: float) -> ApiAnswer:
        assert method == "GET" and 0 < seconds < 5
        self.paths.append(path)
        return unanswered(self.answer) if isinstance(self.answer, Exception) else answered(*self.answer)

    def holds(self, holder: str, written: float) -> None:
        """What the Lease says from now on. written: as its holder has the time."""
        before = read_lease(self.answer[1]) if isinstance(self.answer, tuple) else None
        self.answer = (200, lease_body("ns", "l", holder=holder, seconds=10, now=written, before=before))

    def look(self, *, later: float = 0.0) -> bool:
        self.clock.now += later
        self.lease.look()
        return self.lease.is_alive()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


@pytest.fixture
def alive(world: World) -> World:
    """Seen to be renewed, just now."""
    world.holds("a", LONG_AGO)
    world.look()
    world.holds("a", LONG_AGO + 1)
    assert world.look(later=1)
    return world


def test_nobody_is_alive_before_a_look_nor_before_a_change_was_seen(world: World) -> None:
    assert not world.lease.is_alive()
    world.holds("a", FAR_AHEAD)
    assert not world.look()
    assert world.paths == ["/apis/coordination.k8s.io/v1/namespaces/ops/leases/advisor-2"]
    assert not world.look(later=1), "the same again may be what a dead one left"
    world.holds("a", FAR_AHEAD + 1)
    assert world.look(later=1)


def test_an_advisor_is_alive_while_its_lease_is_renewed_and_dead_some_time_after(alive: World) -> None:
    for second in range(2, 60):
        alive.holds("a", LONG_AGO + second)
        assert alive.look(later=1)
    alive.clock.now += 6.0
    assert alive.lease.is_alive()
    alive.clock.now += 0.1
    assert not alive.lease.is_alive() and not alive.look()
    alive.holds("a", LONG_AGO + 70)
    assert alive.look(later=1), "it is back"
    # A slow answer may be as old as the question.
    alive.holds("a", LONG_AGO + 2)
    answer = alive.lease.look

    def slow(*arguments: Any, **options: Any) -> ApiAnswer:
        alive.clock.now += 5.0
        return World._send(alive, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(advisor_lease, "send", slow)
        answer()
    alive.clock.now += 1.1
    assert not alive.lease.is_alive()


def test_a_lease_that_was_given_back_or_deleted_counts_at_once(alive: World) -> None:
    alive.holds("", LONG_AGO + 2)
    assert not alive.look(later=1)
    alive.holds("b", LONG_AGO + 3)
    assert alive.look(later=1)
    alive.answer = (404, b"{}")
    assert not alive.look(later=1)
    alive.clock.now += 60
    alive.holds("a", LONG_AGO)
    assert not alive.look()
    alive.holds("a", LONG_AGO + 1)
    assert alive.look(later=1)


@pytest.mark.parametrize(
    "answer",
    [
        (403, b'{"message":"forbidden"}'),
        (401, b"{}"),
        (500, b""),
        (200, b"<html>"),
        (200, b"\xff"),
        (200, b"[]"),
        (200, json.dumps({"metadata": {}, "spec": {"leaseTransitions": "x"}}).encode()),
        urllib3.exceptions.ConnectTimeoutError("cut"),
        urllib3.exceptions.ProtocolError("cut"),
        OSError("no route"),
    ],
)
def test_an_answer_that_says_nothing_raises_nothing_and_lets_it_die(
    alive: World, answer: tuple[int, bytes] | Exception, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    alive.answer = answer
    assert alive.look(later=1), "one that was renewed a moment ago"
    assert alive.look(later=1)
    assert not alive.look(later=6)
    assert len(caplog.records) == 1 and "grant get on leases" in caplog.text
    alive.holds("a", LONG_AGO + 9)
    assert alive.look(later=1)
    assert [record.getMessage() for record in caplog.records[1:]] == ["it can be again"]
