"""GET /v1/tide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final

from fastapi import APIRouter, Query
from starlette.responses import Response

from scheduler.profiles.gpu.tide.report import TideReport
from scheduler.profiles.gpu.tide.service.translation import tide_body
from scorer.service.openapi import answer
from scorer.service.state import TheService
from serving.errors import json_response

MOST_HOURS: Final = 168.0

Hours = Annotated[float, Query(gt=0, le=MOST_HOURS, description="So far ahead.")]
Namespace = Annotated[str | None, Query(description="Only trainings of this namespace.")]


def tide_router(report: Callable[[], TideReport]) -> APIRouter:
    """report: of scheduler.profiles.gpu.tide.controller.Tide, for any thread."""
    router = APIRouter(prefix="/v1", tags=["tide"])

    @router.get("/tide", responses=answer("TideBody", 422))
    async def tide(service: TheService, hours: Hours = 24.0, namespace: Namespace = None) -> Response:
        """GPUs that inference is predicted to need, what training has and is planned to have, every move and why."""

        def look() -> Response:
            return json_response(tide_body(report(), hours=hours, namespace=namespace))

        return await service.in_thread(look)

    return router
