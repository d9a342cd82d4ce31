"""What one pod will use over the horizon, by service: read from the model at today's replica counts.

A service the model does not know is taken at its request, as services of its kind use theirs. A pod that is expected to
run for a while only is taken to use its highest level in the half hours of its run, and nothing after it.

What a pod declares (pod_bounds.py) replaces what follows from its requests, resource by resource. Where the model
knows the service it is a floor of the curve: measured usage is believed, and room is kept for what the pod says it will
use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from base.arrays import Bools, Floats, Floats32, Ints
from cluster.predicted.horizon import Horizon
from cluster.predicted.pod_bounds import DeclaredAmounts, Most, bounded_amounts, bounded_requests, declared_amounts
from cluster.predicted.pod_runs import RunHours, RunLevels, slots_of
from cluster.runs.run_times import model_runs
from forecast.calendar import SLOT_MINUTES, SLOTS_PER_DAY
from forecast.model import PeakModel
from forecast.one_off_owners import known_as
from forecast.resources import CPU, MEMORY, RESOURCES
from forecast.scenarios import dilate
from forecast.service_key import ServiceKey
from kube.objects.objects import PodInfo

_SERVICES_AT_ONCE = 256
"""Services read at once: the intermediate arrays of 256 are 20 MB."""


@dataclass(frozen=True, slots=True)
class ProfileKey:
    """Whose curve: of a service the model knows, or of pods of unknown ones with the same requests.

    run      : the half hours in which the pod runs; None = it runs on and on. Requests count for a known service, too,
               where something of a run was never measured
    declared : amounts of the pod's annotation
    most     : cores and bytes beyond which its curve is cut, where what its requests suggest is more than it can use
    """

    service: ServiceKey | None = None
    cpu_cores: float = 0.0
    memory_bytes: float = 0.0
    run: RunHours | None = None
    declared: DeclaredAmounts = ()
    most: tuple[float, float] | None = None


class Profiles:
    """Curves of one pod, base units. row_of: services that the model knows; runs: lengths that it has learned."""

    def __init__(self, model: PeakModel) -> None:
        self.model = model
        self.row_of = {service: row for row, service in enumerate(model.services)}
        self._has_groups = any(service.is_group for service in model.services)
        self._measured: Bools = np.any(np.isfinite(model.usage_day_type), axis=(1, 2, 3))
        self._levels = RunLevels(model)
        self.runs = model_runs(model)
        self._most_per_request = np.nan_to_num(model.request_ratio).max(axis=(1, 2))[[CPU, MEMORY]].tolist()

    def known_as(self, service: ServiceKey) -> ServiceKey | None:
        """What the model calls a service: itself, or the group of owners that it is one of; None = it does not know
        it.
        """
        return known_as(self.row_of, service) if self._has_groups else service if service in self.row_of else None

    def knows(self, service: ServiceKey) -> bool:
        """Whether the model has anything measured of the service."""
        known = self.known_as(service)
        return known is not None and bool(self._measured[self.row_of[known]])

    def is_expected(self, service: ServiceKey) -> bool:
        """Whether nodes' base load has what pods of the service bring: it is one of a group of one-off owners.

        Such a pod counts where others are placed, while it runs. What nodes are predicted to use has it already.
        """
        known = self.known_as(service) if self._has_groups else None
        return known is not None and known.is_group

    def key_of(self, pod: PodInfo, service: ServiceKey, hours: RunHours | None, most: Most) -> ProfileKey:
        """The profile of a pod of the service.

        hours : those in which it runs; None = it runs on and on
        most  : that it can use, see PodBounds
        """
        known = self.known_as(service) if self.knows(service) else None
        declared = bounded_amounts(declared_amounts(pod), most)
        if known is not None and (hours is None or not self.requests_count(known)):
            return ProfileKey(known, run=hours, declared=declared)
        cores, memory = bounded_requests(pod.requests, most)
        of_cores, of_memory = self._most_per_request
        cut = of_cores * cores > most[CPU] or of_memory * memory > most[MEMORY]
        return ProfileKey(known, cores, memory, hours, declared, (most[CPU], most[MEMORY]) if cut else None)

    def autoscaled(self, service: ServiceKey) -> bool:
        """Whether the replica count follows the load."""
        known = self.known_as(service)
        return known is not None and bool(self.model.autoscaled[self.row_of[known]] > 0)

    def placement(self, services: Sequence[ServiceKey], replicas: Floats, days: tuple[date, ...]) -> Floats32:
        """What placement weighs: (n_services, n_resources, n_days * 48), finite. All services must be known.

        replicas : (n_services,) pods that serve now; 0 = as many as the model expects
        """
        blocks = self._blocks(services, replicas)
        # The model has one scenario week.
        return _joined((model.placement_curves(days, share)[0][:, :, 0] for model, share in blocks), len(days))

    def mean(self, services: Sequence[ServiceKey], replicas: Floats, days: tuple[date, ...]) -> Floats32:
        """What a node is expected to feel of one pod: (n_services, n_resources, n_days * 48), finite."""
        blocks = self._blocks(services, replicas)
        return _joined((model.usage_on_node(days, share) for model, share in blocks), len(days))

    def std(self, services: Sequence[ServiceKey], replicas: Floats) -> tuple[Floats32, Floats32]:
        """Error of one pod, and the error its service's pods share: (n_services, n_resources, 48) each."""
        own, shared = [], []
        for model, share in self._blocks(services, replicas):
            felt = (model.correction * share)[:, :, None]
            own.append(np.nan_to_num(model.own_std * felt).astype(np.float32))
            shared.append(np.nan_to_num(model.shared_std * felt).astype(np.float32))
        empty = np.zeros((0, len(self.model.cluster_std), SLOTS_PER_DAY), dtype=np.float32)
        return np.concatenate([empty, *own]), np.concatenate([empty, *shared])

    def mean_from_requests(
        self, cpu_cores: float, memory_bytes: float, days: tuple[date, ...], most: tuple[float, float] | None = None
    ) -> Floats32:
        """The same as `mean` for a pod of an unknown service: (n_resources, n_days * 48). most: as of its key"""
        usage = self.model.usage_from_requests(cpu_cores, memory_bytes, days)
        if most is not None:
            usage[[CPU, MEMORY]] = np.minimum(usage[[CPU, MEMORY]], np.array(most)[:, None, None])
        cost = self.model.per_pod_cost[:, self.model.calendar.describe(days).day_type]
        return (usage + cost).reshape(len(usage), -1).astype(np.float32)

    def mean_of_requests(self, key: ProfileKey, days: tuple[date, ...]) -> Floats32:
        """The same by the requests of a key."""
        return self.mean_from_requests(key.cpu_cores, key.memory_bytes, days, key.most)

    def placement_of_requests(self, key: ProfileKey, days: tuple[date, ...]) -> Floats32:
        """The same as `placement` for a pod of an unknown service: (n_resources, n_days * 48)."""
        return dilate(self.mean_of_requests(key, days)).astype(np.float32)

    def with_declared(self, key: ProfileKey, curve: Floats32, days: tuple[date, ...]) -> Floats32:
        """The curve of one pod, (n_resources, n_days * 48), changed where it is, by what its key declares.

        What every pod costs its node besides is added to it, as to every usage.
        """
        types = self.model.calendar.describe(days).day_type
        for resource, amount in key.declared:
            level = (amount + self.model.per_pod_cost[resource, types]).ravel()
            curve[resource] = level if key.service is None else np.maximum(curve[resource], level)
        return curve

    def requests_count(self, service: ServiceKey) -> bool:
        """Whether something of a known service was never measured, so that a run of it is taken at its requests."""
        return bool(np.isnan(self._levels.of(self.row_of[service]).mean).any())

    def run_level(self, key: ProfileKey) -> Floats:
        """What a node is expected to feel of one pod while it runs: (n_resources,), finite. key: of a run"""
        requested = self._levels.from_requests(key.cpu_cores, key.memory_bytes)
        if key.most is not None:
            requested[[CPU, MEMORY]] = np.minimum(requested[[CPU, MEMORY]], key.most)
        measured = np.full(len(RESOURCES), np.nan)
        if key.service is not None:
            measured = self._levels.of(self.row_of[key.service]).mean
        level = np.where(np.isnan(measured), requested, measured)
        for resource, amount in key.declared:
            said = amount + float(self.model.per_pod_cost[resource].max())
            level[resource] = np.fmax(measured[resource], said)
        return level

    def run_curve(self, key: ProfileKey, days: tuple[date, ...]) -> Floats32:
        """The same half hour by half hour, 0 before and after its run: (n_resources, n_days * 48). key: of a run"""
        curve = np.zeros((len(RESOURCES), len(days) * SLOTS_PER_DAY), dtype=np.float32)
        if key.run is not None:
            curve[:, slots_of(key.run, days)] = self.run_level(key)[:, None]
        return curve

    def mean_of(self, keys: Sequence[ProfileKey], replicas: Floats, days: tuple[date, ...]) -> Floats32:
        """What a node is expected to feel of one pod of each profile: (n_keys, n_resources, n_days * 48)."""
        out = np.zeros((len(keys), len(RESOURCES), len(days) * SLOTS_PER_DAY), dtype=np.float32)
        known = _known(keys)
        out[known] = self.mean(_services(keys), replicas[known], days)
        for i, key in enumerate(keys):
            if key.run is not None:
                out[i] = self.run_curve(key, days)
                continue
            if key.service is None:
                out[i] = self.mean_of_requests(key, days)
            self.with_declared(key, out[i], days)
        return out

    def running(self, keys: Sequence[ProfileKey], days: tuple[date, ...]) -> Floats32 | None:
        """1 where a pod of each profile runs, else 0: (n_keys, n_days * 48); None = all of them run on and on."""
        if all(key.run is None for key in keys):
            return None
        running = np.ones((len(keys), len(days) * SLOTS_PER_DAY), dtype=np.float32)
        for i, key in enumerate(keys):
            if key.run is not None:
                running[i] = 0.0
                running[i, slots_of(key.run, days)] = 1.0
        return running

    def std_of(self, keys: Sequence[ProfileKey], replicas: Floats, day: date) -> tuple[Floats32, Floats32]:
        """Error of one pod, and the one its service's pods share: (n_keys, n_resources, 48) each.

        Of pods of unknown services nothing is known but that it is large: all they are expected to use on the day. What
        they declare is taken as it is. Of runs it is the largest of all half hours, those included in which they do not
        run (see `running`).
        """
        own = np.zeros((len(keys), len(RESOURCES), SLOTS_PER_DAY), dtype=np.float32)
        shared = np.zeros_like(own)
        known = _known(keys)
        own[known], shared[known] = self.std(_services(keys), replicas[known])
        for i, key in enumerate(keys):
            if key.run is not None:
                own_of_run, shared_of_run = self._run_std(key)
                own[i], shared[i] = own_of_run[:, None], shared_of_run[:, None]
            elif key.service is None:
                shared[i] = self.mean_of_requests(key, (day,))
                shared[i, [resource for resource, _ in key.declared]] = 0.0
        return own, shared

    def peaks(self, services: Sequence[ServiceKey], replicas: Floats, day: date) -> Floats:
        """Quantiles of one pod's peak on a day: (n_services, n_resources, n_quantiles); NaN = not measured."""
        blocks = [model.service_peaks(day) * share[:, :, None] for model, share in self._blocks(services, replicas)]
        empty = np.zeros((0, *self.model.peak_factor.shape[1::2]))
        return np.concatenate([empty, *blocks])

    def usage(self, service: ServiceKey, replicas: float, days: tuple[date, ...]) -> Floats:
        """What one pod itself is expected to use: (n_resources, n_days * 48), unknown = 0."""
        ((model, share),) = self._blocks([service], np.array([replicas]))
        return np.asarray(np.nan_to_num(model.usage(days)[0]).reshape(len(RESOURCES), -1) * share[0][:, None])

    def peak_factor(self, service: ServiceKey, days: tuple[date, ...]) -> Floats:
        """Quantiles of each day's peak / its highest expected half hour: (n_resources, n_days, n_quantiles)."""
        model = self.model.of_services(self._rows([service]))
        highest = model.usage(days)[0].max(axis=2)  # (n_resources, n_days)
        peaks = np.stack([model.service_peaks(day)[0] for day in days], axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            factor = peaks / highest[:, :, None]
        return np.where(np.isfinite(factor), factor, 1.0)

    def expected_replicas(self, services: Sequence[ServiceKey], days: tuple[date, ...]) -> Floats:
        """Expected pods: (n_services, n_days * 48)."""
        model = self.model.of_services(self._rows(services))
        return np.nan_to_num(model.replicas(days)).reshape(len(services), len(days) * SLOTS_PER_DAY)

    def total(self, services: Sequence[ServiceKey], days: tuple[date, ...]) -> Floats:
        """What all pods of a service together are expected to use: (n_services, n_resources, n_days * 48), unknown = 0.

        Work is shared, so it does not depend on how many pods there are now; memory is taken at the expected number.
        """
        model = self.model.of_services(self._rows(services))
        total = model.usage(days) * model.replicas(days)[:, None]
        return np.nan_to_num(total).reshape(len(services), len(RESOURCES), len(days) * SLOTS_PER_DAY)

    def total_std(self, services: Sequence[ServiceKey], days: tuple[date, ...]) -> Floats:
        """Its forecast error, errors of single pods and of the service together: as `total`."""
        model = self.model.of_services(self._rows(services))
        n = model.replicas(days)[:, None]  # (n_services, 1, n_days, 48)
        own, shared = (std[:, :, None].astype(np.float64) for std in (model.own_std, model.shared_std))
        std = np.sqrt(n * own**2 + n**2 * shared**2)
        return np.nan_to_num(std).reshape(len(services), len(RESOURCES), len(days) * SLOTS_PER_DAY)

    def expected_starts(self, services: Iterable[ServiceKey], horizon: Horizon, first: float, n_minutes: int) -> Floats:
        """Pods of services that start in the half hour around each minute: (n_minutes,); 0 beyond the horizon.

        first : unix seconds at which the first minute begins; the others follow on the wall clock
        """
        # Several of one group start what the group starts.
        known = {self.known_as(service) for service in services} - {None}
        rows = np.array(sorted(self.row_of[service] for service in known if service is not None), dtype=np.int64)
        types = self.model.calendar.describe(horizon.days).day_type
        starts = self.model.run_starts[rows][:, types].sum(axis=0, dtype=np.float64).reshape(-1)  # (n_slots,)
        slots = np.floor(horizon.position(first) + np.arange(n_minutes) / SLOT_MINUTES).astype(np.int64)
        inside = (slots >= 0) & (slots < len(starts))
        return np.where(inside, starts[np.where(inside, slots, 0)], 0.0)

    def _run_std(self, key: ProfileKey) -> tuple[Floats, Floats]:
        """Error of one pod of a run, and the one that is shared: (n_resources,) each."""
        level = self.run_level(key)
        if key.service is None:
            level[[resource for resource, _ in key.declared]] = 0.0
            return np.zeros_like(level), level
        levels = self._levels.of(self.row_of[key.service])
        return levels.own_std, np.where(np.isnan(levels.mean), level, levels.shared_std)

    def _rows(self, services: Sequence[ServiceKey]) -> Ints:
        known = [self.known_as(service) for service in services]
        return np.array([self.row_of[service] for service in known if service is not None], dtype=np.int64)

    def _blocks(self, services: Sequence[ServiceKey], replicas: Floats) -> Iterator[tuple[PeakModel, Floats]]:
        """The model of a few services at a time, with the share of load that falls to one pod."""
        rows = self._rows(services)
        for start in range(0, len(rows), _SERVICES_AT_ONCE):
            model = self.model.of_services(rows[start : start + _SERVICES_AT_ONCE])
            yield model, model.load_share(replicas[start : start + _SERVICES_AT_ONCE])


def _known(keys: Sequence[ProfileKey]) -> list[int]:
    """Positions of the services whose pods run on and on."""
    return [i for i, key in enumerate(keys) if key.service is not None and key.run is None]


def _services(keys: Sequence[ProfileKey]) -> list[ServiceKey]:
    """The services of `_known`."""
    return [key.service for key in keys if key.service is not None and key.run is None]


def _joined(curves: Iterator[Floats], n_days: int) -> Floats32:
    """(n, n_resources, n_days, 48) pieces -> (n_services, n_resources, n_days * 48), unknown = 0."""
    empty = np.zeros((0, len(RESOURCES), n_days * SLOTS_PER_DAY), dtype=np.float32)
    flat = [np.nan_to_num(part).reshape(*part.shape[:2], n_days * SLOTS_PER_DAY).astype(np.float32) for part in curves]
    return np.concatenate([empty, *flat])
