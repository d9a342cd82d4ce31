"""A Reservation as the API server has it, the stand-in that holds its room in the tables, and what has to be written
into its status. No I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from cluster.held_rooms import HeldRoom, Taker
from kube.objects.constraints import LabelSelector
from kube.objects.objects import PodInfo

API_VERSION: Final = "forecast-scheduler.io/v1alpha1"
KIND: Final = "Reservation"
PATH: Final = f"/apis/{API_VERSION}/reservations"

HIGHEST_PRIORITY: Final = 2**31 - 1
"""No pod has more, so that a stand-in on its node is no victim of any."""

LONGEST_MESSAGE: Final = 512


class ReservationPhase(StrEnum):
    """
    PENDING   : no node yet
    AVAILABLE : the room is held on its node
    TAKEN     : a pod of its owners has it
    EXPIRED   : its lifetime is over, and no pod took it
    """

    PENDING = "Pending"
    AVAILABLE = "Available"
    TAKEN = "Taken"
    EXPIRED = "Expired"

    @property
    def is_final(self) -> bool:
        """Return whether it holds nothing any more."""
        return self in (ReservationPhase.TAKEN, ReservationPhase.EXPIRED)


@dataclass(frozen=True, slots=True)
class Reservation:
    """
    version     : resourceVersion, as it was read
    shape       : the stand-in while it waits for a node: requests, constraints, labels and annotations
    only_node   : spec.node; '' = any
    until       : unix seconds when it expires
    node, since : of the status; since: unix seconds from which the room is held, 0 = it is not
    devices     : annotations that say which cards the room has
    taken_by    : UID of the pod that has taken it, by the status; '' = none
    problem     : what of its spec cannot be read: it holds no room, and waits for no node; '' = nothing
    """

    uid: str
    namespace: str
    name: str
    version: str
    shape: PodInfo
    owners: LabelSelector
    only_node: str
    until: float
    phase: ReservationPhase = ReservationPhase.PENDING
    node: str = ""
    since: float = 0.0
    message: str = ""
    devices: Mapping[str, str] = field(default_factory=dict)
    taken_by: str = ""
    problem: str = ""

    def room(self) -> HeldRoom | None:
        """Return the room on its node; None = it holds none."""
        if self.problem or self.phase is not ReservationPhase.AVAILABLE or not self.node:
            return None
        stand_in = replace(
            self.shape,
            node=self.node,
            priority=HIGHEST_PRIORITY,
            annotations={**self.shape.annotations, **self.devices},
        )
        return HeldRoom(stand_in, self.owners, self.since, self.until)


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
