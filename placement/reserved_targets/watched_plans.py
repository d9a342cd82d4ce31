"""What the parts that place pods read of a RebalancePlan: which nodes are kept for the pods of which services.

The definition may not be installed: then there are no plans, and no node is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec
from msgspec import Raw

from forecast.service_key import ServiceKey
from kube.decoding.watched_kinds import Watched
from kube.decoding.wire import Metadata
from kube.decoding.wire_base import Name, Text, Time, Wire
from placement.reserved_targets.move_state import MoveState

LONGEST_SECONDS: Final = 900.0
"""A node is kept no longer for one pod, in case the rebalancer stopped between two steps."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """A node that is kept for the replacement of a pod.

    moving  : UID of the pod that moves, which gets another node only by being replaced
    service : whose next pod gets the node
    until   : unix seconds
    """

    moving: str
    service: ServiceKey
    node: str
    until: float


@dataclass(frozen=True, slots=True)
class PlanReservations:
    """Those of one plan."""

    plan: str
    reservations: tuple[Reservation, ...]


class _MoveJson(Wire):
    namespace: Name
    uid: Text
    service: Text
    to: Name


class _SpecJson(Wire):
    mode: Text = ""
    moves: list[_MoveJson] | None = None


class _EntryJson(Wire):
    uid: Text
    state: MoveState
    since: Time


class _StatusJson(Wire):
    moves: list[_EntryJson] | None = None


class _PlanJson(Wire):
    metadata: Metadata
    spec: _SpecJson | None = None
    status: _StatusJson | None = None


_DECODER: Final = msgspec.json.Decoder(_PlanJson)


def _decode(body: bytes | Raw) -> tuple[PlanReservations, str]:
    json = _DECODER.decode(body)
    spec, status = json.spec or _SpecJson(), json.status or _StatusJson()
    entries = {one.uid: one for one in status.moves or () if one.state.reserves_target}
    reservations = tuple(
        Reservation(
            moving=move.uid,
            service=ServiceKey.from_columns(move.namespace, move.service),
            node=move.to,
            until=entry.since.timestamp() + LONGEST_SECONDS,
        )
        for move in (spec.moves or () if spec.mode == "on" else ())
        if (entry := entries.get(move.uid)) is not None
    )
    return PlanReservations(json.metadata.name, reservations), json.metadata.resource_version or ""


WATCHED_PLANS: Final = Watched(
    "rebalanceplans",
    "RebalancePlan",
    "/apis/forecast-scheduler.io/v1alpha1/rebalanceplans",
    _decode,
    optional=True,
)
