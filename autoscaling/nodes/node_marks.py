"""The mark of a node: three annotations, written and removed together in one patch on the version that was read.

    karpenter.sh/do-not-disrupt: "true"                           Karpenter neither consolidates nor replaces the node
    cluster-autoscaler.kubernetes.io/scale-down-disabled: "true"  Cluster Autoscaler does not remove it
    forecast-scheduler.io/kept-until: TIME                        the mark is ours, and it is renewed before this time

A node that bears one of the first two without the third is kept by somebody else: it is never touched.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec

from kube.objects.objects import ANNOTATION_PREFIX

KEPT_UNTIL: Final = f"{ANNOTATION_PREFIX}kept-until"
_KEPT: Final = {
    "karpenter.sh/do-not-disrupt": "true",
    "cluster-autoscaler.kubernetes.io/scale-down-disabled": "true",
}
_UNREADABLE: Final = 1.0

ABOUT_TO_GO: Final = (
    "karpenter.sh/disrupted",
    "ToBeDeletedByClusterAutoscaler",
)
"""Taints by which an autoscaler says that it removes a node. DeletionCandidateOfClusterAutoscaler is none: Cluster
Autoscaler may remove such a node minutes later, and a mark prevents just that."""


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None
    deletion_timestamp: str = ""


class NodeJson(msgspec.Struct):
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


def is_foreign(node: NodeJson) -> bool:
    """Whether somebody else keeps the node."""
    return KEPT_UNTIL not in node.annotations and any(key in node.annotations for key in _KEPT)


def marking(node: NodeJson, until: float) -> bytes | None:
    """The merge patch that marks a node until a moment, or renews its mark; None = it must not be marked."""
    if is_foreign(node) or node.metadata.deletion_timestamp:
        return None
    text = datetime.fromtimestamp(int(until), UTC).isoformat().replace("+00:00", "Z")
    return _patch(node, {**_KEPT, KEPT_UNTIL: text})


def unmarking(node: NodeJson) -> bytes | None:
    """The merge patch that removes our mark; None = there is none. What is not as we wrote it stays."""
    if KEPT_UNTIL not in node.annotations:
        return None
    ours = [key for key, value in _KEPT.items() if node.annotations.get(key) == value]
    return _patch(node, dict.fromkeys([*ours, KEPT_UNTIL]))


def _patch(node: NodeJson, annotations: Mapping[str, str | None]) -> bytes:
    version = node.metadata.resource_version
    return msgspec.json.encode({"metadata": {"resourceVersion": version, "annotations": annotations}})
