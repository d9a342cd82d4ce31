"""The endpoints of the webhook. A route translates, nothing more."""

from __future__ import annotations

import msgspec
from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from starlette.responses import Response

from admission.webhook.admission import AdmissionOutcome, Answer
from admission.webhook.metrics import MUTATE
from admission.webhook.openapi import body, plain_answer, review_answer, state_answer
from admission.webhook.protocol import Malformed
from admission.webhook.state import error_response, json_bytes, service_of
from scorer.service.requests import json_body
from serving.body_budget import off_loop
from serving.threads import in_thread

router = APIRouter()

_OK = b'{"ok":true}'
_NOT_READY = "not ready: templates and bindings are being read; ask again in a moment"


@router.post(MUTATE, responses=review_answer(), openapi_extra=body("AdmissionReview"), tags=["API server"])
async def mutate(request: Request) -> Response:
    """Shape a pod that is about to be created: affinity by the bindings that mean it, and a record of them.

    Everything else passes as it is. A dry run leaves no traces here; docs/operate/webhook.md says where it differs.
    """
    service = service_of(request)
    content = await json_body(request)
    if not service.store.ready:
        service.metrics.count(AdmissionOutcome.NOT_READY)
        return error_response(503, _NOT_READY)
    try:
        answer = await off_loop(content, lambda: service.review(content))
        if not isinstance(answer, Answer):
            answer = await in_thread(answer)
    except Malformed as error:
        service.metrics.count(AdmissionOutcome.MALFORMED)
        return error_response(400, str(error))
    except Exception as error:
        service.metrics.count(AdmissionOutcome.FAILED)
        service.say_failure(error)
        return error_response(500, "an error inside the webhook: its log says more; please report it")
    service.metrics.count(answer.outcome, answer.applied)
    return json_bytes(answer.body)


@router.get("/healthz", responses=state_answer(), openapi_extra={"security": []}, tags=["state"])
async def healthz() -> Response:
    """The process answers. Liveness probe."""
    return json_bytes(_OK)


@router.get("/readyz", responses=state_answer(503), openapi_extra={"security": []}, tags=["state"])
async def readyz(request: Request) -> Response:
    """200 once templates and bindings were read, 503 before and while shutting down; whether new pods are held for
    advice, and why not. Readiness probe."""
    service = service_of(request)
    if service.draining:
        return error_response(503, "the webhook is shutting down: another replica answers")
    if not service.store.ready:
        return error_response(503, _NOT_READY)
    return json_bytes(msgspec.json.encode({"ok": True, **service.abilities()}))


@router.get("/metrics", responses=plain_answer("Prometheus text format 0.0.4."), tags=["state"])
def metrics(request: Request) -> Response:
    """The metrics, for Prometheus; docs/operate/webhook.md lists them."""
    service = service_of(request)
    text = service.metrics.render(service.store.templates, service.store.ready)
    return Response(text, media_type=CONTENT_TYPE_PLAIN_0_0_4)
