"""The published model and its only reader: scorer, replay and backtest go through `PeakModel` alone.

What is backtested is what is scored: there is no second path from the arrays to a forecast.
`artefact` and `registry` store these arrays; `fit` makes them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Floats32, Ints
from forecast.bound_scores import NIGHTS
from forecast.calendar import SLOTS_PER_DAY, Calendar, DayType
from forecast.resources import MEMORY, RESOURCES
from forecast.scenarios import SCENARIO_DAYS, SCENARIO_WEIGHTS, dilate
from forecast.service_key import ServiceKey

DATED_DAYS = 14
"""Days from the cut-off that have a profile of their own; later days are read from their day type's profile."""

PEAK_QUANTILES = (0.5, 0.95)
"""Quantiles of a day's peak that are published: what to expect, and the bound."""

HALF_HOUR_LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
"""Quantiles of single half hours that are published of the first day."""

NOT_MEASURED = "not_measured"
"""Where `PeakModel.info` names services of which no pod was measured: by resource (CPU, memory), a list of names."""


@dataclass(frozen=True, slots=True)
class PeakModel:
    """What every service will use, slot by slot, and how wrong that may be. Arrays are float32, usage in base units.

    calendar           : time zone and holidays the slots mean
    first_day          : first local day of the dated profiles = the day of the cut-off
    trained_days       : whole local days of history behind the model
    services, nodes    : names of the leading axes
    usage_dated        : (n_services, n_resources, 14, 48) expected usage of one pod; NaN = unknown
    usage_quantiles    : (n_services, n_resources, n_levels, 48) quantiles of each half hour of the first day at
                         HALF_HOUR_LEVELS, of the mean of a service's pods
    scenario_deviation : (n_services, n_resources, n_scenarios, 7, 48) last week at today's level - usage_dated
    usage_day_type     : (n_services, n_resources, 4, 48) the same for any later day of a type
    replicas_dated     : (n_services, 14, 48) expected pods; of Job owners 0 in hours without any, and fractions where
                         a pod runs for a part of the half hour or not on each such day
    replicas_day_type  : (n_services, 4, 48)
    reference_replicas : (n_services,) the replica count that usage of one pod refers to; of Job owners, whose usage of
                         one pod refers to no count, the most pods that are usual in any half hour
    autoscaled         : (n_services,) 1 = the replica count follows load; 0 for Job owners
    peak_factor        : (n_services, n_resources, 14, n_quantiles) quantile of the day's peak / highest usage_dated
    own_std            : (n_services, n_resources, 48) error of a single pod
    shared_std         : (n_services, n_resources, 48) error common to the replicas of the service
    cluster_std        : (n_resources,) error common to all, as a share of the load
    node_base          : (n_nodes, n_resources, 4, 48) usage besides scheduled pods
    node_base_std      : (n_nodes, n_resources, 48)
    node_z             : (n_resources, n_quantiles) standard deviations from a node's mean curve to its daily peak
    node_bound_z       : (n_nodes, n_resources) the same to the 0.95 bound of each node; others have that of `node_z`
    node_capacity      : (n_nodes, n_resources) physical capacity as known or assumed at the fit; NaN = neither
    node_capacity_assumed : (n_nodes, n_resources) 1 = node_capacity was learned from what nodes of this kind sustained
                         (forecast.assumed_capacity); 0 = it is known, or there is none
    request_ratio      : (n_resources, 4, 48) usage per requested unit (memory: per byte, the rest: per core) of
                         services without history, as similar services use it
    predictor_weights  : (n_services, n_resources, n_predictors) how curves were blended; the next fit starts there
    peak_weight        : (n_services, n_resources, 4, 48) what one more pod added to a node in the last weeks; NaN =
                         nothing known (forecast.peak_weights)
    peak_weight_error  : (n_services, n_resources) its standard error as a share of it; NaN = unknown
    peak_weight_prior  : (n_services, n_resources) mean usage of a pod believed without any look at nodes; NaN = nothing
    identified         : (n_services, n_resources) 1 = the weight is known to 20 %; 0 = it leans on its prior
    correction         : (n_services, n_resources) what nodes feel of a pod / what it is measured to use; 1 = the same
    per_pod_cost       : (n_resources, 4, 48) what every pod costs its node besides
    run_seconds        : (n_services, 2) seconds that one pod of a Job owner runs from its start to its end: median and
                         0.95 quantile, at the resolution of the history's step; NaN = its pods run on and on, or none
                         was seen to end (forecast.run_forecast)
    run_count          : (n_services,) whole runs that run_seconds was learned from; 0 = none
    run_starts         : (n_services, 4, 48) pods expected to start in each half hour by day type; 0 for services whose
                         pods run on and on, and for Job owners of which nothing more is expected
    run_usage          : (n_services, n_resources) mean of one pod of a Job owner while it runs, base units; NaN = not
                         measured, or its pods run on and on
    service_offset     : (n_services, n_resources) how far the 0.95 bound was moved by how those before it held, in
                         units of `service_unit` (forecast.bound_scores); NaN = no bound was issued
    service_unit       : (n_services, n_resources) a log ratio
    service_scores     : (n_services, n_resources, 28) offsets that would have met the peaks of the last nights, the
                         newest last; NaN = none
    node_offset        : (n_nodes, n_resources) the same of the nodes' bounds, in standard deviations
    node_scores        : (n_nodes, n_resources, 28)
    data_digest        : SHA-256 of the history it was fitted on
    info               : facts for people and for the gate, as JSON: chosen predictors, young services, figures
    component_peaks    : name -> (n_services, n_resources, n_quantiles) of the first day, what each part of the peak
                         forecast said alone; known right after a fit, not published
    """

    calendar: Calendar
    first_day: date
    trained_days: int
    services: tuple[ServiceKey, ...]
    nodes: tuple[str, ...]
    usage_dated: Floats32
    usage_quantiles: Floats32
    scenario_deviation: Floats32
    usage_day_type: Floats32
    replicas_dated: Floats32
    replicas_day_type: Floats32
    reference_replicas: Floats32
    autoscaled: Floats32
    peak_factor: Floats32
    own_std: Floats32
    shared_std: Floats32
    cluster_std: Floats32
    node_base: Floats32
    node_base_std: Floats32
    node_z: Floats32
    node_bound_z: Floats32
    node_capacity: Floats32
    node_capacity_assumed: Floats32
    request_ratio: Floats32
    predictor_weights: Floats32
    peak_weight: Floats32
    peak_weight_error: Floats32
    peak_weight_prior: Floats32
    identified: Floats32
    correction: Floats32
    per_pod_cost: Floats32
    run_seconds: Floats32
    run_count: Floats32
    run_starts: Floats32
    run_usage: Floats32
    service_offset: Floats32
    service_unit: Floats32
    service_scores: Floats32
    node_offset: Floats32
    node_scores: Floats32
    data_digest: str = ""
    info: dict[str, Any] = field(default_factory=dict)
    component_peaks: dict[str, Floats] = field(default_factory=dict)

    def of_services(self, rows: Ints) -> PeakModel:
        """The same model knowing only some of its services, in that order; for reading a few of many."""
        by_service = {
            name: getattr(self, name)[rows]
            for name in (
                "usage_dated",
                "usage_quantiles",
                "scenario_deviation",
                "usage_day_type",
                "replicas_dated",
                "replicas_day_type",
                "reference_replicas",
                "autoscaled",
                "peak_factor",
                "own_std",
                "shared_std",
                "predictor_weights",
                "peak_weight",
                "peak_weight_error",
                "peak_weight_prior",
                "identified",
                "correction",
                "run_seconds",
                "run_count",
                "run_starts",
                "run_usage",
                "service_offset",
                "service_unit",
                "service_scores",
            )
        }
        return replace(self, services=tuple(self.services[row] for row in rows.tolist()), **by_service)

    def measured(self, resource: int) -> Bools:
        """(n_services,) whether usage of CPU or memory was measured of any pod, and not only concluded."""
        named = self.info.get(NOT_MEASURED)
        concluded = named.get(RESOURCES[resource].name, ()) if isinstance(named, dict) else ()
        known = np.isfinite(self.usage_day_type[:, resource]).any(axis=(1, 2))
        return np.asarray(known & ~np.isin([str(service) for service in self.services], list(concluded)))

    @property
    def runs_to_completion(self) -> Bools:
        """(n_services,) whether a service is a Job owner, whose pods come by the clock, run for a while and end."""
        return np.array([service.runs_to_completion for service in self.services], dtype=np.bool_)

    def usage(self, days: tuple[date, ...]) -> Floats:
        """Expected usage of one pod on local days: (n_services, n_resources, n_days, 48)."""
        return self._on_days(days, self.usage_dated, self.usage_day_type)

    def half_hour_quantiles(self, day: date) -> Floats:
        """Quantiles of each half hour of a local day at HALF_HOUR_LEVELS: (n_services, n_resources, n_levels, 48).

        Of the mean of a service's pods. Days after the first scatter about their expected curve as the first one does.
        """
        return np.stack([self.usage_at(level, (day,))[:, :, 0] for level in HALF_HOUR_LEVELS], axis=2)

    def usage_at(self, level: float, days: tuple[date, ...]) -> Floats:
        """One quantile of each half hour of local days, as `usage`. level: of HALF_HOUR_LEVELS"""
        first = self.usage_quantiles[:, :, HALF_HOUR_LEVELS.index(level), None].astype(np.float64)
        expected = self.usage((self.first_day, *days))
        change = expected[:, :, 1:] - expected[:, :, :1]
        return np.maximum(first + change, 0.0)

    def usage_on_node(self, days: tuple[date, ...], share: AnyFloats | None = None) -> Floats:
        """What a node feels of one pod: (n_services, n_resources, n_days, 48).

        Usage, corrected where nodes are known to feel more or less of a pod than it is measured to use, and what every
        pod costs its node besides. What is summed over pods is this; service peaks are what a pod itself uses.

        share : (n_services, n_resources) from `load_share`; None = at the reference replica count
        """
        return self.felt(self.usage(days), days, share)

    def felt(self, usage: Floats, days: tuple[date, ...], share: AnyFloats | None = None) -> Floats:
        """The same of another usage of one pod than the expected one. usage: (n_services, n_resources, n_days, 48)"""
        factor = self.correction.astype(np.float64) if share is None else self.correction * share
        return usage * factor[:, :, None, None] + self.cost(days)

    def placement_curves(self, days: tuple[date, ...], share: AnyFloats | None = None) -> tuple[Floats, Floats]:
        """What placement weighs: curves (n_services, n_resources, n_curves, n_days, 48) and their weights (n_curves,).

        What a node feels of one pod, deviating from what is expected as the scenario week did, dilated by a slot. Later
        weeks than the first deviate as the same weekday of it did.

        share : (n_services, n_resources) from `load_share`; None = at the reference replica count
        """
        offsets = [(day - self.first_day).days % SCENARIO_DAYS for day in days]
        deviation = self.scenario_deviation[:, :, :, offsets].astype(np.float64)
        curves = np.maximum(self.usage(days)[:, :, None] + deviation, 0.0)
        over_midnight = dilate(curves.reshape(*curves.shape[:3], -1)).reshape(curves.shape)
        factor = self.correction.astype(np.float64) if share is None else self.correction * share
        felt = over_midnight * factor[:, :, None, None, None] + self.cost(days)[:, None]
        return felt, np.array(SCENARIO_WEIGHTS)

    def replicas(self, days: tuple[date, ...]) -> Floats:
        """Expected pods of each service on local days: (n_services, n_days, 48)."""
        return self._on_days(days, self.replicas_dated, self.replicas_day_type)

    def base(self, days: tuple[date, ...]) -> Floats:
        """Return the expected usage besides pods on local days: (n_nodes, n_resources, n_days, 48)."""
        return self.node_base[:, :, self.calendar.describe(days).day_type].astype(np.float64)

    def service_peaks(self, day: date) -> Floats:
        """Quantiles of the day's peak of one pod: (n_services, n_resources, n_quantiles).

        Peak = highest expected half hour of the day times the calibrated factor; days after the dated ones use the
        factors of the last dated day of their type.
        """
        expected = self.usage((day,))[:, :, 0].max(axis=2)  # (n_services, n_resources)
        offset = (day - self.first_day).days
        if not 0 <= offset < DATED_DAYS:
            dated = self.calendar.describe(self.calendar.horizon(self.first_day, DATED_DAYS)).day_type
            wanted = self.calendar.describe((day,)).day_type[0]
            same = np.flatnonzero(dated == wanted)
            offset = int(same[-1]) if len(same) else DATED_DAYS - 1
        return np.asarray(expected[:, :, None] * self.peak_factor[:, :, offset])

    def z_of_nodes(self) -> Floats:
        """Standard deviations from each node's mean curve to its daily peak: (n_nodes, n_resources, n_quantiles)."""
        z = np.tile(self.node_z.astype(np.float64), (len(self.node_bound_z), 1, 1))
        z[..., -1] = self.node_bound_z
        return z

    def load_share(self, current_replicas: AnyFloats) -> Floats:
        """How usage of one pod changes with the replica count: (n_services, n_resources), a factor.

        Work is shared, so load per pod is total / replicas; memory is what a process needs whatever the others do.
        The count of an autoscaled service follows its load, so its load per pod stays. A pod of a Job owner does work
        of its own, so its load stays as well.

        current_replicas : (n_services,) pods that serve now; 0 or NaN = unknown, taken as the reference
        """
        known = np.nan_to_num(current_replicas) > 0
        share = np.where(known, self.reference_replicas / np.where(known, current_replicas, 1.0), 1.0)
        stays = (self.autoscaled > 0) | self.runs_to_completion | (self.reference_replicas <= 0)
        share = np.where(stays, 1.0, share)
        factor = np.repeat(share[:, None], len(RESOURCES), axis=1)
        factor[:, MEMORY] = 1.0
        return factor

    def usage_from_requests(
        self, request_cpu_cores: float, request_memory_bytes: float, days: tuple[date, ...]
    ) -> Floats:
        """Expected usage of one pod of a service without history: (n_resources, n_days, 48)."""
        unit = np.full(len(RESOURCES), request_cpu_cores)
        unit[MEMORY] = request_memory_bytes
        ratio = self.request_ratio[:, self.calendar.describe(days).day_type]  # (n_resources, n_days, 48)
        return unit[:, None, None] * ratio.astype(np.float64)

    def cost(self, days: tuple[date, ...]) -> Floats:
        """What every pod costs its node on local days: (n_resources, n_days, 48)."""
        return self.per_pod_cost[:, self.calendar.describe(days).day_type].astype(np.float64)

    def _on_days(self, days: tuple[date, ...], dated: Floats32, day_type: Floats32) -> Floats:
        """Dated profiles where there are any, the day type's elsewhere; the day axis is the last but one."""
        types = self.calendar.describe(days).day_type
        out = day_type[..., types, :].astype(np.float64)
        for position, day in enumerate(days):
            offset = (day - self.first_day).days
            if 0 <= offset < DATED_DAYS:
                out[..., position, :] = dated[..., offset, :]
        return out


