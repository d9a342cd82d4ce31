"""What the extender answers -> bytes for kube-scheduler."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from extender.extender_api import Filtered, VictimsByUid
from extender.protocol import wire
from extender.protocol.requests import Asked

_ENCODE = msgspec.json.Encoder().encode

NO_POINTS = b"[]"
"""All nodes are neutral: those missing from the list have 0."""


def filter_reply(asked: Asked, filtered: Filtered) -> bytes:
    """Nodes come back as they were asked for: names for names, whole nodes for whole nodes."""
    nodes = None
    if asked.items is not None:
        passed = frozenset(filtered.nodes)
        nodes = wire.NodeList([item for name, item in zip(asked.nodes, asked.items, strict=True) if name in passed])
    names = list(filtered.nodes) if nodes is None else None
    return _ENCODE(wire.ExtenderFilterResult(names, nodes, dict(filtered.failed), dict(filtered.unresolvable)))


def filter_error(message: str) -> bytes:
    """kube-scheduler fails the pod's attempt, or goes on without us where the extender is ignorable."""
    return _ENCODE(wire.ExtenderFilterResult(error=message))


def points_reply(points: Mapping[str, int]) -> bytes:
    """Nodes that do not have 0 points, which those missing have."""
    values = points.values()
    if 0 in values or set(map(type, values)) != {int}:  # two quick looks spare 5,000 nodes a loop of Python
        points = {node: int(value) for node, value in points.items() if value}
    return _ENCODE([*map(wire.HostPriority, points.keys(), points.values())])


def victims_reply(victims: Mapping[str, VictimsByUid]) -> bytes:
    """By UID whatever was sent; kube-scheduler calls a node without victims an error, so it is left out."""
    return _ENCODE(
        wire.ExtenderPreemptionResult(
            {
                node: wire.MetaVictims([wire.MetaPod(uid) for uid in of.pods], of.pdb_violations)
                for node, of in victims.items()
                if of.pods
            }
        )
    )


def binding_reply(error: str = "") -> bytes:
    """Success without an error."""
    return _ENCODE(wire.ExtenderBindingResult(error))


def error_reply(message: str) -> bytes:
    """Body of an answer that is not 200."""
    return _ENCODE(wire.ExtenderErrorBody(message))
