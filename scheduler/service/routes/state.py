"""Whether the scheduling process is alive and ready, and what it is at."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from scheduler.service.state import TheSchedulingService
from scheduler.service.translation import scheduling_status_body
from scorer.service.bodies import HealthBody
from scorer.service.openapi import answer
from scorer.service.translation import status_body
from serving.errors import error_response, json_response

router = APIRouter(tags=["state"])


@router.get("/v1/status", responses=answer("SchedulingStatusBody"))
async def status(service: TheSchedulingService) -> Response:
    """State of the scorer inside and of the scheduling loops: leader, queue, bindings. Answers before it is ready."""
    found = await service.in_thread(service.scorer.status)
    state = await service.in_thread(service.scheduling.state)
    return json_response(scheduling_status_body(status_body(found), state, service.not_ready_because()))


@router.get("/healthz", responses=answer("HealthBody"), openapi_extra={"security": []})
async def healthz(service: TheSchedulingService) -> Response:
    """200 while the scheduling loop goes round, 503 where it hangs. Liveness probe."""
    service.require_alive()
    return json_response(HealthBody(ok=True))


@router.get("/readyz", responses=answer("HealthBody"), openapi_extra={"security": []})
async def readyz(service: TheSchedulingService) -> Response:
    """200 once it schedules, or could take over at once; 503 before and while shutting down. Readiness probe."""
    reason = service.not_ready_because()
    return error_response(503, reason) if reason else json_response(HealthBody(ok=True))