def no_runs(n_services: int) -> dict[str, Any]:
    """The four `run_*` arrays of a model that knows of no runs, by name."""
    return {
        "run_seconds": np.full((n_services, len(PEAK_QUANTILES)), np.nan, dtype=np.float32),
        "run_count": np.zeros(n_services, dtype=np.float32),
        "run_starts": np.zeros((n_services, len(DayType), SLOTS_PER_DAY), dtype=np.float32),
        "run_usage": np.full((n_services, len(RESOURCES)), np.nan, dtype=np.float32),
    }


def no_scores(n_services: int, node_z: AnyFloats, n_nodes: int) -> dict[str, Any]:
    """What a model has of its bounds' scores if none was issued before it, by name. node_z: as published."""
    unknown = np.full((n_services, len(RESOURCES)), np.nan, dtype=np.float32)
    return {
        "service_offset": unknown,
        "service_unit": unknown,
        "service_scores": np.full((n_services, len(RESOURCES), NIGHTS), np.nan, dtype=np.float32),
        "node_bound_z": np.tile(np.asarray(node_z, dtype=np.float32)[:, -1], (n_nodes, 1)),
        "node_offset": np.zeros((n_nodes, len(RESOURCES)), dtype=np.float32),
        "node_scores": np.full((n_nodes, len(RESOURCES), NIGHTS), np.nan, dtype=np.float32),
    }
