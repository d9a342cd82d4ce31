"""Whether the scheduling process is alive and ready, and what it is at."""

from __future__ import annotations

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from scheduler.service.answers import SchedulingStatus
from scheduler.service.state import TheSchedulingService
from scorer.service.bodies import HealthBody
from scorer.service.openapi import answer
from serving.errors import error_response, json_response

router = APIRouter(tags=["state"])


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
