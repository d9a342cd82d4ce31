"""A Reservation as the API server has it, and the stand-in that holds its room in the tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from cluster.held_rooms import HeldRoom
from kube.objects.constraints import LabelSelector
from kube.objects.objects import PodInfo

API_VERSION: Final = "forecast-scheduler.io/v1alpha1"
KIND: Final = "Reservation"
PATH: Final = f"/apis/{API_VERSION}/reservations"

HIGHEST_PRIORITY: Final = 2**31 - 1
"""No pod has more, so that a stand-in on its node is no victim of any."""


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
