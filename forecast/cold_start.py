"""Services that history does not know yet, or hardly knows.

A service of three days has no last Saturday. It *borrows* the days it lacks: the shape of similar services
(its namespace where that holds enough of them, the cluster elsewhere), scaled to the level it has shown itself,
and that level shrunk towards what similar services really use per requested unit. The predictors then see an
ordinary history in which every day of the service's own displaces a borrowed one.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from forecast.arrays import AnyFloats, Bools, Floats
from forecast.calendar import SLOTS_PER_DAY, Days, DayType
from forecast.resources import MEMORY, RESOURCES
from forecast.service_key import ServiceKey

__all__ = ["BORROWED_DAYS", "Borrowed", "borrow_history", "request_ratios"]

BORROWED_DAYS = 28
"""No predictor needs more than four weeks, so no older days are made up."""

_ESTABLISHED_DAYS = 7
_GROUP_MINIMUM = 3
_PRIOR_DAYS = 0.5
"""The request-based level counts as half a day of evidence: real usage is soon better than any request."""


@dataclass(frozen=True, slots=True)
class Borrowed:
    """History with borrowed days filled in.

    usage    : (n_services, n_resources, n_days, 48)
    own_days : (n_services, n_resources) days of its own
    young    : (n_services, n_resources) whether it borrowed
    """

    usage: Floats
    own_days: Floats
    young: Bools


def request_units(requests: AnyFloats) -> Floats:
    """The request a resource is measured against, memory in bytes, the others in cores: (n_services, n_resources)."""
    unit = np.repeat(requests[:, :1].astype(np.float64), len(RESOURCES), axis=1)
    unit[:, MEMORY] = requests[:, 1]
    return np.where(unit > 0, unit, np.nan)


def request_ratios(usage: AnyFloats, requests: AnyFloats, days: Days) -> Floats:
    """What services really use per requested unit, per day type and slot: (n_resources, 4, 48); NaN = nobody knows.

    The median over services: a mean would follow the few that request next to nothing.
    """
    unit = request_units(requests)[:, :, None, None]
    ratio = np.full((usage.shape[1], len(DayType), SLOTS_PER_DAY), np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # resources nobody measures
        overall = np.nanmedian(np.nanmean(usage, axis=2) / unit[:, :, 0], axis=0)  # (n_resources, 48)
        for kind in DayType:
            of_kind = days.day_type == kind
            if kind is DayType.HOLIDAY and not of_kind.any():
                of_kind = days.day_type == DayType.SUNDAY
            if of_kind.any():
                ratio[:, kind] = np.nanmedian(np.nanmean(usage[:, :, of_kind], axis=2) / unit[:, :, 0], axis=0)
    return np.where(np.isfinite(ratio), ratio, overall[:, None])


def borrow_history(
    usage: AnyFloats, requests: AnyFloats, services: tuple[ServiceKey, ...], days: Days, ratios: AnyFloats
) -> Borrowed:
    """Fill the days before a young service's first own day. Gaps later in its life stay gaps.

    usage    : (n_services, n_resources, n_days, 48) NaN = not measured
    requests : (n_services, 2)
    ratios   : (n_resources, 4, 48) from `request_ratios`
    """
    filled = np.array(usage, dtype=np.float64)
    measured = np.isfinite(filled)
    own_days = measured.mean(axis=3).sum(axis=2)  # (n_services, n_resources)
    n_days = filled.shape[2]
    first = np.where(own_days > 0, measured.any(axis=3).argmax(axis=2), n_days)  # (n_services, n_resources)
    # Only young ones borrow: a service with a week of its own and an earlier gap is known well enough.
    young = (first > max(0, n_days - BORROWED_DAYS)) & (own_days < BORROWED_DAYS)
    units = request_units(requests)
    for resource in range(filled.shape[1]):
        rows = np.flatnonzero(young[:, resource])
        if not len(rows):
            continue
        established = own_days[:, resource] >= min(_ESTABLISHED_DAYS, n_days)
        established &= ~young[:, resource] | (own_days[:, resource] >= _ESTABLISHED_DAYS)
        for namespace in sorted({services[row].namespace for row in rows}):
            members = np.array([service.namespace == namespace for service in services])
            group = established & members
            if group.sum() < _GROUP_MINIMUM:
                group = established
            of_namespace = rows[members[rows]]
            shape = _mean_shape(filled[group, resource]) if group.any() else np.ones(filled.shape[2:])
            expected = (
                units[of_namespace, resource] * np.nanmean(ratios[resource])
                if np.isfinite(ratios[resource]).any()
                else None
            )
            level = _level(filled[of_namespace, resource], shape, own_days[of_namespace, resource], expected)
            for row, scale in zip(of_namespace, level, strict=True):
                if np.isfinite(scale):
                    lent = slice(max(0, n_days - BORROWED_DAYS), first[row, resource] + 1)
                    own = filled[row, resource, lent]
                    filled[row, resource, lent] = np.where(np.isfinite(own), own, scale * shape[lent])
    return Borrowed(filled, own_days, young)


def _mean_shape(usage: Floats) -> Floats:
    """Curve of a group, every member divided by its own mean: (n_days, 48), mean about 1."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        scale = np.nanmean(usage, axis=(1, 2), keepdims=True)
        shape = np.nanmean(np.where(scale > 0, usage / np.where(scale > 0, scale, 1.0), np.nan), axis=0)
    return np.where(np.isfinite(shape), shape, 1.0)


def _level(usage: Floats, shape: Floats, own_days: Floats, expected: Floats | None) -> Floats:
    """Scale of a shape: what the service has shown, shrunk in logarithms towards what its requests suggest. (n,)"""
    measured = np.isfinite(usage)
    with np.errstate(invalid="ignore", divide="ignore"):
        shown = np.where(measured, usage, 0).sum(axis=(1, 2)) / np.where(measured, shape, 0).sum(axis=(1, 2))
    shown = np.where(own_days > 0, shown, np.nan)
    if expected is None:
        return shown
    weight = own_days / (own_days + _PRIOR_DAYS)
    both = np.exp(weight * np.log(np.maximum(shown, 1e-12)) + (1 - weight) * np.log(np.maximum(expected, 1e-12)))
    return np.where(np.isfinite(both), both, np.where(np.isfinite(shown), shown, expected))
