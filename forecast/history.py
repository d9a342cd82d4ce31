"""What a fit may look at: usage, replicas and placements on the local half-hour grid, with days from before services
were here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from datetime import date, timedelta

import numpy as np

from base.arrays import Bools, Floats, Floats32, Ints
from base.errors import NotEnoughHistory
from forecast.calendar import SLOTS_PER_DAY, Calendar, Days
from forecast.event_calendar import Event
from forecast.job_runs import JobRuns
from forecast.limit_hits import LimitHits
from forecast.service_key import ServiceKey

# Days of services from before they were here: under an older name, or in another cluster.
#
# They are kept apart from what was measured here. Only a fit looks at them: losses of a backtest and curves of a replay
# are of days on which a service really ran here. `moved_services` says how a fit takes them; trainer.history reads
# them.


@dataclass(frozen=True, slots=True)
class EarlierDays:
    """What moved services did on consecutive local days; NaN from the first half hour that they were measured here.

    service        : (n_moved,) index into the services of the history, each once
    usage_per_pod  : (n_moved, n_resources, n_days, 48) mean of one pod, base units
    replicas       : (n_moved, n_days, 48) pods present
    pod_variance   : (n_moved, n_resources, n_days, 48) variance between pods
    daily_requests : (n_moved, 2, n_days) mean request of one pod, CPU cores and memory bytes
    """

    days: tuple[date, ...]
    service: Ints
    usage_per_pod: Floats32
    replicas: Floats32
    pod_variance: Floats32
    daily_requests: Floats

    def of_services(self, services: Bools) -> EarlierDays | None:
        """The days of some services, whose rows are counted anew: (n_services,) which are kept.

        None if none of these moved.
        """
        kept = services[self.service]
        if not kept.any():
            return None
        row = np.cumsum(services) - 1
        return EarlierDays(
            days=self.days,
            service=row[self.service[kept]],
            usage_per_pod=self.usage_per_pod[kept],
            replicas=self.replicas[kept],
            pod_variance=self.pod_variance[kept],
            daily_requests=self.daily_requests[kept],
        )

    def between(self, first: date, end: date) -> EarlierDays | None:
        """The days from `first` up to, not including, `end`; None if there are none."""
        kept = [index for index, day in enumerate(self.days) if first <= day < end]
        if not kept:
            return None
        span = slice(kept[0], kept[-1] + 1)
        return EarlierDays(
            days=self.days[span],
            service=self.service,
            usage_per_pod=self.usage_per_pod[:, :, span],
            replicas=self.replicas[:, span],
            pod_variance=self.pod_variance[:, :, span],
            daily_requests=self.daily_requests[:, :, span],
        )

    def arrays(self) -> Iterator[np.ndarray]:
        """All tables, in a fixed order."""
        for field in fields(self):
            if isinstance(value := getattr(self, field.name), np.ndarray):
                yield value


@dataclass(frozen=True, slots=True)
class Placements:
    """Runs of pods on nodes: pod p of service s sat on node n from slot `first` up to, not including, slot `end`.

    All arrays are (n_runs,) integers. Slots count from midnight of the history's first day: day * 48 + slot of the day.
    A pod that moved has a run for each node.
    """

    pod: Ints
    service: Ints
    node: Ints
    first: Ints
    end: Ints

    def between(self, first: int, end: int) -> Placements:
        """The runs that overlap slots first..end, clipped to them and counted from `first`."""
        keep = (self.first < end) & (self.end > first)
        return Placements(
            pod=self.pod[keep],
            service=self.service[keep],
            node=self.node[keep],
            first=np.maximum(self.first[keep], first) - first,
            end=np.minimum(self.end[keep], end) - first,
        )

    def of(self, services: Bools) -> Placements:
        """The runs of some services, whose rows stay as they are: (n_services,) whether its runs are kept."""
        keep = services[self.service]
        if keep.all():
            return self
        return Placements(self.pod[keep], self.service[keep], self.node[keep], self.first[keep], self.end[keep])

    def counts(self, n_services: int, n_nodes: int, slot: int) -> Ints:
        """Pods of each service on each node during one slot: (n_nodes, n_services)."""
        now = (self.first <= slot) & (self.end > slot)
        table = np.zeros((n_nodes, n_services), dtype=np.int64)
        np.add.at(table, (self.node[now], self.service[now]), 1)
        return table


@dataclass(frozen=True, slots=True)
class History:
    """Usage of services and nodes over consecutive local days.

    usage_per_pod  : (n_services, n_resources, n_days, 48) mean of one pod, base units; NaN = not measured
    replicas       : (n_services, n_days, 48) pods present, averaged over the slot; 0 = none, NaN = no data in the slot
    pod_variance   : (n_services, n_resources, n_days, 48) variance between the pods of a service; NaN = fewer than two
    node_usage     : (n_nodes, n_resources, n_days, 48) whole-node usage; NaN = not measured
    node_pod_usage : (n_nodes, n_resources, n_days, 48) sum over the node's measured pods; 0 = no pods, NaN = pods of
                     which none was measured
    capacity       : (n_nodes, n_resources) physical capacity as known last; NaN = not a limit
    allocatable    : (n_nodes, 2) CPU cores and memory bytes that requests are held against, as known last
    daily_requests : (n_services, 2, n_days) mean request of one pod as known at the end of each day, CPU cores and
                     memory bytes: over the pods of the last day up to then with a known request; NaN = unknown
    runs           : runs of the pods of Job owners, to the sampling step; `placements` has half hours only
    events         : days that a user expects to differ, past and to come
    earlier        : days of moved services from before they were here; only a fit looks at them
    one_off_usage  : (n_nodes, n_resources, n_days, 48) the part of node_pod_usage that groups of one-off owners have
                     (forecast.one_off_owners); NaN = not known; None = there are no groups
    daily_capacity : (n_nodes, n_resources, n_days) the largest capacity that a node had on each day, where days differ;
                     None = `capacity` on all days
    limit_hits     : half hours in which limits held pods back; None = it was not read
    """

    calendar: Calendar
    days: tuple[date, ...]
    services: tuple[ServiceKey, ...]
    nodes: tuple[str, ...]
    usage_per_pod: Floats32
    replicas: Floats32
    pod_variance: Floats32
    node_usage: Floats32
    node_pod_usage: Floats32
    placements: Placements
    capacity: Floats
    allocatable: Floats
    daily_requests: Floats
    runs: JobRuns = JobRuns.none()  # noqa: RUF009 - frozen
    events: tuple[Event, ...] = ()
    earlier: EarlierDays | None = None
    one_off_usage: Floats32 | None = None
    daily_capacity: Floats | None = None
    limit_hits: LimitHits | None = None

    @property
    def n_days(self) -> int:
        return len(self.days)

    @property
    def requests(self) -> Floats:
        """(n_services, 2) mean request of one pod as known at the end of the last day; NaN = unknown."""
        return self.daily_requests[:, :, -1]

    @property
    def capacity_of_days(self) -> Floats:
        """(n_nodes, n_resources, n_days) capacity that each day is judged by; read only."""
        if self.daily_capacity is not None:
            return self.daily_capacity
        return np.broadcast_to(self.capacity[:, :, None], (*self.capacity.shape, self.n_days))

    def describe_days(self) -> Days:
        return self.calendar.describe(self.days)

    def without(self, services: Bools) -> History:
        """The history as if the pods of some services had not been on its nodes: (n_services,) which are left out.

        Each of their pods is taken off its node by the mean of its service. What was not measured of them stays a part
        of the node.
        """
        kept = ~services
        used = self._usage_on_nodes(services)
        of_groups = services & np.array([service.is_group for service in self.services], dtype=np.bool_)
        runs, row = self.placements.of(kept), np.cumsum(kept) - 1
        one_offs = self.one_off_usage
        if one_offs is not None:
            one_offs = np.maximum(one_offs - self._usage_on_nodes(of_groups), 0.0)
        return replace(
            self,
            services=tuple(service for service, keeps in zip(self.services, kept, strict=True) if keeps),
            usage_per_pod=self.usage_per_pod[kept],
            replicas=self.replicas[kept],
            pod_variance=self.pod_variance[kept],
            node_usage=np.maximum(self.node_usage - used, 0.0),
            node_pod_usage=np.maximum(self.node_pod_usage - used, 0.0),
            placements=replace(runs, service=row[runs.service]),
            daily_requests=self.daily_requests[kept],
            runs=self.runs.of_services(kept),
            earlier=None if self.earlier is None else self.earlier.of_services(kept),
            one_off_usage=one_offs,
            limit_hits=None if self.limit_hits is None else self.limit_hits.of(kept),
        )

    def _usage_on_nodes(self, services: Bools) -> Floats32:
        """What the pods of some services used on each node: like `node_usage`; 0 where it was not measured."""
        used = np.zeros((*self.node_usage.shape[:2], self.n_days * SLOTS_PER_DAY), dtype=np.float32)
        runs = self.placements
        for service in np.flatnonzero(services).tolist():
            rows = np.flatnonzero(runs.service == service)
            nodes, place = np.unique(runs.node[rows], return_inverse=True)
            pods = np.zeros((len(nodes), used.shape[2] + 1), dtype=np.float32)
            np.add.at(pods, (place, runs.first[rows]), 1.0)
            np.add.at(pods, (place, runs.end[rows]), -1.0)
            n_pods = np.cumsum(pods[:, :-1], axis=1)
            for resource, of_pod in enumerate(np.nan_to_num(self.usage_per_pod[service])):
                used[nodes, resource] += n_pods * of_pod.reshape(-1)
        return used.reshape(self.node_usage.shape)

    def digest(self) -> str:
        """SHA-256 over everything in it: which data a model was fitted on, however it was stored."""
        names: tuple[object, ...] = (self.calendar, self.days, self.services, self.nodes)
        names += (self.events,) if self.events else ()
        names += (self.earlier.days,) if self.earlier is not None else ()
        digest = hashlib.sha256(repr(names).encode())
        tables = (self.placements, self.runs) if len(self.runs) else (self.placements,)
        runs = [getattr(table, field.name) for table in tables for field in fields(table)]
        arrays = [value for field in fields(self) if isinstance(value := getattr(self, field.name), np.ndarray)]
        earlier = () if self.earlier is None else self.earlier.arrays()
        hits = () if self.limit_hits is None else self.limit_hits.arrays()
        for array in (*arrays, *runs, *earlier, *hits):
            digest.update(repr((array.shape, array.dtype.str)).encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def before(self, day_index: int, *, keep: int | None = None) -> History:
        """The history known at midnight of day `day_index`: days before it, at most the last `keep` of them.

        Nothing of the days from `day_index` on can be reached through the result; backtests rely on that.
        Services stay in the list even when they have no data yet, so that indices keep their meaning. Capacities are
        those of the last day before; what is allocatable is known as of now only.
        """
        if day_index < 1:
            raise NotEnoughHistory(days=day_index, needed=1, purpose="fit a model")
        start = 0 if keep is None else max(0, day_index - keep)
        span = slice(start, day_index)
        end = self.days[day_index - 1] + timedelta(days=1)
        oldest = date.min if keep is None else end - timedelta(days=keep)
        known_last = day_index == self.n_days or self.daily_capacity is None
        return replace(
            self,
            days=self.days[span],
            usage_per_pod=self.usage_per_pod[:, :, span],
            replicas=self.replicas[:, span],
            pod_variance=self.pod_variance[:, :, span],
            node_usage=self.node_usage[:, :, span],
            node_pod_usage=self.node_pod_usage[:, :, span],
            placements=self.placements.between(start * SLOTS_PER_DAY, day_index * SLOTS_PER_DAY),
            capacity=self.capacity if known_last else self.capacity_of_days[:, :, day_index - 1],
            daily_capacity=None if self.daily_capacity is None else self.daily_capacity[:, :, span],
            daily_requests=self.daily_requests[:, :, span],
            runs=self.runs.between(start, day_index),
            earlier=None if self.earlier is None else self.earlier.between(oldest, end),
            one_off_usage=None if self.one_off_usage is None else self.one_off_usage[:, :, span],
            limit_hits=None if self.limit_hits is None else self.limit_hits.between(start, day_index),
        )


@dataclass(frozen=True, slots=True)
class PodUsage:
    """Single pods over a range of local days, as a replay plays them back.

    pods     : "namespace/name" of each pod
    service  : (n_pods,) index into `services`
    requests : (n_pods, 2) CPU cores and memory bytes; NaN = unknown
    usage    : (n_pods, n_resources, n_days, 48) base units; NaN = not measured
    present  : (n_pods, n_days, 48) share of the slot during which the pod existed, 0..1
    node     : (n_pods,) index into the history's nodes of the last node it was seen on; -1 = none
    row      : (n_pods,) number of the pod in `History.placements`; -1 = it is not in there
    """

    days: tuple[date, ...]
    services: tuple[ServiceKey, ...]
    pods: tuple[str, ...]
    service: Ints
    requests: Floats
    usage: Floats32
    present: Floats32
    node: Ints
    row: Ints
