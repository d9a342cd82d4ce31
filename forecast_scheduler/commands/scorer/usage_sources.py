"""Where the scorer measures usage: a Prometheus server, or a recorded history played as if it were now."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np

from autoscaling.replicas.used_now import PodsNow
from base.arrays import AnyFloats, Floats
from cluster.live.usage import NodeUsage
from forecast.calendar import SLOT_MINUTES
from forecast.history import History
from forecast.resources import RESOURCES
from forecast.service_key import ServiceKey
from trainer.prometheus.live_usage import LiveUsage

_SLOT = timedelta(minutes=SLOT_MINUTES)
_WINDOW = timedelta(minutes=5)
"""What a measurement is taken to be the mean of."""
_HASH = "[a-z0-9]{5,10}"
_POD_NAMES = {
    "Deployment": f"-{_HASH}-[a-z0-9]{{5}}",
    "Rollout": f"-{_HASH}-[a-z0-9]{{5}}",
    "StatefulSet": "-[0-9]+",
    "DaemonSet": "-[a-z0-9]{5}",
    "ReplicaSet": "-[a-z0-9]{5}",
    "Job": "-([0-9]+-)?[a-z0-9]{5}",
    "CronJob": "-[0-9]+-([0-9]+-)?[a-z0-9]{5}",
}


def pods_of_service(service: ServiceKey, pods: Sequence[str]) -> list[str]:
    """Regular expressions, escaped for PromQL, of the pods a service has or had; of unusual owners those it has."""
    suffix = _POD_NAMES.get(service.kind)
    if suffix is not None:
        return [re.escape(service.name).replace("\\", "\\\\") + suffix]
    return [re.escape(pod).replace("\\", "\\\\") for pod in pods] or ["none"]


class PrometheusUsage:
    """A server that is asked; implements cluster.live.usage.UsageSource."""

    def __init__(self, live: LiveUsage, *, clock: Callable[[], float] = time.time) -> None:
        self._live, self._clock = live, clock

    def read(self) -> NodeUsage:
        """Read the usage of all nodes now.

        A node without the time of a sample is not measured any more: rates of a dead exporter live on for a window. If
        the server gives no times at all, samples count as taken now.
        """
        now = self._live.read()
        sampled = now.sampled if np.isfinite(now.sampled).any() else np.full(len(now.nodes), self._clock())
        return NodeUsage(now.nodes, now.usage, sampled)

    def node_history(self, names: Sequence[str], since: datetime, until: datetime) -> Floats:
        """Usage of one node in half hours."""
        return self._live.node_history(names, since, until)

    def service_history(self, service: ServiceKey, pods: Sequence[str], since: datetime, until: datetime) -> Floats:
        """Usage of all pods of a service together in half hours."""
        return self._live.service_history(service.namespace, pods_of_service(service, pods), since, until)

    def pods(self, resource: str, names: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], float]:
        """Usage of some pods now."""
        return self._live.pods_named(resource, names)


class PrometheusPods:
    """Usage of single pods, from a server that is asked; implements autoscaling.replicas.used_now.PodUsageSource."""

    def __init__(
        self, live: LiveUsage, resources: Sequence[str], window_seconds: float, *, clock: Callable[[], float]
    ) -> None:
        self._live, self._resources, self._window, self._clock = live, tuple(resources), window_seconds, clock

    def pods(self) -> PodsNow:
        """Usage of all pods now: one query for each resource."""
        now = self._clock()
        found: dict[tuple[str, str], Floats] = {}
        for row, resource in enumerate(RESOURCES):
            if resource.name in self._resources:
                for pod, value in self._live.pods(resource.name, round(self._window)).items():
                    found.setdefault(pod, np.full(len(RESOURCES), np.nan))[row] = value
        return PodsNow(found, now - self._window / 2)


class RecordedUsage:
    """A history played as if it were now; implements cluster.live.usage.UsageSource."""

    def __init__(self, history: History, *, clock: Callable[[], float]) -> None:
        self._history, self._clock = history, clock
        self._row_of = {node: row for row, node in enumerate(history.nodes)}
        self._service_of = {service: row for row, service in enumerate(history.services)}

    def read(self) -> NodeUsage:
        """Usage of all nodes now: between the middles of two recorded half hours it goes over evenly."""
        now = datetime.fromtimestamp(self._clock(), UTC) - _WINDOW / 2
        before = now - _SLOT / 2
        part = (before.timestamp() / _SLOT.total_seconds()) % 1
        earlier, later = (self._at(self._history.node_usage, moment) for moment in (before, before + _SLOT))
        mixed = (1 - part) * earlier + part * later
        usage = np.where(np.isfinite(mixed), mixed, np.where(np.isfinite(earlier), earlier, later))
        return NodeUsage(self._history.nodes, usage, np.full(len(usage), self._clock()))

    def node_history(self, names: Sequence[str], since: datetime, until: datetime) -> Floats:
        """Usage of one node in half hours."""
        rows = [self._row_of[name] for name in names if name in self._row_of]
        return self._between(self._history.node_usage[rows[0]] if rows else None, since, until)

    def service_history(self, service: ServiceKey, pods: Sequence[str], since: datetime, until: datetime) -> Floats:
        """Usage of all pods of a service together in half hours."""
        row = self._service_of.get(service)
        if row is None:
            return self._between(None, since, until)
        total = self._history.usage_per_pod[row] * self._history.replicas[row]
        return self._between(total, since, until)

    def pods(self, resource: str, names: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], float]:
        """Nothing: a history has the mean pod of a service."""
        return {}

    def _between(self, by_day: AnyFloats | None, since: datetime, until: datetime) -> Floats:
        """(n_resources, n_days, 48) -> (n_resources, n_slots) from `since`."""
        moments = [since + i * _SLOT for i in range(max(0, round((until - since) / _SLOT)))]
        if by_day is None or not moments:
            return np.full((len(RESOURCES), len(moments)), np.nan)
        return np.stack([self._at(by_day, moment) for moment in moments], axis=-1)

    def _at(self, by_day: AnyFloats, moment: datetime) -> Floats:
        """One half hour of (..., n_days, 48): (...), NaN outside the history."""
        day, slot = self._history.calendar.day_and_slot(moment)
        index = (day - self._history.days[0]).days
        if not 0 <= index < self._history.n_days:
            return np.full(by_day.shape[:-2], np.nan)
        return np.asarray(by_day[..., index, slot], dtype=np.float64)
