"""Raw request bodies -> what the facade takes. Syntax errors are 400, JSON that cannot be used is 422."""

from __future__ import annotations

from typing import TypeVar

import msgspec
from fastapi import Request

from kube.decoding.decoding import decode_pod
from kube.objects.objects import PodInfo
from scorer.scorer_api import ScorerApi
from scorer.service.scorer_bodies import ChargeRequest, ExplainRequest, PodReference, ScoresRequest
from serving.json_answers import Refusal

Body = TypeVar("Body", ScoresRequest, ChargeRequest, ExplainRequest, PodReference)

_SCORES = msgspec.json.Decoder(ScoresRequest)
_CHARGE = msgspec.json.Decoder(ChargeRequest)
_EXPLAIN = msgspec.json.Decoder(ExplainRequest)
_POD = msgspec.json.Decoder(PodReference)


async def json_body(request: Request) -> bytes:
    """The body. Raises Refusal for another content type: a page of another origin in a browser may send other types
    without asking first, JSON it may not."""
    kind = request.headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != "application/json":
        raise Refusal(415, f"the content type is {kind[:60]!r}: send application/json")
    return await request.body()


def decode_scores(body: bytes, max_nodes: int) -> ScoresRequest:
    """Body of POST /v1/scores. Raises Refusal."""
    return _checked(_decode(_SCORES, body), max_nodes)


def decode_charge(body: bytes) -> ChargeRequest:
    """Body of POST /v1/charges. Raises Refusal."""
    return _decode(_CHARGE, body)


def decode_explain(body: bytes, max_nodes: int) -> ExplainRequest:
    """Body of POST /v1/explain. Raises Refusal."""
    return _checked(_decode(_EXPLAIN, body), max_nodes)


def pod_of(raw: msgspec.Raw, scorer: ScorerApi) -> PodInfo:
    """The pod a request is about: a whole Pod object, or one of the cluster by namespace and name.

    Raises Refusal, InputError.
    """
    body = bytes(raw)
    reference = _decode(_POD, body)
    if reference.spec is not msgspec.UNSET or reference.metadata is not msgspec.UNSET:
        try:
            return decode_pod(body)
        except RecursionError as error:
            raise _too_deep() from error
    if not reference.name:
        raise Refusal(
            422,
            'pod has neither spec nor name: send a Kubernetes Pod object, or {"namespace": ..., "name": ...} of a pod '
            "that exists",
        )
    return scorer.find_pod(reference.namespace or "default", reference.name)


def _decode(decoder: msgspec.json.Decoder[Body], body: bytes) -> Body:
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise Refusal(422, f"the body cannot be used: {error}; /openapi.json shows what is expected") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refusal(400, f"the body is not JSON: {error}; send application/json in UTF-8") from error
    except RecursionError as error:
        raise _too_deep() from error


def _too_deep() -> Refusal:
    return Refusal(400, "the body is nested too deeply to be a Pod: send the object as kubectl prints it")


Asked = TypeVar("Asked", ScoresRequest, ExplainRequest)


def _checked(request: Asked, max_nodes: int) -> Asked:
    if request.nodes is not None and len(request.nodes) > max_nodes:
        raise Refusal(
            422,
            f"nodes has {len(request.nodes)} names, at most {max_nodes} are allowed: leave nodes out for all nodes, or "
            "ask in parts",
        )
    return request
