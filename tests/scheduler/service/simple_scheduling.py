"""Scheduling loops made up for tests of their HTTP service."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from scheduler.service.answers import QueuedPodState, QueueReport, SchedulingState


def queued(name: str, **changed: Any) -> QueuedPodState:
    """A pod that waits for CPU."""
    pod = QueuedPodState(
        namespace="shop",
        name=name,
        uid=f"uid-{name}",
        profile="forecast-scheduler",
        part="unschedulable",
        priority=0,
        since=1_770_000_000.0,
        attempts=3,
        rejected_by=("NodeResourcesFit", "Domain"),
        message="0/2 nodes are available: 2 Insufficient cpu.",
        queue="teams/search",
    )
    return replace(pod, **changed)


class SimpleScheduling:
    """Implements SchedulingApi; `now` and `pods` may be changed any time."""

    def __init__(self) -> None:
        self.now = SchedulingState(
            profiles={"online": "forecast-scheduler"},
            is_dry_run=False,
            leader="replica-1",
            is_leader=True,
            election_error="",
            waits_for="",
            is_alive=True,
            since_cycle=0.25,
            pending={"active": 1, "backoff": 0, "unschedulable": 2, "gated": 0},
            in_flight=4,
            assumed=6,
            gangs={"Pending": 1},
            gang_wait=90.0,
        )
        self.pods: list[QueuedPodState] = []
        self.owners = [QueueReport("teams", "search", "drf", 1.0, 0.25, 10, 20)]

    def change(self, **changed: Any) -> None:
        """Another state."""
        self.now = replace(self.now, **changed)

    def state(self) -> SchedulingState:
        return self.now

    def waiting(self) -> Sequence[QueuedPodState]:
        return tuple(self.pods)

    def queues(self) -> Sequence[QueueReport]:
        return tuple(self.owners)
