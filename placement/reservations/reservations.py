"""All Reservations that the API server has, in step with the room that the tables hold for them; with their metrics.

    watch --Reservations--> AssumingCluster: rooms that are held, and stand-ins that wait for a node

Every process that has tables has one of these. Only the process that places them has those in its tables that wait.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from cluster.assuming_cluster import AssumingCluster
from cluster.held_rooms import HeldRoom
from kube.client.kubernetes_contract import Subscription
from kube.objects.objects import PodInfo
from placement.reservations.reservation import Reservation, ReservationPhase
from placement.reservations.watched_reservations import WATCHED_RESERVATIONS


class Reservations:
    """Implements OptionalSink. Written by one thread, and read by any."""

    def __init__(
        self,
        changing: Callable[[], AbstractContextManager[AssumingCluster]],
        *,
        clock: Callable[[], float],
        default_name: str = "",
        places: Collection[str] = (),
    ) -> None:
        """
        changing     : LiveTables.changing
        clock        : unix seconds
        default_name : schedulerName of Reservations that name none
        places       : scheduler names whose Reservations this process places
        """
        self._changing, self._clock = changing, clock
        self._default_name, self._places = default_name, frozenset(places)
        self._all: dict[str, Reservation] = {}
        self.is_installed = False

    def subscription(self) -> Subscription[Reservation]:
        """Return what has to be followed."""
        return Subscription(WATCHED_RESERVATIONS, self)

    def replace(self, objects: Sequence[Reservation]) -> None:
        """These are all Reservations."""
        self.is_installed = True
        named = [self._named(one) for one in objects]
        with self._changing() as cluster:
            self._all = {one.uid: one for one in named}
            for one in named:
                self._note_taker(one, cluster)
            rooms = [room for one in named if (room := one.room()) is not None]
            waiting = [stand_in for one in named if (stand_in := self._waiting(one)) is not None]
            cluster.replace_rooms(rooms, waiting)

    def absent(self) -> None:
        """The definition is not installed."""
        self.replace(())
        self.is_installed = False

    def put(self, obj: Reservation) -> None:
        """A Reservation is new or has changed."""
        one = self._named(obj)
        with self._changing() as cluster:
            self._all[one.uid] = one
            self._note_taker(one, cluster)
            room: HeldRoom | None = one.room()
            stand_in = self._waiting(one)
            if room is not None:
                cluster.hold_room(room)
            elif stand_in is not None:
                cluster.put_stand_in(stand_in)
            else:
                cluster.drop_room(one.uid)

    def delete(self, obj: Reservation) -> None:
        """A Reservation is gone: its room is free at once."""
        with self._changing() as cluster:
            self._all.pop(obj.uid, None)
            cluster.drop_room(obj.uid)

    def get(self, uid: str) -> Reservation | None:
        """Return a Reservation by its UID."""
        return self._all.get(uid)

    def all(self) -> tuple[Reservation, ...]:
        """Return all Reservations; under the lock of the tables."""
        return tuple(self._all.values())

    def by_phase(self) -> Mapping[str, int]:
        """Return how many there are of each phase, 0 included. For any thread."""
        counts = Counter(one.phase for one in list(self._all.values()))
        return {phase.value: counts[phase] for phase in ReservationPhase}

    @staticmethod
    def _note_taker(one: Reservation, cluster: AssumingCluster) -> None:
        """The pod of the status takes no other room, also where it does not say itself which it has."""
        if one.taken_by:
            cluster.rooms.serve(one.taken_by)

    def _named(self, one: Reservation) -> Reservation:
        name = one.shape.scheduler_name or self._default_name
        return replace(one, shape=replace(one.shape, scheduler_name=name))

    def _waiting(self, one: Reservation) -> PodInfo | None:
        """Return the stand-in that this process has to find a node for; None = none."""
        is_due = not one.problem and one.phase is ReservationPhase.PENDING and self._clock() < one.until
        return one.shape if is_due and one.shape.scheduler_name in self._places else None


class ReservationCollector(Collector):
    """Every replica exports the same: what the API server says."""

    def __init__(self, reservations: Reservations) -> None:
        self._reservations = reservations

    def collect(self) -> Iterator[Metric]:
        phases = GaugeMetricFamily("forecast_reservations", "Reservations by phase.", labels=["phase"])
        for phase, n in self._reservations.by_phase().items():
            phases.add_metric([phase], n)
        yield phases
