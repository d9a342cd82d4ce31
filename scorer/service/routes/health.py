"""Whether the scorer is alive, ready and right."""

from __future__ import annotations

import msgspec
from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from starlette.responses import Response

from scorer.service.routes.page_and_report import report_written
from scorer.service.scorer_bodies import HealthBody
from scorer.service.scorer_openapi import answer, plain_answer
from scorer.service.scorer_state import ReadyService, TheService, zipped_response
from serving.json_answers import error_response, json_response

probes = APIRouter(tags=["state"])
"""What a process that does more than score answers in its own way."""

router = APIRouter(tags=["state"])


@probes.get("/v1/status", responses=answer("Status"))
async def status(service: TheService) -> Response:
    """Level of degradation and why, model, ages of what the scorer knows. Answers before it is ready."""
    # Both in the thread: a report that lies on a hung network mount must not hold up probes.
    found, written = await service.in_thread(lambda: (service.scorer.status(), report_written(service.options.report)))
    ending = {"ready": False, "not_ready_because": "the service is shutting down"} if service.draining else {}
    return json_response(msgspec.structs.replace(found, report_written=written, **ending))


@router.get("/v1/self-check", responses=answer("SelfCheck"))
async def self_check(service: ReadyService) -> Response:
    """Compare the tables kept up to date event by event with a rebuild from the objects."""
    return json_response(await service.in_thread(service.scorer.self_check))


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
    """The metrics, for Prometheus; docs/use/http-api.md lists them."""
    return await zipped_response(request, service, service.metrics.render, CONTENT_TYPE_PLAIN_0_0_4)
