"""What has to be written into the status of a Reservation, decided from it and from the tables. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from cluster.held_rooms import Taker
from placement.reservations.reservation import Reservation, ReservationPhase

LONGEST_MESSAGE: Final = 512


@dataclass(frozen=True, slots=True)
class Situation:
    """What the tables know of a Reservation.

    taker       : pod that is bound and has taken it; None = no pod has
    is_in_use   : a pod is being bound that takes it
    has_node    : its node is there
    why_waiting : why it has no node, as the last attempt said; '' = none failed
    """

    taker: Taker | None = None
    is_in_use: bool = False
    has_node: bool = True
    why_waiting: str = ""


def status_change(one: Reservation, situation: Situation, now: float) -> Mapping[str, Any] | None:
    """Return what to merge into the status (RFC 7396); None = nothing. now: unix seconds."""
    if one.phase.is_final:
        return None
    if one.phase is ReservationPhase.AVAILABLE and (pod := situation.taker) is not None:
        return {
            "phase": ReservationPhase.TAKEN,
            "takenBy": {"name": pod.name, "uid": pod.uid},
            "message": f"pod {pod.name} has it",
            "devices": None,
        }
    if situation.is_in_use:
        return None  # the room is the pod's or free again in a moment
    if now >= one.until:
        return {
            "phase": ReservationPhase.EXPIRED,
            "message": "its lifetime is over, and no pod took it",
            "devices": None,
        }
    if one.problem:
        message = one.problem[:LONGEST_MESSAGE]
        if one.phase is ReservationPhase.PENDING and one.message == message:
            return None
        waits = {"phase": ReservationPhase.PENDING, "node": None, "since": None, "devices": None}
        return {**waits, "message": message}
    if one.phase is ReservationPhase.AVAILABLE and not situation.has_node:
        message = f"node {one.node} is gone: it waits for another one"
        return {
            "phase": ReservationPhase.PENDING,
            "node": None,
            "since": None,
            "devices": None,
            "message": message[:LONGEST_MESSAGE],
        }
    why = situation.why_waiting[:LONGEST_MESSAGE]
    if one.phase is ReservationPhase.PENDING and why and why != one.message:
        return {"phase": ReservationPhase.PENDING, "message": why}
    return None


def moment(at: float) -> str:
    """Unix seconds as RFC 3339 in UTC, whole seconds, as the API server writes times."""
    return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
