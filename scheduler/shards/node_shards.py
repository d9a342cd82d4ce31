"""Which shard a node is in, and what its owner says when it hands the node over.

A node is in the shard that its label names, else in one by its name: no write is needed for a new node. Only the owner
of a node writes the label, and in the same patch the record that its next owner waits for.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Final, TypeVar

import msgspec

from kube.decoding.watched_kinds import REFUSED
from kube.objects.objects import ANNOTATION_PREFIX, NodeInfo

T = TypeVar("T")

SHARD_LABEL: Final = f"{ANNOTATION_PREFIX}shard"
HANDED_OVER: Final = f"{ANNOTATION_PREFIX}shard-handed-over"
WANTED: Final = f"{ANNOTATION_PREFIX}shard-wanted"


@dataclass(frozen=True, slots=True)
class HandedOver:
    """What the last owner of a node wrote as it handed the node over.

    source, to : numbers of shards
    pods       : digest of the pods on the node, all of which the next owner has to know before it places there
    home       : shard that the node goes back to; -1 = it stays
    """

    source: int
    to: int
    pods: str
    home: int = -1


@dataclass(frozen=True, slots=True)
class LoanRequest:
    """The leader asks for the loan of a node.

    to    : number of one of its shards
    until : unix seconds by its clock; owners go by when they first saw the wish
    """

    to: int
    until: float


def shard_of(node: NodeInfo, count: int) -> int:
    """Return the number of its shard, 0 to count - 1. A label that names none counts as no label."""
    said = node.labels.get(SHARD_LABEL, "")
    if said.isascii() and said.isdigit() and len(said) < 4 and int(said) < count:
        return int(said)
    return zlib.crc32(node.name.encode()) % count


def handed_over(node: NodeInfo) -> HandedOver | None:
    """Return the record of the last hand-over; None = there was none, or it cannot be read."""
    return _read(node.annotations, HANDED_OVER, HandedOver)


def wanted(node: NodeInfo) -> LoanRequest | None:
    """Return the leader's request for the node; None = there is none, or it cannot be read."""
    return _read(node.annotations, WANTED, LoanRequest)


def pods_digest(uids: Iterable[str]) -> str:
    """Return a short text that differs for different sets of pods."""
    in_order = sorted(uids)
    return f"{len(in_order)}-{zlib.crc32(' '.join(in_order).encode()):08x}"


def handing_over(version: str, record: HandedOver) -> bytes:
    """Return a merge patch that moves a node. version: resourceVersion that the node must still have."""
    metadata = {
        "resourceVersion": version,
        "labels": {SHARD_LABEL: str(record.to)},
        "annotations": {HANDED_OVER: _text(record), WANTED: None},
    }
    return msgspec.json.encode({"metadata": metadata})


def wanting(wish: LoanRequest | None) -> bytes:
    """Return a merge patch that asks for the loan of a node; None = not any more."""
    return msgspec.json.encode({"metadata": {"annotations": {WANTED: None if wish is None else _text(wish)}}})


def _text(record: HandedOver | LoanRequest) -> str:
    return msgspec.json.encode(asdict(record)).decode()


def _read(annotations: Mapping[str, str], key: str, kind: type[T]) -> T | None:
    text = annotations.get(key)
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=kind)
    except REFUSED:
        return None
