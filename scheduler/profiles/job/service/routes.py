"""GET /v1/jobs/plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final

from fastapi import APIRouter, Query
from starlette.responses import Response

from scheduler.profiles.job.service.answers import JobPlan
from scorer.service.openapi import answer
from scorer.service.state import TheService
from serving.errors import json_response

MOST_JOBS: Final = 5000
MOST_HOURS: Final = 168.0

Hours = Annotated[float, Query(gt=0, le=MOST_HOURS, description="Hours of the plan to show, from now.")]
Namespace = Annotated[str | None, Query(description="Only jobs of this namespace.")]
Limit = Annotated[int, Query(ge=1, le=MOST_JOBS, description="Most jobs in the answer.")]


def jobs_router(plan: Callable[..., JobPlan]) -> APIRouter:
    """plan: JobReports.plan, for any thread."""
    router = APIRouter(prefix="/v1/jobs", tags=["jobs"])

    @router.get("/plan", responses=answer("JobPlan", 422))
    async def jobs_plan(
        service: TheService, hours: Hours = 24.0, namespace: Namespace = None, limit: Limit = 100
    ) -> Response:
        """Jobs that wait with their planned starts and why, expected bursts, providers, queues."""

        def look() -> Response:
            return json_response(plan(hours=hours, namespace=namespace, limit=limit))

        return await service.in_thread(look)

    return router
