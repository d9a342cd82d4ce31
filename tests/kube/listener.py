"""A listener that knows of a ClusterState only what its changes say, and insists that they fit together."""

from __future__ import annotations

from collections.abc import Sequence

from forecast.service_key import ServiceKey
from kube.tables.changes import Change, NodeAdded, NodeChanged, NodeRemoved, PodChange, Seat, ServiceAdded, one_by_one
from kube.tables.state import ClusterState


class Listener:
    """seats: by pod UID; rows: in use; services: number -> key as it was when the number was given out."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self.seats: dict[str, Seat] = {}
        self.rows: set[int] = set()
        self.services: dict[int, ServiceKey] = {}

    def hear(self, changes: Sequence[Change]) -> None:
        for change in one_by_one(changes):
            match change:
                case PodChange(pod, before, after):
                    assert self.seats.pop(pod.uid, None) == before
                    if after is not None:
                        assert after.node in self.rows
                        assert after.service in self.services
                        self.seats[pod.uid] = after
                case NodeAdded(row):
                    assert row not in self.rows
                    self.rows.add(row)
                case NodeChanged(row):
                    assert row in self.rows
                case NodeRemoved(row):
                    self.rows.remove(row)
                    assert not any(seat.node == row for seat in self.seats.values())
                case ServiceAdded(service):
                    assert not any(seat.service == service for seat in self.seats.values())
                    self.services[service] = self.state.services[service]

    def check(self) -> None:
        """Nothing happened that was not said."""
        assert self.seats == self.state.seat_of
        assert self.rows == set(self.state.row_of.values())
        assert {key: index for index, key in self.services.items()} == self.state.service_of
