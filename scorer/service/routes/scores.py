"""Which nodes are good for a pod, and why."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from scorer.service.requests import decode_charge, decode_explain, decode_scores, json_body, pod_of
from scorer.service.scorer_bodies import ChargeBody, ScoresBody
from scorer.service.scorer_openapi import answer, body
from scorer.service.scorer_state import ReadyService
from serving.body_budget import off_loop
from serving.json_answers import json_response

router = APIRouter(prefix="/v1", tags=["placement"])
"""Who asks for scores, or charges a pod, speaks for the scheduler of that pod: what is assumed of it changes."""

explaining = APIRouter(prefix="/v1", tags=["placement"])
"""Changes nothing."""


@router.post("/scores", responses=answer("ScoresBody", 400, 408, 413, 415, 422), openapi_extra=body("ScoresRequest"))
async def scores(request: Request, service: ReadyService) -> Response:
    """Score nodes for a pod: 0 worst, 100 best.

    `pod` is a Kubernetes Pod object (it need not exist yet) or the namespace and name of one that does. `nodes` are the
    nodes to score, all if left out. `weights` replace the configured ones for this request. Nodes that the scorer does
    not know get a neutral score and are named in `unknown_nodes`. With `ranking` the answer also has the scores without
    the limits 0 and 100, which distinguishes overloaded nodes.
    """
    content = await json_body(request)

    def scored() -> Response:
        with service.metrics.stage("decode"):
            asked = decode_scores(content, service.options.max_nodes)
            pod = pod_of(asked.pod, service.scorer)
        with service.metrics.stage("score"):
            found = service.scorer.score(pod, asked.nodes, asked.weights)
        with service.metrics.stage("encode"):
            return json_response(ScoresBody.from_scored(found, ranking=asked.ranking))

    return await off_loop(content, scored)


@router.post("/charges", responses=answer("ChargeBody", 400, 408, 413, 415, 422), openapi_extra=body("ChargeRequest"))
async def charges(request: Request, service: ReadyService) -> Response:
    """Reckon with a pod on a node before its binding is seen, for `seconds` at most.

    For a remote extender, which does not learn kube-scheduler's decision: without this, pods that follow each other
    quickly are all sent to the same node. An unknown node is not charged.
    """
    content = await json_body(request)

    def charged() -> Response:
        asked = decode_charge(content)
        pod = pod_of(asked.pod, service.scorer)
        return json_response(ChargeBody(service.scorer.charge_provisionally(pod, asked.node, asked.seconds)))

    return await off_loop(content, charged)


@explaining.post(
    "/explain", responses=answer("Explanation", 400, 408, 413, 415, 422), openapi_extra=body("ExplainRequest")
)
async def explain(request: Request, service: ReadyService) -> Response:
    """Score nodes for a pod and say why, for the best `top` of them.

    Per node: what each score contributes, the predicted peak before and with the pod in real units with its hour and
    bounding resource. Overall: runner-up and margin, model version, age of the data, degradation level.
    """
    content = await json_body(request)

    def explained() -> Response:
        with service.metrics.stage("decode"):
            asked = decode_explain(content, service.options.max_nodes)
            pod = pod_of(asked.pod, service.scorer)
        with service.metrics.stage("explain"):
            judge = service.judge if asked.weights is None else None
            explanation = service.scorer.explain(pod, asked.nodes, asked.weights, top=asked.top, judge=judge)
        return json_response(explanation)

    return await service.in_thread(explained)
