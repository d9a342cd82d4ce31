"""What the routes of the scheduling process share.

    /healthz   the loop goes round: a process whose loop hangs is started again
    /readyz    the cluster was read, the model awaited; leader, or able to become it: a replica that waits is ready

A replica that is not the leader is ready so that rolling updates go on, and Prometheus and people reach both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Request

from scheduler.service.answers import SchedulingApi
from scorer.service.state import Service
from serving.errors import Refusal


@dataclass(slots=True, kw_only=True)
class SchedulingService(Service):
    """scheduling: the loops."""

    scheduling: SchedulingApi

    def require_alive(self) -> None:
        """Raises Refusal."""
        state = self.scheduling.state()
        if not state.is_alive:
            age = f" for {state.since_cycle:.0f} s" if state.since_cycle is not None else ""
            raise Refusal(503, f"the scheduling loop has not gone round{age}: restart this process, its log says more")

    def not_ready_because(self) -> str:
        """'' = it is ready."""
        if self.draining:
            return "the service is shutting down: another replica schedules"
        try:
            self.require_ready()
        except Refusal as error:
            return error.message
        state = self.scheduling.state()
        if state.waits_for:
            return f"not ready: {state.waits_for}; ask again in a moment"
        if state.election_error and not state.is_leader:
            return f"this replica could not take over: {state.election_error}"
        return ""


async def scheduling_service(request: Request) -> SchedulingService:
    """Of this application."""
    return cast(SchedulingService, request.app.state.service)


TheSchedulingService = Annotated[SchedulingService, Depends(scheduling_service)]
