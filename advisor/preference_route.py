"""POST /v1/preferences: asked by the webhook about a pod that is about to be created."""

from __future__ import annotations

import time
from typing import Final

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from advisor.preferred_pods import PreferredPods, TooLate
from placement.preferred_nodes import PREFERENCES, PreferencesRequest
from scorer.service.requests import json_body, pod_of
from scorer.service.scorer_openapi import answer, body
from scorer.service.scorer_state import ReadyService
from serving.json_answers import Refusal, json_response

_REQUEST: Final = msgspec.json.Decoder(PreferencesRequest)

_EXAMPLES: Final = {
    "a pod of a ReplicaSet, which has no name yet": {
        "value": {
            "pod": {
                "metadata": {
                    "namespace": "shop",
                    "name": "cart-7d9c5b6f4-",
                    "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
                    "labels": {"pod-template-hash": "7d9c5b6f4"},
                    "ownerReferences": [
                        {"kind": "ReplicaSet", "name": "cart-7d9c5b6f4", "uid": "u-1", "controller": True}
                    ],
                },
                "spec": {"containers": [{"name": "cart", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}]},
            },
            "seconds": 0.3,
        }
    }
}


def preferences_router(preferred: PreferredPods) -> APIRouter:
    """Return the route. Every replica answers, whether it leads or not."""
    router = APIRouter(tags=["placement"])

    @router.post(
        PREFERENCES,
        responses=answer("PreferencesBody", 400, 408, 413, 415, 422),
        openapi_extra=body("PreferencesRequest", _EXAMPLES),
    )
    async def preferences(request: Request, service: ReadyService) -> Response:
        """Nodes that a new pod prefers by the forecast, with weights for preferred node affinity.

        The pod is charged to the node that kube-scheduler will probably take, until the watch shows it, for some
        seconds at most; a dry run is not. No nodes: nothing is to be written, and `because` says why.
        """
        came = time.time()
        content = await json_body(request)

        def preferred_nodes() -> Response:
            asked = _decode(content)
            pod = pod_of(asked.pod, service.scorer)
            try:
                return json_response(preferred.prefer(pod, due=came + asked.seconds, dry_run=asked.dry_run))
            except TooLate as error:
                raise Refusal(503, str(error)) from error

        return await service.in_thread(preferred_nodes)

    return router


def _decode(content: bytes) -> PreferencesRequest:
    try:
        return _REQUEST.decode(content)
    except msgspec.ValidationError as error:
        raise Refusal(422, f"the body cannot be used: {error}; /openapi.json shows what is expected") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refusal(400, f"the body is not JSON: {error}; send application/json in UTF-8") from error
