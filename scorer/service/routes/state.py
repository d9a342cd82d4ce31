"""Whether the scorer is alive, ready and right."""

from __future__ import annotations

import zlib

from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from starlette.responses import Response

from scorer.service.bodies import HealthBody
from scorer.service.errors import error_response, json_response
from scorer.service.openapi import answer, plain_answer
from scorer.service.state import ReadyService, TheService
from scorer.service.translation import self_check_body, status_body

__all__ = ["probes", "router"]

probes = APIRouter(tags=["state"])
"""What a process that does more than score answers in its own way."""

router = APIRouter(tags=["state"])


@probes.get("/v1/status", responses=answer("StatusBody"))
async def status(service: TheService) -> Response:
    """Level of degradation and why, model, ages of what the scorer knows. Answers before it is ready."""
    found = await service.in_thread(service.scorer.status)
    return json_response(status_body(found, draining=service.draining))


@router.get("/v1/self-check", responses=answer("SelfCheckBody"))
async def self_check(service: ReadyService) -> Response:
    """Compare the tables kept up to date event by event with a rebuild from the objects."""
    return json_response(self_check_body(await service.in_thread(service.scorer.self_check)))


@probes.get("/healthz", responses=answer("HealthBody"), openapi_extra={"security": []})
async def healthz() -> Response:
    """The process answers. Liveness probe."""
    return json_response(HealthBody(ok=True))


@probes.get("/readyz", responses=answer("HealthBody"), openapi_extra={"security": []})
async def readyz(service: TheService) -> Response:
    """200 once the cluster was read completely, 503 before and while shutting down. Readiness probe."""
    if service.draining:
        return error_response(503, "the service is shutting down: another replica answers")
    service.require_ready()
    return json_response(HealthBody(ok=True))


@router.get("/metrics", responses=plain_answer("Prometheus text format 0.0.4."))
async def metrics(request: Request, service: TheService) -> Response:
    """The metrics, for Prometheus; docs/http-api.md lists them."""
    zipped = "gzip" in request.headers.get("accept-encoding", "")

    def render() -> bytes:
        text = service.metrics.render()
        # 5,000 nodes are 30 MB of text and 1.5 MB zipped; level 1 is fast and releases the interpreter's lock.
        return zlib.compress(text, level=1, wbits=31) if zipped else text

    headers = {"Vary": "Accept-Encoding"} | ({"Content-Encoding": "gzip"} if zipped else {})
    return Response(await service.in_thread(render), 200, headers, media_type=CONTENT_TYPE_PLAIN_0_0_4)
