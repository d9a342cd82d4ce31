"""Services that history does not know yet, or hardly knows.

A service of three days has no last Saturday. It *borrows* the days it lacks: the shape of similar services
(its namespace where that holds enough of them, the cluster elsewhere), scaled to the level it has shown itself,
and that level shrunk towards what similar services really use per requested unit. While its level still climbs, as
after a launch, its own days say less and the request says more, and its days are lifted to the level expected now. The
predictors then see an ordinary history in which every day of the service's own displaces a borrowed one.

A pod of a Job owner uses what its work takes, at whatever time it runs. It borrows no shape: the days before its first
run and after its last take the mean of its own runs, and requests only say something while none of its pods was
measured.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Ints
from forecast.calendar import SLOTS_PER_DAY, Days, DayType
from forecast.resources import CPU, MEMORY, RESOURCES
from forecast.service_key import ServiceKey

BORROWED_DAYS = 28
"""No predictor needs more than four weeks, so no older days are made up."""

ESTABLISHED_DAYS = 7
"""Days of its own from which on a service is known well enough to be an example for others."""

_GROUP_MINIMUM = 3
_PRIOR_DAYS = 0.5
"""The request-based level counts as half a day of evidence: real usage is soon better than any request."""

_DOUBT_PER_GROWTH = 30.0
"""How many times more it counts for each unit of logarithmic growth from the days before to the last."""


@dataclass(frozen=True, slots=True)
class Borrowed:
    """History with borrowed days filled in.

    usage    : (n_services, n_resources, n_days, 48)
    own_days : (n_services, n_resources) days of its own
    young    : (n_services, n_resources) whether it borrowed
    level_error : (n_services, n_resources) standard error of a young service's level, as a share of it; else 0
    """

    usage: Floats
    own_days: Floats
    young: Bools
    level_error: Floats


def request_units(requests: AnyFloats) -> Floats:
    """The request a resource is measured against, memory in bytes, the others in cores: (n_services, n_resources)."""
    unit = np.repeat(requests[:, :1].astype(np.float64), len(RESOURCES), axis=1)
    unit[:, MEMORY] = requests[:, 1]
    return np.where(unit > 0, unit, np.nan)


def request_ratios(usage: AnyFloats, requests: AnyFloats, days: Days, is_job_owner: Bools | None = None) -> Floats:
    """Return what services really use per requested unit, per day type and slot: (n_resources, 4, 48); NaN = unknown.

    The median over services: a mean would follow the few that request next to nothing. Services in their first week do
    not count where there are others, their launch may not be over. Neither do Job owners (n_services,): their pods are
    busy all the time that they are there, and there only at night.
    """
    if is_job_owner is not None and np.isfinite(usage[~is_job_owner]).any():
        usage, requests = usage[~is_job_owner], requests[~is_job_owner]
    own_days = np.isfinite(usage).mean(axis=3).sum(axis=2)  # (n_services, n_resources)
    established = own_days >= min(ESTABLISHED_DAYS, usage.shape[2])
    usage = np.where((established | ~established.any(axis=0))[:, :, None, None], usage, np.nan)
    unit = request_units(requests)[:, :, None, None]
    ratio = np.full((usage.shape[1], len(DayType), SLOTS_PER_DAY), np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # resources that are not measured
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

    A service that was never measured is taken at its request; without a known one, at what pods use in the middle of
    CPU and memory.

    usage    : (n_services, n_resources, n_days, 48) NaN = not measured
    requests : (n_services, 2)
    ratios   : (n_resources, 4, 48) from `request_ratios`
    """
    filled = np.array(usage, dtype=np.float64)
    measured = np.isfinite(filled)
    is_job_owner = np.array([service.runs_to_completion for service in services], dtype=np.bool_)
    own_days = np.where(
        is_job_owner[:, None], measured.any(axis=3).sum(axis=2), measured.mean(axis=3).sum(axis=2)
    )  # (n_services, n_resources)
    n_days = filled.shape[2]
    first = np.where(own_days > 0, measured.any(axis=3).argmax(axis=2), n_days)  # (n_services, n_resources)
    # Only young ones borrow: a service with a week of its own and an earlier gap is known well enough.
    young = (first > max(0, n_days - BORROWED_DAYS)) & (own_days < BORROWED_DAYS)
    units = request_units(requests)
    level_error = np.zeros(own_days.shape)
    for resource in range(filled.shape[1]):
        rows = np.flatnonzero(young[:, resource] & ~is_job_owner)
        if not len(rows) and not is_job_owner.any():
            continue
        established = (own_days[:, resource] >= min(ESTABLISHED_DAYS, n_days)) & ~is_job_owner
        prior_error = _error_of_requests(filled[established, resource], units[established, resource])
        if is_job_owner.any():
            filled[is_job_owner, resource] = _around_runs(filled[is_job_owner, resource], units[is_job_owner, resource])
            doubt = prior_error * _PRIOR_DAYS / (own_days[:, resource] + _PRIOR_DAYS)
            level_error[:, resource] = np.where(is_job_owner & young[:, resource], doubt, 0.0)
        if not len(rows):
            continue
        expected = _expected_level(units[:, resource], ratios[resource])
        if resource in (CPU, MEMORY):
            # Of a pod of which neither use nor request is known: as another. It runs, so it needs some of both.
            typical = _median_level(filled[established, resource])
            expected = np.where(np.isfinite(expected) | (own_days[:, resource] > 0), expected, typical)
        shapes = _shapes(filled[:, resource], established, services, rows)
        shown = [
            _shown_level(filled[row, resource], shape, float(own_days[row, resource]))
            for row, shape in zip(rows, shapes, strict=True)
        ]
        levels, weights = _levels(
            np.array([level for level, _ in shown]),
            np.array([doubt for _, doubt in shown]),
            own_days[rows, resource],
            expected[rows],
            prior_error,
        )
        for row, shape, level, weight in zip(rows, shapes, levels, weights, strict=True):
            if not np.isfinite(level):
                continue
            level_error[row, resource] = (1 - weight) * prior_error
            if own_days[row, resource] < ESTABLISHED_DAYS:
                filled[row, resource] = _at_level(filled[row, resource], shape, level)
            lent = slice(max(0, n_days - BORROWED_DAYS), n_days)
            own = filled[row, resource, lent]
            before = np.arange(n_days)[lent, None] <= first[row, resource]
            filled[row, resource, lent] = np.where(before & ~np.isfinite(own), level * shape[lent], own)
    return Borrowed(filled, own_days, young, level_error)


