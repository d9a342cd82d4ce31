"""Bytes of kube-scheduler -> what the extender is asked.

Malformed : no JSON, or not of the protocol's shape
Unusable  : of its shape, but nothing that could be answered: no pod, no nodes, a pod that is none
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeVar

import msgspec
from msgspec import UNSET, Raw

from base.errors import ForecastError
from extender.extender_api import VictimsByUid
from extender.protocol import wire
from kube.binding.binding_steps import BindingRequest
from kube.decoding.decoding import decode_pod
from kube.decoding.watched_kinds import UndecodableObject
from kube.objects.objects import PodInfo

Args = TypeVar("Args", wire.ExtenderArgs, wire.ExtenderPreemptionArgs, wire.ExtenderBindingArgs)
T = TypeVar("T")

_ARGS = msgspec.json.Decoder(wire.ExtenderArgs)
_PREEMPTION = msgspec.json.Decoder(wire.ExtenderPreemptionArgs)
_BINDING = msgspec.json.Decoder(wire.ExtenderBindingArgs)
_NODES = msgspec.json.Decoder(wire.NodeList | None)
_NODE = msgspec.json.Decoder(wire.NodeItem)
_ANY_CASE = msgspec.json.Decoder(dict[str, Raw])

_KEYS: Final = {
    key.lower(): key
    for kind in (wire.ExtenderArgs, wire.ExtenderPreemptionArgs, wire.ExtenderBindingArgs)
    for key in kind.__struct_encode_fields__
}


class MalformedRequest(ForecastError):
    """The body is not what the protocol sends."""


class Unusable(ForecastError):
    """The body has the protocol's shape, but cannot be answered."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question about a pod and nodes.

    pod   : the Pod's JSON
    nodes : names, in the order sent
    items : the nodes as they came, where whole ones were sent instead of names
    """

    pod: Raw
    nodes: Sequence[str]
    items: Sequence[Raw] | None = None


@dataclass(frozen=True, slots=True)
class Preemption:
    """Who would be evicted from which node so that the pod finds room."""

    pod: Raw
    victims: Mapping[str, VictimsByUid]


def decode_asked(body: bytes) -> Asked:
    """Body of /filter and /prioritize. Raises Malformed, Unusable."""
    args = _decode(_ARGS, body)
    if args.pod == wire.NOTHING:
        args = _in_any_case(_ARGS, body)
    if args.pod == wire.NOTHING:
        raise Unusable("the request has no Pod: send kube-scheduler's ExtenderArgs")
    if args.node_names is not None:
        return Asked(args.pod, args.node_names)
    found = _decode(_NODES, args.nodes)
    if found is None:
        raise Unusable("the request has neither NodeNames nor Nodes: set nodeCacheCapable: true for this extender")
    _require_utf8(body)  # the items are handed back as they came, and what is skipped or kept raw was not looked at
    items = found.items or []
    return Asked(args.pod, [_decode(_NODE, item).metadata.name for item in items], items)


def decode_preemption(body: bytes) -> Preemption:
    """Body of /preempt. Raises Malformed, Unusable."""
    args = _decode(_PREEMPTION, body)
    if args.pod == wire.NOTHING:
        args = _in_any_case(_PREEMPTION, body)
    if args.pod == wire.NOTHING:
        raise Unusable("the request has no Pod: send kube-scheduler's ExtenderPreemptionArgs")
    victims: dict[str, VictimsByUid] = {}
    for node, meta in (args.node_name_to_meta_victims or {}).items():
        if meta is not None:
            victims[node] = VictimsByUid(tuple(pod.uid for pod in meta.pods or () if pod), meta.pdb_violations)
    for node, whole in (args.node_name_to_victims or {}).items():
        if whole is not None and node not in victims:
            victims[node] = VictimsByUid(
                tuple(pod.metadata.uid for pod in whole.pods or () if pod), whole.pdb_violations
            )
    return Preemption(args.pod, victims)


def decode_binding(body: bytes) -> BindingRequest:
    """Body of /bind. Raises Malformed, Unusable."""
    args = _decode(_BINDING, body)
    if args.pod_name is UNSET:
        args = _in_any_case(_BINDING, body)
    name = "" if args.pod_name is UNSET else args.pod_name
    for key, value in (("PodName", name), ("PodNamespace", args.pod_namespace), ("Node", args.node)):
        # These become parts of a path and of an object: what the API server would never have let in goes no further.
        if not value or len(value) > 253 or value[0] == "." or not _NAME_CHARACTERS.issuperset(value):
            raise Unusable(f"{key} is {value[:60]!r}: it must be the name of an existing object")
    if not args.pod_uid:
        raise Unusable("PodUID is missing: without it another pod of the same name might be bound")
    return BindingRequest(args.pod_namespace, name, args.pod_uid, args.node)


_NAME_CHARACTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-.")


def read_pod(pod: Raw) -> PodInfo:
    """The pod a request is about. Raises Unusable."""
    read = _decoded_pod if len(pod) <= _MOST_KEPT else decode_pod
    try:
        return read(bytes(pod))
    except UndecodableObject as error:
        raise Unusable(str(error)) from error


_MOST_KEPT: Final = 64 * 1024
"""Bytes of a pod, or of names, that are kept with what was made of them."""

# kube-scheduler asks twice about a pod, the second time with the same bytes.
_decoded_pod = lru_cache(maxsize=2)(decode_pod)


def _decode(decoder: msgspec.json.Decoder[T], body: bytes | Raw) -> T:
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise MalformedRequest(f"the body is not of kube-scheduler's extender protocol v1: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedRequest(f"the body is not JSON: {error}") from error
    except RecursionError as error:
        raise MalformedRequest("the body is nested too deeply for a Pod") from error


def _require_utf8(body: bytes) -> None:
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise MalformedRequest(f"the body is not JSON: {error}") from error


def _in_any_case(decoder: msgspec.json.Decoder[Args], body: bytes) -> Args:
    """As Go's decoder reads: keys in any case. Only for people who write requests by hand."""
    return _decode(
        decoder, msgspec.json.encode({_KEYS.get(k.lower(), k): v for k, v in _decode(_ANY_CASE, body).items()})
    )
