"""What the routes of the webhook share, and how an error is answered.

Any answer but 200 is a failed call to the API server: failurePolicy decides what becomes of the pod, and if that is
Fail, the client that creates the pod reads the text.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from starlette.requests import Request
from starlette.responses import Response

from admission.templates.template_set import TemplateSet
from admission.webhook.admission import Answer
from admission.webhook.metrics import WebhookMetrics
from admission.webhook.protocol import error_reply
from serving.quiet_log import QuietLog

logger = logging.getLogger(__name__)


Review = Callable[[bytes], Answer | Callable[[], Answer]]
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