def _around_runs(usage: Floats, unit: Floats) -> Floats:
    """Usage of Job owners with the recent days before their first and after their last run at the level of their runs.

    Without a run that was measured, at the request as Job owners usually use theirs.

    usage : (n_owners, n_days, 48) of one resource
    unit  : (n_owners,) the request it is measured against, NaN = unknown
    """
    n_days = usage.shape[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # owners that were not measured
        recent, ever = (np.asarray(np.nanmean(u, axis=(1, 2))) for u in (usage[:, -BORROWED_DAYS:], usage))
        level = np.where(np.isfinite(recent), recent, ever)
        level = np.where(np.isfinite(level), level, unit * np.nanmedian(level / unit))
    own: Bools = np.any(np.isfinite(usage), axis=2)  # (n_owners, n_days)
    first = np.where(own.any(axis=1), own.argmax(axis=1), n_days)[:, None]
    last = np.where(own.any(axis=1), n_days - 1 - np.argmax(own[:, ::-1], axis=1), -1)[:, None]
    day = np.arange(n_days)
    lent = (day >= n_days - BORROWED_DAYS) & ((day <= first) | (day > last))
    return np.where(lent[..., None] & ~np.isfinite(usage), level[:, None, None], usage)


def _mean_shape(usage: Floats) -> Floats:
    """Curve of a group, every member divided by its own mean: (n_days, 48), mean about 1."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        scale = np.nanmean(usage, axis=(1, 2), keepdims=True)
        shape = np.nanmean(np.where(scale > 0, usage / np.where(scale > 0, scale, 1.0), np.nan), axis=0)
    return np.where(np.isfinite(shape), shape, 1.0)


def _expected_level(unit: Floats, ratio: AnyFloats) -> Floats:
    """Mean usage that requests suggest, NaN where nothing does: (n_services,)."""
    return unit * np.nanmean(ratio) if np.isfinite(ratio).any() else np.full(len(unit), np.nan)


def _median_level(usage: Floats) -> float:
    """Mean usage of a pod of the middle one of some services, (n_services, n_days, 48); NaN = there are none."""
    return float(np.median(np.nanmean(usage, axis=(1, 2)))) if len(usage) else np.nan


def _error_of_requests(usage: Floats, unit: Floats) -> float:
    """How far requests mislead, measured on services that are known: std of log(usage / request), at most 1."""
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        ratio = np.log(np.nanmean(usage, axis=(1, 2)) / unit)
    ratio = ratio[np.isfinite(ratio)]
    return float(min(1.0, np.std(ratio))) if len(ratio) >= _GROUP_MINIMUM else 0.5


def _daily_levels(usage: Floats, shape: Floats) -> Floats:
    """Level of each day over a shape, NaN for days of which less than a quarter was measured: (n_days,)."""
    measured = np.isfinite(usage)
    total, of_shape = np.where(measured, usage, 0.0).sum(axis=1), np.where(measured, shape, 0.0).sum(axis=1)
    known = (measured.mean(axis=1) >= 0.25) & (of_shape > 0)
    return np.where(known, total / np.where(of_shape > 0, of_shape, 1.0), np.nan)


def _shapes(usage: Floats, established: Bools, services: tuple[ServiceKey, ...], rows: Ints) -> list[Floats]:
    """The shape each young service borrows, (n_days, 48): its namespace's, or the cluster's. usage: one resource's."""
    by_namespace: dict[str, Floats] = {}
    for namespace in {services[row].namespace for row in rows}:
        members = np.array([service.namespace == namespace for service in services])
        group = established & members
        if group.sum() < _GROUP_MINIMUM:
            group = established
        by_namespace[namespace] = _mean_shape(usage[group]) if group.any() else np.ones(usage.shape[1:])
    return [by_namespace[services[row].namespace] for row in rows]


def _shown_level(usage: Floats, shape: Floats, own_days: float) -> tuple[float, float]:
    """Scale of a shape that a service has shown, NaN without a day, and the weight of doubt about it, in days.

    usage, shape : (n_days, 48)
    """
    levels = _daily_levels(usage, shape)
    levels = levels[np.isfinite(levels) & (levels > 0)]
    if not len(levels):
        return (0.0 if np.isfinite(usage).any() else np.nan), 0.0
    if own_days >= ESTABLISHED_DAYS:
        return float(levels.mean()), 0.0
    before = float(np.median(levels[:-1])) if len(levels) > 1 else float(levels[-1])
    growth = max(0.0, float(np.log(levels[-1] / before)))
    return float(levels[-1]), _PRIOR_DAYS * (1 + _DOUBT_PER_GROWTH * growth)


def _levels(
    shown: Floats, doubt: Floats, own_days: Floats, expected: Floats, request_error: float
) -> tuple[Floats, Floats]:
    """Levels of the young services of one resource and the weight of their own days in them, both (n_young,).

        log level = log shown + (1 - weight) gap,   weight = own days / (own days + doubt)

    The gap is log(expected / shown). Of services launched together it says how far the launch still has to go, which is
    common to them, and how far each one's request misleads, which is not: so only as much of a service's deviation
    from the mean gap counts as the gaps vary beyond the error of requests.

    expected      : what requests suggest, NaN = nothing
    request_error : standard deviation of log(usage / request) of established services
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.log(expected / shown)
    known = np.isfinite(gap)
    gap = np.where(known, gap, 0.0)
    if known.sum() >= _GROUP_MINIMUM:
        mean, variance = float(gap[known].mean()), float(gap[known].var())
        own_share = max(0.0, variance - request_error**2) / variance if variance > 0 else 0.0
        gap = mean + own_share * (gap - mean)
    weight = np.where(known, own_days / np.maximum(own_days + doubt, 1e-9), 1.0)
    levels = np.where(known, shown * np.exp((1 - weight) * gap), shown)
    never_seen = ~np.isfinite(shown)
    return np.where(never_seen, expected, levels), np.where(never_seen, 0.0, weight)


def _at_level(usage: Floats, shape: Floats, level: float) -> Floats:
    """A young service's days, each brought to the level: (n_days, 48)."""
    levels = _daily_levels(usage, shape)
    known = np.isfinite(levels) & (levels > 0)
    return usage * np.where(known, level / np.where(known, levels, 1.0), 1.0)[:, None]
