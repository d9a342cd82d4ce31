"""The endpoints of the webhook, what they share, how an error is answered, and the OpenAPI document: paths from the
routes, schemas from wire.py, examples from here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec
from fastapi import APIRouter, FastAPI, Request
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from starlette.responses import Response

from admission.templates.template_set import TemplateSet
from admission.webhook import wire
from admission.webhook.admission_review import MalformedReview, error_reply
from admission.webhook.review_answers import AdmissionAnswer, AdmissionOutcome
from admission.webhook.webhook_metrics import MUTATE, WebhookMetrics
from scorer.service.requests import json_body
from serving.body_budget import off_loop
from serving.openapi_parts import Document
from serving.quiet_log import QuietLog
from serving.threads import in_thread

_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"namespace": "shop", "generateName": "cart-7d9c5b6f4-", "labels": {"app": "cart"}},
    "spec": {"containers": [{"name": "cart", "image": "cart:1"}]},
}

_REVIEW = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "namespace": "shop",
        "operation": "CREATE",
        "object": _POD,
        "dryRun": False,
    },
}

_ERRORS = {
    400: "Not JSON, or no AdmissionReview of admission.k8s.io/v1.",
    401: "No token, or a wrong one (only where tokens are configured).",
    403: "The token's user may not do this, or Host or Origin is foreign (docs/operate/security.md).",
    408: "The body came too slowly.",
    413: "The body is too large.",
    415: "The body is not announced as application/json.",
    500: "An error of ours; the log says more.",
    503: "Not ready or too busy: ask again after Retry-After seconds.",
}

_DESCRIPTION = """The mutating admission webhook: it gives new pods the affinity that templates and bindings say.

Any answer but 200 is a failed call to the API server, and failurePolicy decides; its body is
`{"error": "one sentence with the way out"}`."""

_DOCUMENT = Document(_DESCRIPTION, _ERRORS, {"AdmissionReview": {"a new pod": {"value": _REVIEW}}})
body, plain_answer = _DOCUMENT.body, _DOCUMENT.plain_answer
_TYPES = (wire.AdmissionReview, wire.AdmissionReviewAnswer, wire.AddOrReplace, wire.Remove, wire.WebhookErrorBody)
_RAW = {"description": "An object of the Kubernetes API."}

logger = logging.getLogger(__name__)
router = APIRouter()
_OK = b'{"ok":true}'
_NOT_READY = "not ready: templates and bindings are being read; ask again in a moment"


def review_answer() -> dict[int | str, dict[str, Any]]:
    """`responses=` of what the API server calls."""
    return _DOCUMENT.answer("AdmissionReviewAnswer", 400, 408, 413, 415)


def state_answer(*errors: int) -> dict[int | str, dict[str, Any]]:
    """`responses=` of a probe."""
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    good = {"description": "Yes.", "content": {"application/json": {"schema": schema}}}
    return {200: good} | _DOCUMENT.error_answers(*errors)


def describe(app: FastAPI, *, with_tokens: bool) -> dict[str, Any]:
    """The document of the application."""
    return _DOCUMENT.describe(app, _TYPES, _RAW, with_tokens=with_tokens)


# What the routes of the webhook share, and how an error is answered.
#
# Any answer but 200 is a failed call to the API server: failurePolicy decides what becomes of the pod, and if that is
# Fail, the client that creates the pod reads the text.

Review = Callable[[bytes], AdmissionAnswer | Callable[[], AdmissionAnswer]]
"""Body of an AdmissionReview -> the answer, or what takes a moment to give it."""


class InEffect(Protocol):
    """The templates that pods are shaped by; ready: they have been read."""

    @property
    def templates(self) -> TemplateSet: ...

    @property
    def ready(self) -> bool: ...


@dataclass(slots=True)
class WebhookService:
    """
    draining  : set by the server on its way out; /readyz says no from then on
    abilities : what /readyz says in addition
    """

    review: Review
    store: InEffect
    metrics: WebhookMetrics
    draining: bool = False
    abilities: Callable[[], Mapping[str, Any]] = dict
    _log: QuietLog = field(default_factory=lambda: QuietLog(logger))

    def say_failure(self, error: Exception) -> None:
        """Log an unexpected exception, not for every pod: the metrics count them."""
        message = "a pod could not be reviewed, failurePolicy decides what becomes of it"
        self._log.log(logging.ERROR, message, error=error)


def service_of(request: Request) -> WebhookService:
    """Of this application."""
    service: WebhookService = request.app.state.service
    return service


def json_bytes(body: bytes, status: int = 200) -> Response:
    """An answer that is JSON already."""
    return Response(body, status, media_type="application/json")


def error_response(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """One sentence with the way out."""
    extra = {"Retry-After": "1"} if status == 503 else {}
    return Response(error_reply(message), status, extra | dict(headers or {}), "application/json")


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
        if not isinstance(answer, AdmissionAnswer):
            answer = await in_thread(answer)
    except MalformedReview as error:
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
