"""Whether the scheduling process is alive and ready, and what it is at: routes, and what all routes of the process
share.

    /healthz   the loop goes round: a process whose loop hangs is started again
    /readyz    the cluster was read, the model awaited; leader, or able to become it: a replica that waits is ready

A replica that is not the leader is ready so that rolling updates go on, and Prometheus and people reach both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, cast

import msgspec
from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from scheduler.scheduling_answers import SchedulingApi, SchedulingStatus
from scorer.service.scorer_bodies import HealthBody
from scorer.service.scorer_openapi import answer
from scorer.service.scorer_state import ScorerService
from serving.json_answers import Refusal, error_response, json_response

router = APIRouter(tags=["state"])


@dataclass(slots=True, kw_only=True)
class SchedulingService(ScorerService):
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
    """Return the service that this application answers for."""
    return cast(SchedulingService, request.app.state.service)


TheSchedulingService = Annotated[SchedulingService, Depends(scheduling_service)]


@router.get("/v1/status", responses=answer("SchedulingStatus"))
async def status(service: TheSchedulingService) -> Response:
    """State of the scorer inside and of the scheduling loops: leader, queue, bindings. Answers before it is ready."""
    found = await service.in_thread(service.scorer.status)
    state = await service.in_thread(service.scheduling.state)
    reason = service.not_ready_because()
    whole = msgspec.structs.asdict(found) | {"ready": not reason, "not_ready_because": reason or None}
    return json_response(SchedulingStatus(**whole, scheduling=state))


@router.get("/healthz", responses=answer("HealthBody"), openapi_extra={"security": []})
async def healthz(service: TheSchedulingService) -> Response:
    """200 while the scheduling loop goes round, 503 where it hangs. Liveness probe."""
    service.require_alive()
    return json_response(HealthBody(ok=True))


@router.get("/readyz", responses=answer("HealthBody"), openapi_extra={"security": []})
async def readyz(service: TheSchedulingService) -> Response:
    """200 once it schedules, or could take over at once; 503 before and while shutting down. Readiness probe.

    An advisor says what it can do now: whether it leads, may remove gates, and has a forecast.
    """
    reason = service.not_ready_because()
    return error_response(503, reason) if reason else json_response({"ok": True, **service.scheduling.abilities()})
