"""The OpenAPI document: paths from the routes, schemas from the classes of the answers, examples from here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fastapi import FastAPI

from scorer import answers
from scorer.service import scorer_bodies
from serving.openapi_parts import Document, bodies_of

_POD = {
    "metadata": {
        "namespace": "shop",
        "name": "cart-7d9c5b6f4-x2x7p",
        "labels": {"pod-template-hash": "7d9c5b6f4"},
        "ownerReferences": [{"kind": "ReplicaSet", "name": "cart-7d9c5b6f4", "uid": "u-1", "controller": True}],
    },
    "spec": {"containers": [{"name": "cart", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}]},
}

_EXAMPLES: dict[str, dict[str, Any]] = {
    "ScoresRequest": {
        "a pod that is about to be created": {"value": {"pod": _POD, "nodes": ["node-1", "node-2"]}},
        "a pod of the cluster, on all nodes": {"value": {"pod": {"namespace": "shop", "name": "cart-7d9c5b6f4-x2x7p"}}},
        "other weights": {"value": {"pod": _POD, "nodes": ["node-1"], "weights": {"predicted_peak": 1}}},
    },
    "ChargeRequest": {"the node ranked first": {"value": {"pod": _POD, "node": "node-1", "seconds": 2}}},
    "ExplainRequest": {"the three best nodes": {"value": {"pod": _POD, "top": 3}}},
}

_ERRORS = {
    400: "The body is not JSON.",
    401: "No token, or a wrong one (only where tokens are configured).",
    403: "The token's user may not do this, or Host or Origin is foreign (docs/operate/security.md).",
    404: "No such node or service, or no report.",
    405: "Another method is meant.",
    408: "The body came too slowly.",
    413: "The body is too large.",
    415: "The body is not announced as application/json.",
    422: "Understood, but not usable: a wrong type, a name that is not known, too many nodes.",
    500: "An error of ours; the log says more.",
    503: "Not ready, too busy, or the deadline passed: ask again after Retry-After seconds.",
}

_DESCRIPTION = """How good each node is for a pod, by what nodes and services will use in the coming week.

Usage is in base units: cores, bytes, bytes per second. Times are ISO 8601 in the model's time zone. null = not known,
or no limit. Every error is `{"error": "one sentence with the way out"}`."""

_DOCUMENT = Document(_DESCRIPTION, _ERRORS, _EXAMPLES)
answer, body = _DOCUMENT.answer, _DOCUMENT.body
file_answer, plain_answer = _DOCUMENT.file_answer, _DOCUMENT.plain_answer

_RAW = {"type": "object", "description": "A Kubernetes Pod object, or the namespace and name of a pod of the cluster."}


def describe(app: FastAPI, *, with_tokens: bool, more: Iterable[type] = ()) -> dict[str, Any]:
    """Return the document of the application. more: bodies in addition to the scorer's."""
    types = [
        *(kind for kind in bodies_of(scorer_bodies) if kind is not scorer_bodies.PodReference),
        *bodies_of(answers),
        *more,
    ]
    return _DOCUMENT.describe(app, types, _RAW, with_tokens=with_tokens)
