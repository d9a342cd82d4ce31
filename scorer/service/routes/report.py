"""The report that was written last, for the link on the page."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from scorer.service.openapi import file_answer
from scorer.service.report_file import REPORT_POLICY, read_report
from scorer.service.state import TheService
from scorer.service.zipped import zipped_response

router = APIRouter(tags=["state"])


@router.get("/report", responses=file_answer("The page that `report --html` wrote, sandboxed.", "text/html", 404))
async def report(request: Request, service: TheService) -> Response:
    """Predicted against actual peaks over the last days, as one page; 404 without `scorer.report`."""
    return await zipped_response(
        request,
        service,
        lambda: read_report(service.options.report),
        "text/html; charset=utf-8",
        {"Content-Security-Policy": REPORT_POLICY},
    )
