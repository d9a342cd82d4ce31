"""What the parts that place pods read of a RebalancePlan: the states of a move, and which nodes are kept for the pods
of which services.

The definition may not be installed: then there are no plans, and no node is kept.

The executor writes these states (rebalancer/execution), and parts that place pods read from them which nodes are kept
for replacements.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec
from msgspec import Raw

from forecast.service_key import ServiceKey
from kube.decoding.watched_kinds import Watched
from kube.decoding.wire import Metadata
from kube.decoding.wire_base import Name, Text, Time, Wire

LONGEST_SECONDS: Final = 900.0
"""A node is kept no longer for one pod, in case the rebalancer stopped between two steps."""


class MoveState(StrEnum):
    """The state machine is drawn in rebalancer/execution/next_step.py."""

    PLANNED = "planned"
    SURGING = "surging"
    EVICTING = "evicting"
    EVICTED = "evicted"
    REPLACED = "replaced"
    WITHDRAWING = "withdrawing"
    DONE = "done"
    SKIPPED = "skipped"
    REFUSED = "refused"
    ELSEWHERE = "elsewhere"
    STUCK = "stuck"

    @property
    def is_final(self) -> bool:
        """Return whether the move is over."""
        return self in _FINAL

    @property
    def is_under_way(self) -> bool:
        """Return whether the move has begun and is not over."""
        return self is not MoveState.PLANNED and self not in _FINAL

    @property
    def reserves_target(self) -> bool:
        """Return whether a replacement may still be created, which is to go to the target."""
        return self in _RESERVING


_FINAL: Final = frozenset({MoveState.DONE, MoveState.SKIPPED, MoveState.REFUSED, MoveState.ELSEWHERE, MoveState.STUCK})
_RESERVING: Final = frozenset({MoveState.SURGING, MoveState.EVICTING, MoveState.EVICTED})


@dataclass(frozen=True, slots=True)
class KeptTarget:
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
    reservations: tuple[KeptTarget, ...]


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
        KeptTarget(
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
