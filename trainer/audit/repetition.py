"""Do the days of a service resemble each other?

    relative error = min over lag in (1 day, 7 days) of mean |y[t] - y[t - lag]|  /  mean |y[t] - level[t]|

level[t] is the mean of the seven days before. It is the relative MAE of Hyndman & Koehler (2006, "Another look at
measures of forecast accuracy", 3.3) of the better seasonal naive forecast over the mean. Independent noise has sqrt(2):
below 1 the time of day says something. The strength of seasonality (Hyndman & Athanasopoulos, FPP3, 4.3) measures the
same within the sample, where four weeks of pure noise already have 1/4.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from base.arrays import AnyFloats, Bools, Floats
from forecast.calendar import SLOTS_PER_DAY
from forecast.quantiles import nan_quantile
from forecast.resources import RESOURCES
from trainer.audit.finding import AuditEvidence, Finding, FindingKind, service_finding, service_total
from trainer.history.cleaning import CleaningCause

DAYS_NEEDED: Final = 14

LEAST_ROUGHNESS: Final = 0.25
"""Mean distance to the level, as a share of it, below which a service is so even that its level is a good forecast."""

MOST_PEAK_SPREAD: Final = 3.0
"""0.95 quantile of the daily peaks over their median. A bound that holds is then three times a usual day's peak."""

_LEAST_COMPARED: Final = 7 * SLOTS_PER_DAY // 2


def relative_error(total: AnyFloats) -> tuple[Floats, Floats]:
    """The relative error of each service, and its roughness, mean |y - level| / mean y: (n_services,) each; NaN =
    fewer than half of seven days can be compared, or it is always the same (relative error).

    total : (n_services, n_days, 48), NaN = not measured
    """
    n_services, n_days = total.shape[:2]
    if n_days < DAYS_NEEDED:
        return np.full(n_services, np.nan), np.full(n_services, np.nan)
    known = np.isfinite(total)
    sums = np.cumsum(np.where(known, total, 0.0).sum(axis=2, dtype=np.float64), axis=1)
    counts = np.cumsum(known.sum(axis=2), axis=1)
    # Of the seven days before each day from the eighth on: (n_services, n_days - 7).
    first = np.zeros((n_services, 1))
    sums, counts = np.concatenate([first, sums], axis=1), np.concatenate([first, counts], axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        level = (sums[:, 7:-1] - sums[:, :-8]) / (counts[:, 7:-1] - counts[:, :-8])
        now, yesterday, last_week = total[:, 7:], total[:, 6:-1], total[:, :-7]
        errors = [np.abs(now - other) for other in (yesterday, last_week, level[:, :, None])]
        compared = np.isfinite(errors[0]) & np.isfinite(errors[1]) & np.isfinite(errors[2])
        n_compared = compared.sum(axis=(1, 2))
        enough = n_compared >= _LEAST_COMPARED
        of_yesterday, of_week, of_level, used = (
            np.where(compared, values, 0.0).sum(axis=(1, 2)) for values in (*errors, now)
        )
        relative = np.where(enough & (of_level > 0), np.minimum(of_yesterday, of_week) / of_level, np.nan)
        return relative, np.where(enough & (used > 0), of_level / used, np.nan)


def peak_spread(total: AnyFloats) -> Floats:
    """0.95 quantile over median of the daily peaks: (n_services,); NaN = fewer than seven days with half their slots,
    or the median is 0."""
    known = np.isfinite(total)
    peaks = np.where(known, total, -np.inf).max(axis=2)
    peaks = np.where(known.sum(axis=2) >= SLOTS_PER_DAY // 2, peaks, np.nan)  # (n_services, n_days)
    middle, high = nan_quantile(peaks, 0.5), nan_quantile(peaks, 0.95)
    usable = (np.isfinite(peaks).sum(axis=1) >= 7) & (middle > 0)
    return np.where(usable, high / np.where(usable, middle, 1.0), np.nan)


def never_repeats(evidence: AuditEvidence) -> Finding | None:
    """Finds services whose load swings, and not by the time of day."""
    of_resources = [relative_error(service_total(evidence.recent, r)) for r in range(len(RESOURCES))]
    relative, roughness = (np.stack(values, axis=1) for values in zip(*of_resources, strict=True))
    with np.errstate(invalid="ignore"):
        touched = (relative >= 1) & (roughness >= LEAST_ROUGHNESS) & _served(evidence)[:, None]
    return service_finding(
        FindingKind.NEVER_REPEATS,
        evidence,
        touched,
        what="{n}: the same half hour of yesterday or last week forecasts them no better than the mean of the week",
        advice="a forecast by the time of day cannot help here: keep requests of these services at what they need "
        "(forecast-scheduler requests --history DIR shows the risk), or start their work at fixed times, as a CronJob",
        detail=lambda s, r: f"error {relative[s, r]:.2f} x that of the mean",
    )


def uneven_peaks(evidence: AuditEvidence) -> Finding | None:
    """Finds services with rare days far above the others."""
    spread = np.stack([peak_spread(service_total(evidence.recent, r)) for r in range(len(RESOURCES))], axis=1)
    with np.errstate(invalid="ignore"):
        touched = (spread >= MOST_PEAK_SPREAD) & _served(evidence)[:, None]
    return service_finding(
        FindingKind.UNEVEN_PEAKS,
        evidence,
        touched,
        what=f"{{n}}: the peak of one day in twenty is {MOST_PEAK_SPREAD:g} or more times a usual day's",
        advice="their 95 % bounds must be far above a usual day: find what runs on the days of the peaks (backups, "
        "imports, releases) and spread it over hours or days",
        detail=lambda s, r: f"daily peaks: 0.95 quantile {spread[s, r]:.1f} x the median",
    )


def one_off_owners(evidence: AuditEvidence) -> Finding | None:
    """Owners that ran once under generated names, and the groups as which they are forecast."""
    n_owners = evidence.report.total(CleaningCause.ONE_OFF)
    is_group = np.array([service.is_group for service in evidence.history.services], dtype=np.bool_)
    runs = evidence.history.runs
    longest = float(runs.seconds[is_group[runs.service]].max(initial=0.0))
    found = service_finding(
        FindingKind.ONE_OFF_OWNERS,
        evidence,
        np.repeat(is_group[:, None], len(RESOURCES), axis=1),
        what="",
        advice="nothing has to be done: what they bring is expected of their nodes by the hour. Where some are no work "
        "that comes again, give them a namespace of their own",
        detail=lambda s, _: f"{int((runs.service == s).sum()):,} pods in {evidence.history.n_days} days",
    )
    if found is None:
        return None
    shares = ", ".join(
        f"{100 * share:.0f} % of {resource.name}"
        for resource, share in zip(RESOURCES, found.load_share, strict=True)
        if np.isfinite(share)
    )
    n_groups, n_services = int(is_group.sum()), len(is_group)
    return replace(
        found,
        what=f"{n_owners:,} of {n_services - n_groups + n_owners:,} services ran for less than "
        f"{'an hour' if longest <= 3600 else 'a day'} and never again: {shares}; they are forecast as "
        f"{n_groups:,} group{'s' if n_groups > 1 else ''}",
    )


def _served(evidence: AuditEvidence) -> Bools:
    """Services whose days are forecast by the time of day: of Job owners the runs are."""
    return np.array([not service.runs_to_completion for service in evidence.history.services], dtype=np.bool_)
