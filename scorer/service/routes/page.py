"""The page at /: static files of ours, without data."""

from __future__ import annotations

import hashlib
import json
from importlib import resources

from fastapi import APIRouter, Request
from starlette.responses import Response

from scorer.load_scale import LOAD_SCALE
from scorer.service.report_file import REPORT_POLICY
from serving.open_paths import PAGE_FILES

# An empty window that the page fills with the report, which a link with a token in no header could not fetch.
_POLICIES = {"/report-view": REPORT_POLICY}


_SCALE_HERE = b"/* LOAD_SCALE */"


def page_router() -> APIRouter:
    """Reads the files once; a browser asks whether they changed."""
    router = APIRouter(include_in_schema=False)
    folder = resources.files("scorer.service") / "page"
    for path, (name, kind) in PAGE_FILES.items():
        content = (folder / name).read_bytes().replace(_SCALE_HERE, _scale())
        _add(router, path, content, kind, _POLICIES.get(path))
    return router


def _scale() -> bytes:
    """The colours of load, as elements of an array in JavaScript."""
    return json.dumps([one._asdict() for one in LOAD_SCALE])[1:-1].encode()


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
