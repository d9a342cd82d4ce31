"""AdmissionReview v1 in and out, and the JSON patch in it. No I/O.

https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#request
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from admission.webhook import wire
from base.errors import ForecastError

_REVIEW: Final = msgspec.json.Decoder(wire.AdmissionReview)
_POD: Final = msgspec.json.Decoder(wire.ReviewedPodJson)
_METADATA: Final = msgspec.json.Decoder(wire.PodMetadata)
_SPEC: Final = msgspec.json.Decoder(wire.ReviewedPodSpec)
_ENCODE: Final = msgspec.json.Encoder().encode

_LONGEST_WARNING: Final = 120
"""Characters; kubectl shows longer ones cut off, and the API server keeps 4 KiB of all of them."""

_MOST_WARNINGS: Final = 8


class MalformedReview(ForecastError):
    """The body is no AdmissionReview that could be answered."""


def decode_review(body: bytes) -> wire.AdmissionRequest:
    """Body of POST /mutate. Raises Malformed."""
    try:
        return _REVIEW.decode(body).request
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedReview(f"the body is no AdmissionReview of admission.k8s.io/v1: {_why(error)}") from error


def pod_of(request: wire.AdmissionRequest) -> dict[str, Any]:
    """The pod that is to be created, as far as templates look at it. Raises Malformed.

    Containers are not decoded: they are most of a pod. A metadata or spec that is no object is None.
    """
    try:
        pod = _POD.decode(request.object)
        metadata, spec = pod.get("metadata", wire.NOTHING), pod.get("spec", wire.NOTHING)
        return {"metadata": _object(_METADATA, metadata), "spec": _object(_SPEC, spec)}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedReview(f"the object of the AdmissionReview is no pod: {_why(error)}") from error


def _object(decoder: msgspec.json.Decoder[Any], content: msgspec.Raw) -> Any:
    try:
        return decoder.decode(content)
    except msgspec.ValidationError:
        return None


def allowed(uid: str, patch: bytes | None = None, warnings: Iterable[str] = ()) -> bytes:
    """The answer: it may be created, changed by the patch."""
    shown = list(islice(filter(None, map(shortened, warnings)), _MOST_WARNINGS)) or msgspec.UNSET
    response = (
        wire.AdmissionResponse(uid, True, warnings=shown)
        if patch is None
        else wire.AdmissionResponse(uid, True, patch, "JSONPatch", shown)
    )
    return _ENCODE(wire.AdmissionReviewAnswer(response))


def patch_of(
    pod: Mapping[str, Any],
    affinity: Mapping[str, Any] | None,
    annotations: Mapping[str, str | None],
    gates: Sequence[Any] | None = None,
) -> bytes | None:
    """The JSON patch (RFC 6902) that gives the pod this affinity, annotations and gates; None = nothing changes.

    affinity    : the whole new one; None = it stays
    annotations : to set; None as value = to remove
    gates       : all scheduling gates; None = they stay
    A place that the pod does not have, or has something else in, is left alone: the API server refuses a pod whose
    patch does not fit.
    """
    operations: list[wire.AddOrReplace | wire.Remove] = []
    if affinity is not None and isinstance(pod.get("spec"), dict):
        operations.append(wire.AddOrReplace("/spec/affinity", affinity))
    if gates is not None and isinstance(pod.get("spec"), dict):
        operations.append(wire.AddOrReplace("/spec/schedulingGates", gates))
    metadata = pod.get("metadata")
    if annotations and isinstance(metadata, dict):
        there = metadata.get("annotations")
        if isinstance(there, dict):
            for key, value in annotations.items():
                path = "/metadata/annotations/" + _escaped(key)
                if value is not None:
                    operations.append(wire.AddOrReplace(path, value))
                elif key in there:
                    operations.append(wire.Remove(path))
        elif new := {key: value for key, value in annotations.items() if value is not None}:
            operations.append(wire.AddOrReplace("/metadata/annotations", new))
    return _ENCODE(operations) if operations else None


def error_reply(message: str) -> bytes:
    """Body of an answer that is not 200."""
    return _ENCODE(wire.WebhookErrorBody(message))


def shortened(warning: str) -> str:
    """As it fits into a line of kubectl. Line breaks and control characters would make the API server drop it."""
    line = " ".join("".join(c if c.isprintable() else " " for c in warning).split())
    return line if len(line) <= _LONGEST_WARNING else line[: _LONGEST_WARNING - 1].rstrip() + "…"


def _why(error: Exception) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


def _escaped(key: str) -> str:
    """As a part of a JSON pointer (RFC 6901, section 3)."""
    return key.replace("~", "~0").replace("/", "~1")
