"""Bounds follow what came: whether the 0.95 bounds as issued held against the peaks since, and by how much they
move.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from base.arrays import AnyFloats, Floats
from forecast.history import History
from forecast.model import PEAK_QUANTILES, PeakModel
from forecast.node_forecast import node_peaks_of, rows_among
from forecast.resources import RESOURCES

_MEASURED = 0.5
"""A peak counts if at least this share of its day was measured."""

INFO = "bound_offsets"
"""Where a model keeps its offsets, in `PeakModel.info`."""

_PEAKS_OF_HALF_TRUST = 20.0

_LONGEST_DAYS = 7
"""A forecast of days further ahead was replaced before they came, or is too old to be judged by."""

_LIMIT = 1.5
SERVICE_GAIN, NODE_GAIN = 1.5, 2.0


def daily_peaks(usage: AnyFloats) -> Floats:
    """Highest half hour of each day, NaN where the day was not measured: (..., n_days, 48) -> (..., n_days)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(np.nanmax(usage, axis=-1), dtype=np.float64)


def service_hits(history: History, model: PeakModel, day: int) -> Floats:
    """Whether each service's peak of a day stayed within the 0.95 bound: (n_services, n_resources).

    1 = it did, 0 = it did not, NaN = unknown.

    day : index into the history's days. Services that the model does not know, or expects nothing of, are NaN.
    """
    row = rows_among(history.services, model.services)
    bound = np.full(history.usage_per_pod.shape[:2], np.nan)
    bound[row >= 0] = model.service_peaks(history.days[day])[row[row >= 0], :, -1]
    usage = history.usage_per_pod[:, :, day]
    counted = (bound > 0) & (np.isfinite(usage).mean(axis=2) >= _MEASURED)
    return np.where(counted, daily_peaks(usage) <= bound, np.nan)


def node_hits(history: History, model: PeakModel, day: int) -> Floats:
    """Whether each node's peak of a day stayed within its 0.95 bound: (n_nodes, n_resources), 1, 0, NaN = unknown.

    The pods are those that really ran that day: what is tested is the forecast of their load, not of placements.
    """
    bound = node_peaks_of(model, history, (history.days[day],))[:, :, 0, -1]
    usage = history.node_usage[:, :, day]
    counted = np.isfinite(bound) & (np.isfinite(usage).mean(axis=2) >= _MEASURED)
    return np.where(counted, daily_peaks(usage) <= bound, np.nan)


@dataclass(frozen=True, slots=True)
class BoundOffsets:
    """services, nodes: (n_resources,); how they enter the bounds say `PeakForecaster.predict` and `of_node_z`."""

    services: Floats
    nodes: Floats

    @classmethod
    def none(cls) -> BoundOffsets:
        """Where no bound was issued yet."""
        return cls(np.zeros(len(RESOURCES)), np.zeros(len(RESOURCES)))

    @classmethod
    def of(cls, info: Mapping[str, Any]) -> BoundOffsets:
        """Those that a model was published with; 0 where it says nothing, or nothing that can be used."""
        known = info.get(INFO)
        known = known if isinstance(known, dict) else {}
        return cls(_numbers(known.get("services")), _numbers(known.get("nodes")))

    def to_info(self) -> dict[str, dict[str, float]]:
        """For `PeakModel.info`, by the names of the resources."""
        names = [resource.name for resource in RESOURCES]
        return {
            "services": dict(zip(names, self.services.round(4).tolist(), strict=True)),
            "nodes": dict(zip(names, self.nodes.round(4).tolist(), strict=True)),
        }

    def with_resource(self, other: BoundOffsets, resource: int) -> BoundOffsets:
        """The same, with those of one resource as `other` has them."""
        services, nodes = self.services.copy(), self.nodes.copy()
        services[resource], nodes[resource] = other.services[resource], other.nodes[resource]
        return BoundOffsets(services, nodes)

    def of_node_z(self, node_z: Floats) -> Floats:
        """node_z (n_resources, n_quantiles) with its bounds, the last quantile, times exp(offset)."""
        moved = node_z.copy()
        moved[:, -1] *= np.exp(self.nodes)
        return moved


def next_offsets(history: History, previous: PeakModel | None) -> BoundOffsets:
    """The offsets of the night before, moved by the days that came since its cut-off.

    history  : whole days; those from `previous.first_day` on were not known when its bounds were issued
    previous : the model that was in use; None = the first night
    """
    if previous is None:
        return BoundOffsets.none()
    offsets = BoundOffsets.of(previous.info)
    since = [i for i, day in enumerate(history.days) if 0 <= (day - previous.first_day).days < _LONGEST_DAYS]
    if not since:
        return offsets
    of_services = np.concatenate([service_hits(history, previous, index) for index in since])
    of_nodes = np.concatenate([node_hits(history, previous, index) for index in since])
    services = offsets.services + SERVICE_GAIN * excess_misses(of_services)
    nodes = offsets.nodes + NODE_GAIN * excess_misses(of_nodes)
    return BoundOffsets(np.clip(services, -_LIMIT, _LIMIT), np.clip(nodes, -_LIMIT, _LIMIT))


def excess_misses(hits: Floats) -> Floats:
    """Misses beyond those that a 0.95 bound allows, less where few were measured: (n_resources,).

    hits : (n, n_resources) 1, 0, NaN = unknown
    """
    counted = np.isfinite(hits).sum(axis=0)
    missed = (hits == 0).sum(axis=0) / np.maximum(counted, 1)
    trust = counted / (counted + _PEAKS_OF_HALF_TRUST)
    return np.asarray(trust * (missed - (1 - PEAK_QUANTILES[-1])), dtype=np.float64)


def _numbers(known: Any) -> Floats:
    known = known if isinstance(known, dict) else {}
    values = [known.get(resource.name, 0.0) for resource in RESOURCES]
    usable = [float(v) if isinstance(v, int | float) and np.isfinite(v) else 0.0 for v in values]
    return np.clip(np.array(usable, dtype=np.float64), -_LIMIT, _LIMIT)
