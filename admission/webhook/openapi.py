"""The OpenAPI document of the webhook: paths from the routes, schemas from wire.py, examples from here."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from admission.webhook import wire
from serving.documents import Document

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

_TYPES = (wire.AdmissionReview, wire.AdmissionReviewAnswer, wire.AddOrReplace, wire.Remove, wire.ErrorBody)
_RAW = {"description": "An object of the Kubernetes API."}


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
