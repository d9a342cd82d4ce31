"""What a browser shows: the page at / with static files of ours, and the report that `report --html` wrote last."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import Response

from scorer.load_scale import load_scale, percent
from scorer.service.scorer_openapi import file_answer
from scorer.service.scorer_state import TheService, zipped_response
from serving.json_answers import Refusal
from serving.security import PAGE_FILES

# The page that `report --html` wrote, as it lies on the disk, and the policy under which a browser shows it.
#
# Its scripts are inline, which the policy of all other answers forbids. So it is shown in an origin of its own
# (sandbox): whatever is in the file, it can read neither the token of the scorer's page nor an answer of the scorer,
# and fetches nothing. https://www.w3.org/TR/CSP3/#directive-sandbox

REPORT_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

MOST_BYTES = 64 * 2**20
"""`report` stays far below; another file named by mistake gives an error instead of filling the memory."""

# An empty window that the page fills with the report, which a link with a token in no header could not fetch.
_POLICIES = {"/report-view": REPORT_POLICY}
_SCALE_HERE, _HOT_HERE = b"/* LOAD_SCALE */", b"/* HOT_SHARE */"
router = APIRouter(tags=["state"])


def report_written(path: Path | None) -> datetime | None:
    """When the report was written; None if there is none, or not yet."""
    if path is None:
        return None
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError:
        return None


def read_report(path: Path | None) -> bytes:
    """The page. Raises Refusal (404) where there is none."""
    if path is None:
        raise Refusal(404, "no report is offered: set scorer.report to the file that report --html writes")
    try:
        with path.open("rb") as file:
            page = file.read(MOST_BYTES + 1)
    except FileNotFoundError as error:
        raise Refusal(404, "there is no report yet: forecast-scheduler report --html writes it") from error
    except OSError as error:
        raise Refusal(404, f"the report cannot be read ({error.strerror}): see to the file of scorer.report") from error
    if len(page) > MOST_BYTES:
        raise Refusal(404, f"the report is larger than {MOST_BYTES >> 20} MiB: write it with a smaller --top")
    return page


def page_router(hot: float) -> APIRouter:
    """Reads the files once; a browser asks whether they changed. hot: share of capacity above which a node is hot"""
    router = APIRouter(include_in_schema=False)
    folder = resources.files("scorer.service") / "page"
    for path, (name, kind) in PAGE_FILES.items():
        content = (folder / name).read_bytes().replace(_SCALE_HERE, _scale(hot))
        content = content.replace(_HOT_HERE, percent(hot).encode())
        _add(router, path, content, kind, _POLICIES.get(path))
    return router


def _scale(hot: float) -> bytes:
    """The colours of load, as elements of an array in JavaScript."""
    return json.dumps([one._asdict() for one in load_scale(hot)])[1:-1].encode()


def _add(router: APIRouter, path: str, content: bytes, kind: str, policy: str | None) -> None:
    tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    headers = {"Cache-Control": "no-cache", "ETag": tag, "Content-Type": kind}
    if policy is not None:
        headers["Content-Security-Policy"] = policy

    @router.get(path)
    async def static_file(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers={"Cache-Control": "no-cache", "ETag": tag})
        return Response(content, headers=headers)


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
