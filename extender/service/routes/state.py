"""Whether the extender is alive and ready, and its metrics."""

from __future__ import annotations

import zlib

from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from starlette.responses import Response

from extender.service.extender_openapi import plain_answer, state_answer
from extender.service.extender_state import NotReady, error_response, json_bytes, service_of
from extender.service.workers import AnswerDeadline, Late

router = APIRouter(tags=["state"])

_OK = b'{"ok":true}'
_RENDER_SECONDS = 10.0


@router.get("/healthz", responses=state_answer(), openapi_extra={"security": []})
async def healthz() -> Response:
    """The process answers. Liveness probe."""
    return json_bytes(_OK)


@router.get("/readyz", responses=state_answer(503), openapi_extra={"security": []})
async def readyz(request: Request) -> Response:
    """200 once the cluster was read completely, 503 before and while shutting down. Readiness probe."""
    service = service_of(request)
    if service.draining:
        return error_response(503, "the extender is shutting down: another replica answers")
    try:
        await service.workers.run(service.require_ready, AnswerDeadline(service.options.deadline))
    except NotReady as error:
        return error_response(503, f"{error}; ask again in a moment")
    except Late:
        return error_response(503, f"no answer within {service.options.deadline:g} s: ask again in a moment")
    return json_bytes(_OK)


@router.get("/metrics", responses=plain_answer("Prometheus text format 0.0.4."))
async def metrics(request: Request) -> Response:
    """The metrics, for Prometheus; docs/use/extender.md lists them."""
    service = service_of(request)
    zipped = "gzip" in request.headers.get("accept-encoding", "")

    def render() -> bytes:
        text = service.metrics.render()
        # 5,000 nodes are 30 MB of text and 1.5 MB zipped; level 1 is fast and releases the interpreter's lock.
        return zlib.compress(text, level=1, wbits=31) if zipped else text

    try:
        text = await service.renderers.run(render, AnswerDeadline(_RENDER_SECONDS))
    except Late:
        return error_response(503, f"the metrics were not ready within {_RENDER_SECONDS:g} s: ask again")
    headers = {"Vary": "Accept-Encoding"} | ({"Content-Encoding": "gzip"} if zipped else {})
    return Response(text, 200, headers, media_type=CONTENT_TYPE_PLAIN_0_0_4)
