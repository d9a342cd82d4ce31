"""Scheduling loops made up for tests of their HTTP service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from scheduler.scheduling_answers import QueuedPod, QueueShare, SchedulingState, moment


def queued(name: str, **changed: Any) -> QueuedPod:
    """A pod that waits for CPU."""
    pod = QueuedPod(
        namespace="shop",
        name=name,
        uid=f"uid-{name}",
        profile="forecast-scheduler",
        part="unschedulable",
        priority=0,
        since=moment(1_770_000_000.0),
        attempts=3,
        rejected_by=("Domain", "NodeResourcesFit"),
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
            is_alive=True,
            since_cycle=0.25,
            pending={"active": 1, "backoff": 0, "unschedulable": 2, "gated": 0},
            in_flight=4,
            assumed=6,
            gangs={"Pending": 1},
            gang_wait=90.0,
        )
        self.pods: list[QueuedPod] = []
        self.owners = [QueueShare("teams", "search", "drf", 1.0, 0.25, 10, 20)]

    def change(self, **changed: Any) -> None:
        """Another state."""
        self.now = replace(self.now, **changed)

    def state(self) -> SchedulingState:
        return self.now

    def waiting(self) -> Sequence[QueuedPod]:
        return tuple(self.pods)

    def abilities(self) -> Mapping[str, Any]:
        return {"leads": True}

    def queues(self) -> Sequence[QueueShare]:
        return tuple(self.owners)
