"""GET /v1/tenants, and the same as a page: GET /tenants."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Final

from fastapi import APIRouter, Query
from starlette.responses import Response

from base.html_report import html_report
from scorer.service.openapi import answer
from scorer.service.report_file import REPORT_POLICY
from scorer.service.state import TheService
from serving.errors import json_response
from tenants.answers import Tenants, tenants_answer
from tenants.report import TenantsReport
from tenants.words import in_short

MOST_HOURS: Final = 24

Hours = Annotated[int, Query(ge=0, le=MOST_HOURS, description="Hours of needs, from the one under way on.")]
Namespace = Annotated[str | None, Query(description="Only tenants of this name or namespace.")]

_HOURS_SHOWN: Final = 12


def tenants_router(report: Callable[[int], TenantsReport]) -> APIRouter:
    """Return both routes. report: called with the number of hours, in any thread"""
    router = APIRouter(tags=["tenants"])

    @router.get("/v1/tenants", responses=answer("Tenants", 422))
    async def tenants(service: TheService, hours: Hours = MOST_HOURS, namespace: Namespace = None) -> Response:
        """What each tenant has, waits for, lends, owes and may still borrow, and what it is expected to need by
        hour."""
        return await service.in_thread(lambda: json_response(tenants_answer(report(hours), namespace)))

    @router.get("/tenants", include_in_schema=False)
    async def page(service: TheService) -> Response:
        """The same for people."""

        def made() -> Response:
            text = tenants_page(tenants_answer(report(_HOURS_SHOWN)))
            return Response(text, media_type="text/html", headers={"Content-Security-Policy": REPORT_POLICY})

        return await service.in_thread(made)

    return router


def tenants_page(found: Tenants) -> str:
    """Return the page of all tenants."""
    hours = [] if found.from_hour is None else [found.from_hour.timestamp() + 3600 * n for n in range(_HOURS_SHOWN)]
    return html_report(
        "tenants/page.html.j2",
        title="Tenants",
        plotly="",
        found=found,
        hours=[f"{datetime.fromtimestamp(one, UTC):%H:%M}" for one in hours],
        in_short=in_short,
    )
