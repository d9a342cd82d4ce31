"""What the advisor asks of the API server: bodies of patches, without I/O. The UID in each is a precondition: a later
pod of the same name is left alone.

    nominate : status.nominatedNodeName, which kube-scheduler tries before all other nodes (PreferNominatedNode,
               KEP-1923; evaluateNominatedNode in pkg/scheduler/schedule_one.go). KEP-5278, as narrowed in 1.35, means
               the field for kube-scheduler alone and keeps no other client from writing it: followed_advice.py asks
               whether it is still heeded
    release  : our gate goes (placement/gate_removal.py); what was advised, or why nothing was, comes with it
    withdraw : the nomination goes, if the pod has not changed since it was read

Nomination and release are two requests: a write to the pod keeps the old status, and a write to the status the old spec
(podStrategy and podStatusStrategy, PrepareForUpdate in pkg/registry/core/pod/strategy.go).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from kube.objects.objects import PodInfo
from placement.decisions.decision import Advice
from placement.gate_exemptions import ADVICE
from placement.preferred_nodes import PREFERRED
from scorer.highest_peak import bound_share


@dataclass(frozen=True, slots=True)
class PodLook:
    """What a look at a pod says.

    node      : that it is bound to, '' = none
    nominated : status.nominatedNodeName
    is_tried  : kube-scheduler has found no place for it, and says so in its condition PodScheduled
    """

    version: str
    node: str
    nominated: str
    is_gated: bool
    is_tried: bool


def advice_note(advice: Advice | None, because: str = "", *, nominated: str = "", mode: str = "") -> str:
    """Return the text of the annotation.

    because   : why there is no advice; nominated: node that is named all the same
    mode      : how the pod was advised, '' = by a nomination
    """
    if advice is None or advice.best is None:
        found: dict[str, Any] = {"node": nominated or None, "because": because}
        return msgspec.json.encode(found | ({"mode": mode} if mode else {})).decode()
    said: dict[str, Any] = {"node": advice.best}
    if (peak := advice.peak()) is not None and peak.share is not None:
        bound = bound_share(peak)
        said["expected_peak"] = {
            "resource": peak.resource,
            "share": round(peak.share, 4),
            "upper_bound": None if bound is None else round(bound, 4),
            "at": peak.at.isoformat(),
        }
    if advice.runner_up is not None:
        said["runner_up"] = advice.runner_up
    if advice.model_version is not None:
        said["model"] = advice.model_version
    if mode:
        said["mode"] = mode
    return msgspec.json.encode(said).decode()


def own_terms(body: bytes) -> list[Any]:
    """Return terms of preferred node affinity from the answer to a GET of a pod. Raises msgspec.DecodeError."""
    affinity = msgspec.json.decode(body, type=_Pod).spec.affinity
    node_affinity = None if affinity is None else affinity.node_affinity
    return list(node_affinity.preferred or ()) if node_affinity is not None else []


def withdraw_body(pod: PodInfo, version: str) -> bytes:
    """Return a merge patch of the status. version: resourceVersion of the pod when its nomination was read."""
    metadata = {"uid": pod.uid, "resourceVersion": version}
    return msgspec.json.encode({"metadata": metadata, "status": {"nominatedNodeName": None}})


def pending_pod(body: bytes) -> PodLook:
    """Read the answer to a GET of a pod. Raises msgspec.DecodeError."""
    pod = msgspec.json.decode(body, type=_Pod)
    conditions = pod.status.conditions or ()
    tried = (one for one in conditions if one.type == "PodScheduled" and one.status == "False")
    return PodLook(
        version=pod.metadata.resource_version,
        node=pod.spec.node_name or "",
        nominated=pod.status.nominated_node_name or "",
        is_gated=any(gate.name == ADVICE for gate in pod.spec.scheduling_gates or ()),
        is_tried=any(one.reason != "SchedulingGated" for one in tried),
    )


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Gate(msgspec.Struct):
    name: str = ""


class _NodeAffinity(msgspec.Struct):
    preferred: list[Any] | None = msgspec.field(default=None, name=PREFERRED)


class _Affinity(msgspec.Struct, rename="camel"):
    node_affinity: _NodeAffinity | None = None


class _Spec(msgspec.Struct, rename="camel"):
    affinity: _Affinity | None = None
    node_name: str | None = None
    scheduling_gates: list[_Gate] | None = None


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""
    reason: str | None = None


class _PodStatus(msgspec.Struct, rename="camel"):
    nominated_node_name: str | None = None
    conditions: list[_Condition] | None = None


class _Pod(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)
