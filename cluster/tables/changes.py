"""What happened to the tables of a ClusterState, one record each, in the order in which it took effect.

A listener that starts from `ClusterState.seats()` and from then on subtracts `before` and adds `after` of every
PodChange (`one_by_one`) holds the same sums as a rebuild.

Rows and service indexes mean what they meant at that moment: one that is given up may be used again later in the same
list, and by the time the list is read the ClusterState knows only the last meaning.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import repeat

import numpy as np

from base.arrays import Floats, Ints
from kube.decoding.jobs import JobInfo
from kube.objects.bulk_records import bulk_records
from kube.objects.objects import PodInfo


@dataclass(frozen=True, slots=True)
class Seat:
    """A pod that is bound and not finished.

    node    : row of its node
    service : index of its service
    weight  : 1 = counts in the forecast; 0 = about to go, being replaced, or part of the node's base load
    """

    node: int
    service: int
    weight: float


@dataclass(frozen=True, slots=True)
class Seats:
    """All seats as arrays, (n_seats,) each, in no particular order."""

    node: Ints
    service: Ints
    weight: Floats

    @classmethod
    def of(cls, seats: Collection[Seat]) -> Seats:
        """From one record each."""
        return cls(
            node=np.fromiter((seat.node for seat in seats), dtype=np.int64, count=len(seats)),
            service=np.fromiter((seat.service for seat in seats), dtype=np.int64, count=len(seats)),
            weight=np.fromiter((seat.weight for seat in seats), dtype=np.float64, count=len(seats)),
        )


@dataclass(frozen=True, slots=True)
class PodChange:
    """A pod came, changed or went. pod: as it is now, or was last. before == after: its seat is the same."""

    pod: PodInfo
    before: Seat | None
    after: Seat | None


@dataclass(frozen=True, slots=True)
class PodsSeated:
    """Pods that waited, all alike (pod_shape.py) and of one weight, were assumed to be bound, each to the node of its
    seat.

    pods, seats : as they are now, in the order in which they took their seats
    each        : the same pod by pod, made once for all readers that gain nothing from pods that are alike
    """

    pods: tuple[PodInfo, ...]
    seats: tuple[Seat, ...]
    each: tuple[PodChange, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        columns = {"pod": self.pods, "before": repeat(None), "after": self.seats}
        object.__setattr__(self, "each", tuple(bulk_records(PodChange, len(self.pods), **columns)))


@dataclass(frozen=True, slots=True)
class JobChange:
    """A Job came or changed. before: None = it was not there."""

    job: JobInfo
    before: JobInfo | None


@dataclass(frozen=True, slots=True)
class NodeAdded:
    """A row is in use from now on, by a Node object or because a pod names the node."""

    row: int


@dataclass(frozen=True, slots=True)
class NodeChanged:
    """The Node object of a row came, changed or went."""

    row: int


@dataclass(frozen=True, slots=True)
class NodeRemoved:
    """A row is free: neither a Node object nor a pod is left."""

    row: int


@dataclass(frozen=True, slots=True)
class ServiceAdded:
    """An index stands for a service from now on; it may have stood for another one before, which has no pods."""

    service: int


Change = PodChange | PodsSeated | JobChange | NodeAdded | NodeChanged | NodeRemoved | ServiceAdded


def one_by_one(changes: Sequence[Change]) -> Sequence[Change]:
    """Return the same changes, those of many pods at once split pod by pod."""
    for change in changes:
        if isinstance(change, PodsSeated):
            break
    else:
        return changes  # nearly always, and a dozen readers ask for each event of the watch
    if len(changes) == 1:
        return change.each
    return [one for change in changes for one in (change.each if isinstance(change, PodsSeated) else (change,))]
