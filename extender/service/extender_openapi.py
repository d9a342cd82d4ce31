"""The OpenAPI document: paths from the routes, schemas from protocol/wire.py, examples from here."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from extender.protocol import wire
from serving.openapi_parts import Document, ref

_POD = {
    "metadata": {"namespace": "shop", "name": "cart-7d9c5b6f4-x2x7p", "uid": "8f2f1a6e-9c0e-4b53-8a6f-1d5a4f0f2c11"},
    "spec": {"containers": [{"name": "cart", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}]},
}
_VICTIM = {"Pods": [{"UID": "0d7f5d0c-6f0b-4f6c-9d53-2f7f0d1a9b11"}], "NumPDBViolations": 0}

_EXAMPLES: dict[str, dict[str, Any]] = {
    "ExtenderArgs": {
        "nodeCacheCapable: true": {"value": {"Pod": _POD, "Nodes": None, "NodeNames": ["node-1", "node-2"]}}
    },
    "ExtenderPreemptionArgs": {
        "nodeCacheCapable: true": {
            "value": {"Pod": _POD, "NodeNameToVictims": None, "NodeNameToMetaVictims": {"node-1": _VICTIM}}
        }
    },
    "ExtenderBindingArgs": {
        "a pod": {
            "value": {
                "PodName": "cart-7d9c5b6f4-x2x7p",
                "PodNamespace": "shop",
                "PodUID": "8f2f1a6e-9c0e-4b53-8a6f-1d5a4f0f2c11",
                "Node": "node-1",
            }
        }
    },
}

_ERRORS = {
    400: "Not JSON, not the protocol, or nothing that could be answered where the reply has no place for an error.",
    401: "No token, or a wrong one (only where tokens are configured).",
    403: "The token's user may not do this, or Host or Origin is foreign (docs/operate/security.md).",
    408: "The body came too slowly.",
    413: "The body is too large.",
    415: "The body is not announced as application/json.",
    500: "An error of ours; the log says more.",
    503: "Not ready, too busy, or too slow: ask again after Retry-After seconds.",
}

_DESCRIPTION = """kube-scheduler's extender protocol v1: filters and points by what nodes will use in the coming week.

Any answer but 200 is an error to kube-scheduler; its body is `{"Error": "one sentence with the way out"}`. Past the
deadline, before the cluster was read and after an error of ours the answer is neutral: all nodes pass, none has
points."""

_DOCUMENT = Document(_DESCRIPTION, _ERRORS, _EXAMPLES)
body, plain_answer = _DOCUMENT.body, _DOCUMENT.plain_answer

_TYPES = (
    wire.ExtenderArgs,
    wire.ExtenderFilterResult,
    wire.HostPriority,
    wire.ExtenderPreemptionArgs,
    wire.ExtenderPreemptionResult,
    wire.ExtenderBindingArgs,
    wire.ExtenderBindingResult,
    wire.ExtenderErrorBody,
)
_RAW = {"description": "An object of the Kubernetes API.", "type": ["object", "null"]}


def verb_answer(schema: str) -> dict[int | str, dict[str, Any]]:
    """`responses=` of what kube-scheduler calls."""
    return _DOCUMENT.answer(schema, 400, 408, 413, 415)


def state_answer(*errors: int) -> dict[int | str, dict[str, Any]]:
    """`responses=` of a probe."""
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    good = {"description": "Yes.", "content": {"application/json": {"schema": schema}}}
    return {200: good} | _DOCUMENT.error_answers(*errors)


def describe(app: FastAPI, *, with_tokens: bool) -> dict[str, Any]:
    """The document of the application."""
    document = _DOCUMENT.describe(app, _TYPES, _RAW, with_tokens=with_tokens)
    document["components"]["schemas"]["HostPriorityList"] = {
        "type": "array",
        "items": ref("HostPriority"),
        "description": "Nodes that do not have 0 points.",
    }
    return document
