"""The OpenAPI document: paths from the routes, schemas from bodies.py, examples from here."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from scorer.service import bodies

__all__ = ["answer", "body", "describe", "plain_answer"]

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
    404: "No such node or service.",
    405: "Another method is meant.",
    408: "The body came too slowly.",
    413: "The body is too large.",
    422: "Understood, but not usable: a wrong type, a name that is not known, too many nodes.",
    500: "An error of ours; the log says more.",
    503: "Not ready, too busy, or the deadline passed: ask again after Retry-After seconds.",
}

_DESCRIPTION = """How good each node is for a pod, by what nodes and services will use in the coming week.

Usage is in base units: cores, bytes, bytes per second. Times are ISO 8601 in the model's time zone. null = not known,
or no limit. Every error is `{"error": "one sentence with the way out"}`."""


def answer(schema: str, *errors: int) -> dict[int | str, dict[str, Any]]:
    """`responses=` of a route whose answer is a body of this name; 401, 500 and 503 may always come."""
    good = {"description": "The answer.", "content": {"application/json": {"schema": _ref(schema)}}}
    return {200: good} | _error_answers(*errors)


def plain_answer(description: str) -> dict[int | str, dict[str, Any]]:
    """`responses=` of a route that answers with plain text."""
    good = {"description": description, "content": {"text/plain": {"schema": {"type": "string"}}}}
    return {200: good} | _error_answers()


def body(schema: str) -> dict[str, Any]:
    """`openapi_extra=` of a route that decodes its body itself."""
    content = {"application/json": {"schema": _ref(schema), "examples": _EXAMPLES[schema]}}
    return {"requestBody": {"required": True, "content": content}}


def describe(app: FastAPI, *, with_tokens: bool) -> dict[str, Any]:
    """The document of the application."""
    document = get_openapi(title=app.title, version=app.version, description=_DESCRIPTION, routes=app.routes)
    components = document.setdefault("components", {})
    components["schemas"] = _schemas()
    if with_tokens:
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
    for path in document["paths"].values():
        for operation in path.values():
            # FastAPI adds its own 422 to every route with parameters; ours has another shape.
            if "422" in operation["responses"]:
                operation["responses"]["422"] = _error_answers(422)[422]
            if operation.get("security") == [] and not with_tokens:
                del operation["security"]
    return document


def _schemas() -> dict[str, Any]:
    types = [getattr(bodies, name) for name in bodies.__all__ if name != "PodReference"]

    def hook(kind: type) -> dict[str, Any]:
        if kind is msgspec.Raw:
            return {
                "type": "object",
                "description": "A Kubernetes Pod object, or the namespace and name of a pod of the cluster.",
            }
        raise NotImplementedError(kind)

    _, schemas = msgspec.json.schema_components(types, schema_hook=hook, ref_template="#/components/schemas/{name}")
    return dict(schemas)


def _ref(schema: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{schema}"}


def _error_answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    content = {"application/json": {"schema": _ref("ErrorBody")}}
    return {s: {"description": _ERRORS[s], "content": content} for s in sorted({401, 500, 503, *statuses})}
