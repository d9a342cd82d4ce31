"""Pods that our gate still holds after a moment get one Event each, at a bounded rate."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from advisor.held_pod_events import EVENTS_AT_ONCE, HeldPodEvents, held_note
from kube.events.event_recorder import EventRecorder
from kube.objects.objects import PodInfo
from testing.waiting import eventually
from tests.advisor.made_up import gated
from tests.advisor.test_gated_pods import World


class Posting(World):
    """posted: names of the pods of events, as the API server would get them."""

    def __init__(self, *pods: PodInfo, leads: bool = True) -> None:
        super().__init__(*pods)
        self.posted: list[str] = []
        self.recorder = EventRecorder(
            self._post, what="held-pods", instance="a", rate=5.0, burst=EVENTS_AT_ONCE, clock=self.clock
        )
        self.events = HeldPodEvents(self.gated, self.recorder, leads=lambda: leads, quota_why=lambda pod: "")
        self.recorder.start()

    def _post(self, path: str, body: bytes) -> int:
        event = json.loads(body)
        assert (event["reason"], event["type"]) == ("ForecastHeld", "Normal")
        assert path.endswith(f"/namespaces/{event['regarding']['namespace']}/events")
        self.posted.append(event["regarding"]["name"])
        return 201

    def look(self, seconds: float) -> None:
        self.later(seconds)
        self.events.look()


@pytest.fixture
def world() -> Iterator[Posting]:
    world = Posting(gated("a"), gated("b"))
    yield world
    world.recorder.stop()


def test_one_event_for_each_pod_that_is_still_held(world: Posting) -> None:
    world.look(0.4)
    world.see(replace(gated("b"), gates=()))  # advised in time
    world.look(0.2)
    world.look(10.0)
    world.recorder.stop()
    assert world.posted == ["a"]


def test_a_burst_is_bounded_and_pods_that_stay_held_follow() -> None:
    pods = [gated(f"p{number:03}") for number in range(80)]
    world = Posting(*pods)
    world.look(1.0)
    assert eventually(lambda: len(world.posted) == EVENTS_AT_ONCE)
    for _ in range(6):
        world.look(1.0)
    assert eventually(lambda: len(world.posted) == 80)
    world.recorder.stop()
    assert sorted(world.posted) == [pod.name for pod in pods]


def test_a_replica_that_does_not_lead_posts_nothing() -> None:
    world = Posting(gated("a"), leads=False)
    world.look(5.0)
    world.recorder.stop()
    assert world.posted == []


def test_the_note_says_why_and_how_to_release() -> None:
    plain, quota = held_note(gated("a"), ""), held_note(gated("a"), "tenant a may use 2 cores at most")
    assert "until the advisor names its node, 20 s at most" in plain
    assert "until the quota admits it: tenant a may use 2 cores at most" in quota
    for note in (plain, quota):
        assert "forecast-scheduler explain " in note and "forecast-scheduler advise --release" in note
