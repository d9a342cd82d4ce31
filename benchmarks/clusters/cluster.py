"""A cluster with its usage in memory, between the traces it was built from and the history directory it becomes.

Everything is on a regular half-hour grid in UTC. This module only holds the data; `history_directory` writes and
reads it, `pods` and `placement` make it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from base.arrays import Bools, Floats, Floats32, Ints
from forecast.event_calendar import Event
from forecast.resources import RESOURCES

SLOT_MINUTES = 30
SLOTS_PER_DAY = 48
N_RESOURCES = len(RESOURCES)


@dataclass(frozen=True, slots=True)
class Service:
    """The top owner of pods. Requests are those of one pod: CPU cores and memory bytes."""

    namespace: str
    kind: str
    name: str
    request_cpu_cores: float
    request_memory_bytes: float
    autoscaled: bool = False

    @property
    def owner(self) -> str:
        """Kind/name, as in the `service` column of a history."""
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class Cluster:
    """Services, their pods with lives and usage, and the nodes they sit on.

    start       : UTC instant of slot 0
    service_of  : (n_pods,) index into services
    first, end  : (n_pods,) slots in which the pod lives, end exclusive
    node_of     : (n_pods,) index into nodes
    usage       : (n_pods, n_resources, n_slots) base units; NaN outside the pod's life and where not measured
    base        : (n_nodes, n_resources, n_slots) what the node uses beside its pods; NaN = node not measured
    capacity    : (n_nodes, n_resources) NaN = not a limit
    allocatable : (n_nodes, 2) CPU cores and memory bytes
    events      : what a user's calendar says of single days
    moved       : services that had another name: (old, new), each Namespace/Kind/name
    """

    time_zone: str
    holiday_country: str | None
    start: pd.Timestamp
    services: tuple[Service, ...]
    pods: tuple[str, ...]
    service_of: Ints
    first: Ints
    end: Ints
    node_of: Ints
    usage: Floats32
    nodes: tuple[str, ...]
    base: Floats32
    capacity: Floats
    allocatable: Floats
    comment: str | None = None
    events: tuple[Event, ...] = ()
    moved: tuple[tuple[str, str], ...] = ()

    @property
    def n_slots(self) -> int:
        """Length of the history in half hours."""
        return int(self.usage.shape[2])

    def alive(self) -> Bools:
        """(n_pods, n_slots): whether the pod exists in the slot."""
        slots = np.arange(self.n_slots)
        return (slots >= self.first[:, None]) & (slots < self.end[:, None])

    def requests(self) -> Floats:
        """(n_services, 2) request of one pod: CPU cores, memory bytes."""
        return np.array([[s.request_cpu_cores, s.request_memory_bytes] for s in self.services])

    def node_totals(self) -> Floats32:
        """(n_nodes, n_resources, n_slots): base + sum of pods; a resource that is not measured on nodes stays NaN."""
        totals = self.base.astype(np.float64)
        for pod, node in enumerate(self.node_of):
            totals[node] += np.nan_to_num(self.usage[pod])
        return totals.astype(np.float32)

    def timestamps(self) -> pd.DatetimeIndex:
        """(n_slots,) start of each half hour, UTC."""
        return pd.date_range(self.start, periods=self.n_slots, freq=f"{SLOT_MINUTES}min", unit="ms")
