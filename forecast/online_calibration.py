"""Bounds follow what came: whether the 0.95 bounds as issued held against the peaks since, and by how much they
move.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from base.arrays import AnyFloats, Floats, Floats32, Ints
from forecast.bound_scores import FURTHEST, NIGHTS, offsets_of
from forecast.composition import bound_z, plausible_z
from forecast.history import History
from forecast.model import PEAK_QUANTILES, PeakModel
from forecast.node_forecast import node_peaks_of, node_z_needed, rows_among
from forecast.resources import RESOURCES

_MEASURED = 0.5
"""A peak counts if at least this share of its day was measured."""

_LONGEST_DAYS = 7
"""A forecast of days further ahead was replaced before they came, or is too old to be judged by."""


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
    peak, bound = _peaks_and_bounds(history, model, day)
    return np.where(np.isfinite(peak), peak <= bound, np.nan)


def _peaks_and_bounds(history: History, model: PeakModel, day: int) -> tuple[Floats, Floats]:
    """Peaks of a day and what was their bound: (n_services, n_resources) each, NaN where one of them is unknown."""
    row = rows_among(history.services, model.services)
    bound = np.full(history.usage_per_pod.shape[:2], np.nan)
    bound[row >= 0] = model.service_peaks(history.days[day])[row[row >= 0], :, -1]
    usage = history.usage_per_pod[:, :, day]
    counted = (bound > 0) & (np.isfinite(usage).mean(axis=2) >= _MEASURED)
    return np.where(counted, daily_peaks(usage), np.nan), bound


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
    """Where the bounds of tonight go, and the scores that say so (`forecast.bound_scores`).

    services       : (n_services, n_resources) in the unit of each series, see `PeakForecaster.predict`
    node_resources : (n_resources,) standard deviations added to the z of the nodes' bound
    nodes          : (n_nodes, n_resources) the same of each node
    service_scores, node_scores : (n_services or n_nodes, n_resources, 28) as in `PeakModel`
    """

    services: Floats
    node_resources: Floats
    nodes: Floats
    service_scores: Floats32
    node_scores: Floats32

    def published(self, calibrated: AnyFloats) -> dict[str, Any]:
        """Arrays of the model, by name.

        calibrated : (n_resources, n_quantiles) z of the nodes as the past says, before anything is moved
        """
        moved = np.array(calibrated, dtype=np.float64)
        moved[:, -1] += self.node_resources
        node_z = plausible_z(moved, PEAK_QUANTILES)
        of_nodes = bound_z(calibrated[:, -1] + self.nodes, node_z, PEAK_QUANTILES)
        return {
            "node_z": node_z.astype(np.float32),
            "node_bound_z": of_nodes.astype(np.float32),
            "node_offset": (of_nodes - calibrated[:, -1]).astype(np.float32),
            "node_scores": self.node_scores,
            "service_scores": self.service_scores,
        }


def next_offsets(history: History, previous: PeakModel | None) -> BoundOffsets:
    """The offsets of tonight's bounds, by the scores of those that were issued before.

    history  : whole days; those from `previous.first_day` on were not known when its bounds were issued
    previous : the model that was in use; None = the first night
    """
    services = np.full((len(history.services), len(RESOURCES), NIGHTS), np.nan)
    nodes = np.full((len(history.nodes), len(RESOURCES), NIGHTS), np.nan)
    if previous is not None:
        service, node = rows_among(history.services, previous.services), rows_among(history.nodes, previous.nodes)
        services, nodes = _of_rows(previous.service_scores, service), _of_rows(previous.node_scores, node)
        for i, day in enumerate(history.days):
            if 0 <= (day - previous.first_day).days < _LONGEST_DAYS:
                services = _with_night(services, _service_scores(history, previous, i, service))
                nodes = _with_night(nodes, _node_scores(history, previous, i, node))
    node_resources, of_nodes = offsets_of(nodes)
    return BoundOffsets(
        services=offsets_of(services)[1],
        node_resources=node_resources,
        nodes=of_nodes,
        service_scores=services.astype(np.float32),
        node_scores=nodes.astype(np.float32),
    )


def _service_scores(history: History, model: PeakModel, day: int, row: Ints) -> Floats:
    """Offsets at which the bounds of services would have met the peaks of a day: (n_services, n_resources)."""
    peak, bound = _peaks_and_bounds(history, model, day)
    with np.errstate(invalid="ignore", divide="ignore"):
        beyond = np.log(peak / bound) / _of_rows(model.service_unit, row)
    return beyond + _of_rows(model.service_offset, row)


def _node_scores(history: History, model: PeakModel, day: int, row: Ints) -> Floats:
    """The same of the nodes: (n_nodes, n_resources)."""
    beyond = node_z_needed(model, history, history.days[day]) - _of_rows(model.node_bound_z, row)
    return beyond + _of_rows(model.node_offset, row)


def _of_rows(table: AnyFloats, row: Ints) -> Floats:
    """(n_rows, ...) of a model's table, NaN where the row is -1."""
    found = np.full((len(row), *table.shape[1:]), np.nan)
    found[row >= 0] = table[row[row >= 0]]
    return found


def _with_night(scores: Floats, night: Floats) -> Floats:
    """The scores with those of one more night, without the oldest."""
    return np.concatenate([scores[..., 1:], np.clip(night, -FURTHEST, FURTHEST)[..., None]], axis=-1)
