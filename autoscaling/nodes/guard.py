"""Which nodes the coming hours need, so that no autoscaler removes them, and their marks: three annotations, written
and removed together on the version that was read. No I/O.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import msgspec
import numpy as np

from autoscaling.autoscale_settings import GuardOptions
from autoscaling.services_ahead import ServicesAhead, is_placeholder, pods_ahead
from base.arrays import Bools, Floats
from kube.objects.objects import ANNOTATION_PREFIX

_STEP_SECONDS: Final = 900.0

KEPT_UNTIL: Final = f"{ANNOTATION_PREFIX}kept-until"

_KEPT: Final = {
    "karpenter.sh/do-not-disrupt": "true",
    "cluster-autoscaler.kubernetes.io/scale-down-disabled": "true",
}

ABOUT_TO_GO: Final = (
    "karpenter.sh/disrupted",
    "ToBeDeletedByClusterAutoscaler",
)
"""Taints by which an autoscaler says that it removes a node. DeletionCandidateOfClusterAutoscaler is none: Cluster
Autoscaler may remove such a node minutes later, and a mark prevents just that."""


@dataclass(frozen=True, slots=True)
class GuardedNodes:
    """Nodes that are there.

    allocatable, requested : (n_nodes, 2) cores and bytes; placeholder pods do not count as requested
    usable : (n_nodes,) ready, not cordoned, no autoscaler is about to remove it
    until  : (n_nodes,) end of our mark in unix seconds; 0 = it bears none
    """

    names: tuple[str, ...]
    allocatable: Floats
    requested: Floats
    usable: Bools
    until: Floats

    @property
    def marked(self) -> Bools:
        """(n_nodes,): whether it bears a mark of ours."""
        return np.asarray(self.until > 0)


@dataclass(frozen=True, slots=True)
class Marks:
    """keep: nodes that should bear a mark, in the order of their names; need: cores and bytes that they hold."""

    keep: tuple[str, ...]
    need: tuple[float, float]


def marks(
    ahead: ServicesAhead, nodes: GuardedNodes, now: float, options: GuardOptions, *, foreign: Collection[str] = ()
) -> Marks:
    """The nodes to keep. now: unix seconds; foreign: nodes that others keep, which are never ours."""
    return marks_for(highest_need(ahead, nodes, now, options), nodes, options, foreign=foreign)


def highest_need(ahead: ServicesAhead, nodes: GuardedNodes, now: float, options: GuardOptions) -> Floats:
    """Cores and bytes, (2,), that the pods of the coming hours request at most, with a margin for the error."""
    moments = np.arange(now, now + options.horizon + 1.0, _STEP_SECONDS)
    coming = pods_ahead(ahead, now, moments)
    real = ~is_placeholder(ahead)
    requests = ahead.requests[real]  # (n_real, 2)
    expected = coming.pods[real].T @ requests  # (n_moments, 2)
    # What runs now is known, and an error grows with the time ahead as that of the load now fades
    # (autoscaling/services_ahead.py).
    error = np.sqrt(np.square(coming.std[real]).T @ np.square(requests))
    error[0] = 0.0
    others = np.maximum(nodes.requested.sum(axis=0) - ahead.replicas[real] @ requests, 0.0)
    return np.asarray((expected + options.margin * error).max(axis=0) + others)


def marks_for(need: Floats, nodes: GuardedNodes, options: GuardOptions, *, foreign: Collection[str] = ()) -> Marks:
    """The same for a known need: (2,) cores and bytes."""
    theirs = np.array([name in foreign for name in nodes.names], dtype=np.bool_)
    ours = nodes.marked & nodes.usable & ~theirs
    running = nodes.requested.sum(axis=0)
    threshold = running if ours.any() else running * (1 + options.slack)
    is_higher = bool((need > threshold + 1e-9 * (1 + running)).any())
    if not len(nodes.names) or not (options.always or is_higher):
        return Marks((), (float(need[0]), float(need[1])))
    holds = options.fill * nodes.allocatable  # (n_nodes, 2)
    kept = holds[theirs & nodes.usable].sum(axis=0)
    fullness = (nodes.requested / np.maximum(nodes.allocatable, 1e-9)).max(axis=1)
    order = np.lexsort((np.arange(len(fullness)), -fullness))
    chosen: list[int] = []
    for row in [row for row in order.tolist() if ours[row]]:  # the fullest first: the emptiest are released
        if (kept >= need * (1 + options.slack)).all():
            break
        chosen.append(row)
        kept = kept + holds[row]
    for row in [row for row in order.tolist() if nodes.usable[row] and not ours[row] and not theirs[row]]:
        if (kept >= need).all():
            break
        chosen.append(row)
        kept = kept + holds[row]
    most = int(options.most_share * len(nodes.names))
    keep = sorted(nodes.names[row] for row in chosen[:most])
    return Marks(tuple(keep), (float(need[0]), float(need[1])))


# The mark of a node: three annotations, written and removed together in one patch on the version that was read.
#
#     karpenter.sh/do-not-disrupt: "true"                           Karpenter neither consolidates nor replaces the node
#     cluster-autoscaler.kubernetes.io/scale-down-disabled: "true"  Cluster Autoscaler does not remove it
#     forecast-scheduler.io/kept-until: TIME                        the mark is ours, and it is renewed before this time
#
# A node that bears one of the first two without the third is kept by somebody else: it is never touched.

_UNREADABLE: Final = 1.0


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None
    deletion_timestamp: str = ""


class MarkedNodeJson(msgspec.Struct):
    """What of a Node matters here."""

    metadata: _Metadata

    @property
    def annotations(self) -> Mapping[str, str]:
        """Return its annotations, none as an empty mapping."""
        return self.metadata.annotations or {}


def kept_until(annotations: Mapping[str, str]) -> float:
    """The end of our mark in unix seconds; 0 = there is none. One that cannot be read has ended long ago."""
    text = annotations.get(KEPT_UNTIL)
    if text is None:
        return 0.0
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return _UNREADABLE
    return max(moment.timestamp(), _UNREADABLE) if moment.tzinfo is not None else _UNREADABLE


def is_foreign(node: MarkedNodeJson) -> bool:
    """Whether somebody else keeps the node."""
    return KEPT_UNTIL not in node.annotations and any(key in node.annotations for key in _KEPT)


def marking(node: MarkedNodeJson, until: float) -> bytes | None:
    """The merge patch that marks a node until a moment, or renews its mark; None = it must not be marked."""
    if is_foreign(node) or node.metadata.deletion_timestamp:
        return None
    text = datetime.fromtimestamp(int(until), UTC).isoformat().replace("+00:00", "Z")
    return _patch(node, {**_KEPT, KEPT_UNTIL: text})


def unmarking(node: MarkedNodeJson) -> bytes | None:
    """The merge patch that removes our mark; None = there is none. What is not as we wrote it stays."""
    if KEPT_UNTIL not in node.annotations:
        return None
    ours = [key for key, value in _KEPT.items() if node.annotations.get(key) == value]
    return _patch(node, dict.fromkeys([*ours, KEPT_UNTIL]))


def _patch(node: MarkedNodeJson, annotations: Mapping[str, str | None]) -> bytes:
    version = node.metadata.resource_version
    return msgspec.json.encode({"metadata": {"resourceVersion": version, "annotations": annotations}})
