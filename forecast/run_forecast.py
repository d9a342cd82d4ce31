"""What the next pods of Job owners will do: when they start, how long they run, and what they use meanwhile.

A CronJob whose pods run from 02:00 to 05:00 loads its node during these three hours and at no other time. Job owners
are services of the kinds Job and CronJob (`ServiceKey.runs_to_completion`).

A CronJob starts what it started on days of the same type, recent days weighing more. A bare Job has run once its pods
have ended, so nothing is expected of it, unless something creates it again and again under the same name.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Ints
from forecast.calendar import SLOTS_PER_DAY, Days, DayType
from forecast.history import History
from forecast.job_runs import JobRuns, estimate
from forecast.resources import RESOURCES

RECENT_DAYS = 28
"""What the pods of Job owners did longer ago says little."""

_HALF_LIFE = 3.0
"""In days of the same type: a schedule counts for half three nights after it was moved, and after three Sundays too."""

_HALF_LIFE_OF_ALL = 7.0
"""In days of any type, of what one-off owners do together (`one_kind_until_shown`)."""

_MISSED = 2.0
"""An owner that is silent for more than this many of its longest pauses between two days with starts is gone."""

_OWNERS_AT_ONCE = 500
"""54 kB of float64 each, several times."""

_FIRST_PAUSE_DAYS = 7
"""The pause of an owner that was seen to start on a single day."""


@dataclass(frozen=True, slots=True)
class RunForecast:
    """Runs of Job owners. All other services have NaN seconds and usage, and no count and no starts.

    is_owner: (n_services,) whether it is a Job owner
    seconds : (n_services, 2) one pod from its start to its end: median and 0.95 quantile; NaN = no whole run was seen
    count   : (n_services,) whole runs that the length was learned from
    starts  : (n_services, 4, 48) pods expected to start in each half hour, by day type
    usage   : (n_services, n_resources) mean of one pod while it runs, base units; NaN = not measured
    ended   : (n_services,) Job owners of which nothing more is expected: gone, or a bare Job that has run
    since   : (n_services,) first half hour of the history (day * 48 + slot) with a pod of the Job owner; n_days * 48 =
              none
    """

    is_owner: Bools
    seconds: Floats
    count: Ints
    starts: Floats
    usage: Floats
    ended: Bools
    since: Ints


def forecast_runs(history: History) -> RunForecast:
    """Learn the runs of all Job owners from the recent days of a history; nothing is raised for what was not seen."""
    n_services, n_days = len(history.services), history.n_days
    is_owner = np.array([service.runs_to_completion for service in history.services], dtype=np.bool_)
    seconds = np.full((n_services, 2), np.nan)
    count = np.zeros(n_services, dtype=np.int64)
    starts = np.zeros((n_services, len(DayType), SLOTS_PER_DAY))
    usage = np.full((n_services, len(RESOURCES)), np.nan)
    ended, since = np.zeros(n_services, dtype=np.bool_), np.full(n_services, n_days * SLOTS_PER_DAY)
    owners = np.flatnonzero(is_owner)
    if len(owners):
        with_pods: Bools = np.nan_to_num(history.replicas[owners]) > 0  # (n_owners, n_days, 48)
        since[owners] = _first(with_pods.reshape(len(owners), -1))
        was_there: Bools = np.any(with_pods, axis=2)
        recent = history.runs.between(max(0, n_days - RECENT_DAYS), n_days)
        _learn_lengths(recent, seconds, count)
        is_cron_job = np.array([history.services[owner].kind == "CronJob" for owner in owners.tolist()])
        ended[owners] = _ended(history.runs, owners, was_there, is_cron_job)
        days = history.describe_days()
        for begin in range(0, len(owners), _OWNERS_AT_ONCE):
            block = owners[begin : begin + _OWNERS_AT_ONCE]
            usage[block] = _mean_usage(history, block)
            started = _started(recent, block, history.replicas[block, -RECENT_DAYS:])
            first_day = since[block] // SLOTS_PER_DAY * SLOTS_PER_DAY
            by_type = mean_by_day_type(started, first_day, days)
            starts[block] = np.where(ended[block, None, None], 0.0, by_type)
    return RunForecast(is_owner, seconds, count, starts, usage, ended, since)


def mean_by_day_type(counts: AnyFloats, since: Ints, days: Days) -> Floats:
    """Mean count in each half hour by day type, recent days weighing more: (n, 4, 48); 0 where no day is known.

    A day type that was not seen since the owner appeared takes the most alike that was: what runs on workdays is
    expected on a Saturday too, until a Saturday shows otherwise.

    counts : (n, up to n_days, 48) of the last days, of which the last four weeks count; NaN = no data in the slot
    since  : (n,) first half hour of the history that counts, day * 48 + slot
    days   : the n_days of the history
    """
    blocks = range(0, len(counts), _OWNERS_AT_ONCE)
    if len(blocks) > 1:
        parts = [slice(begin, begin + _OWNERS_AT_ONCE) for begin in blocks]
        return np.concatenate([mean_by_day_type(counts[part], since[part], days) for part in parts])
    counts = counts[:, -RECENT_DAYS:]
    n_recent = counts.shape[1]
    kind = days.day_type[-n_recent:]
    later = np.array([np.count_nonzero(kind[day + 1 :] == kind[day]) for day in range(n_recent)])  # of the same type
    weight = 0.5 ** (later / _HALF_LIFE)
    first = (len(days) - n_recent) * SLOTS_PER_DAY
    half_hour = first + np.arange(n_recent * SLOTS_PER_DAY).reshape(n_recent, SLOTS_PER_DAY)
    known = np.isfinite(counts) & (half_hour >= since[:, None, None])
    weighted = known * weight[:, None]  # (n, n_recent, 48)
    total = np.nan_to_num(counts) * weighted
    mean = np.full((len(counts), len(DayType), SLOTS_PER_DAY), np.nan)
    for day_type in DayType:
        of_type = kind == day_type
        mass = weighted[:, of_type].sum(axis=1)
        mean[:, day_type] = np.where(mass > 0, total[:, of_type].sum(axis=1) / np.where(mass > 0, mass, 1.0), np.nan)
    filled = mean.copy()
    for day_type, order in _SUBSTITUTES.items():
        for other in order:
            filled[:, day_type] = np.where(np.isfinite(filled[:, day_type]), filled[:, day_type], mean[:, other])
    return np.asarray(np.nan_to_num(filled), dtype=np.float64)


def one_kind_until_shown(counts: AnyFloats, by_type: Floats, days: Days) -> Floats:
    """Means by day type, drawn to the mean of all days as far as chance explains how they differ: (n, 4, 48).

        share = 1 - noise / between

    between: mean square over the half hours of (mean of the type - mean of all days); noise: what the scatter of the
    type's days lets expect of it (a James-Stein estimate). Much work of many owners differs from night to night by
    chance, and two Saturdays show little of Saturdays.

    counts  : (n, up to n_days, 48) of the last days; NaN = no data in the slot
    by_type : (n, 4, 48) from `mean_by_day_type`
    """
    recent = counts[:, -RECENT_DAYS:].astype(np.float64)
    kind = days.day_type[-recent.shape[1] :]
    weight = 0.5 ** (np.arange(recent.shape[1])[::-1] / _HALF_LIFE_OF_ALL)
    overall = _weighted_mean(recent, weight)
    drawn = by_type.copy()
    for day_type in DayType:
        of_type = recent[:, kind == day_type]
        n_days = of_type.shape[1]
        between = ((by_type[:, day_type] - overall) ** 2).mean(axis=1)
        scatter = of_type if n_days > 1 else recent
        centre = _weighted_mean(scatter, np.ones(scatter.shape[1]))[:, None]
        squares = np.where(np.isfinite(scatter), (scatter - centre) ** 2, 0.0).sum(axis=1)
        noise = (squares / max(scatter.shape[1] - 1, 1)).mean(axis=1) / max(n_days, 1)
        share = np.clip(1 - noise / np.maximum(between, np.finfo(np.float64).tiny), 0.0, 1.0)
        drawn[:, day_type] = overall + share[:, None] * (by_type[:, day_type] - overall)
    return drawn


def _weighted_mean(counts: Floats, weight: Floats) -> Floats:
    """Over days, 0 where none is known: (n, n_days, 48) -> (n, 48)."""
    known = np.isfinite(counts) * weight[:, None]
    return np.asarray((np.nan_to_num(counts) * known).sum(axis=1) / np.maximum(known.sum(axis=1), 1e-12))


_SUBSTITUTES = {
    DayType.WORKDAY: (DayType.SATURDAY, DayType.SUNDAY, DayType.HOLIDAY),
    DayType.SATURDAY: (DayType.SUNDAY, DayType.WORKDAY, DayType.HOLIDAY),
    DayType.SUNDAY: (DayType.SATURDAY, DayType.WORKDAY, DayType.HOLIDAY),
    DayType.HOLIDAY: (DayType.SUNDAY, DayType.SATURDAY, DayType.WORKDAY),
}


def _first(flags: Bools) -> Ints:
    """Position of the first True in each row, the length of the row where there is none: (n,)."""
    return np.asarray(np.where(flags.any(axis=1), flags.argmax(axis=1), flags.shape[1]), dtype=np.int64)


def _learn_lengths(runs: JobRuns, seconds: Floats, count: Ints) -> None:
    """Fill in length and count of each service with a whole run.

    A run that is cut off by the edge of the data says only that runs may last at least as long as was seen of it: it
    counts where that is longer than runs typically take.
    """
    order = np.argsort(runs.service, kind="stable")
    service, length = runs.service[order], runs.seconds[order].astype(np.float64)
    is_open: Bools = np.any(runs.open[order], axis=1)
    bounds = np.flatnonzero(np.diff(service, prepend=-1, append=-1))
    for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        whole = length[begin:end][~is_open[begin:end]]
        if not len(whole):
            continue
        cut = length[begin:end][is_open[begin:end]]
        found = estimate([*whole.tolist(), *cut[cut > np.median(whole)].tolist()])
        seconds[service[begin]] = found.typical, found.long
        count[service[begin]] = len(whole)


def _mean_usage(history: History, owners: Ints) -> Floats:
    """Mean over all the time that pods ran in the recent days, NaN = not measured: (n_owners, n_resources)."""
    pods = np.nan_to_num(history.replicas[owners, -RECENT_DAYS:])[:, None].astype(np.float64)
    usage = history.usage_per_pod[owners, :, -RECENT_DAYS:]
    weight = np.where(np.isfinite(usage), pods, 0.0)
    mass = weight.sum(axis=(2, 3))
    total = (np.nan_to_num(usage) * weight).sum(axis=(2, 3))
    return np.where(mass > 0, total / np.where(mass > 0, mass, 1.0), np.nan)


def _ended(runs: JobRuns, owners: Ints, was_there: Bools, is_cron_job: Bools) -> Bools:
    """Which owners start nothing more: (n_owners,).

    was_there : (n_owners, n_days) whether a pod was there on a day
    """
    n_days = was_there.shape[1]
    row = np.full(int(max(owners.max(), runs.service.max(initial=0))) + 1, -1)
    row[owners] = np.arange(len(owners))
    began = np.zeros_like(was_there)
    began[row[runs.service], runs.day] = True
    # Where runs are not known one by one, days with pods say when there were some.
    began = np.where(began.any(axis=1, keepdims=True), began, was_there)
    day = np.arange(n_days)
    n_began = began.sum(axis=1)
    before = np.maximum.accumulate(np.where(began, day, -1), axis=1)[:, :-1]  # last start up to the day before
    pause = np.where(began[:, 1:] & (before >= 0), day[1:] - before, 0).max(axis=1, initial=0)
    pause = np.where(n_began > 1, pause, _FIRST_PAUSE_DAYS)
    last = n_days - 1 - began[:, ::-1].argmax(axis=1)
    silent = n_days - last > _MISSED * pause
    return np.asarray((n_began == 0) | silent | (~is_cron_job & (n_began < 2)), dtype=np.bool_)


def _started(recent: JobRuns, owners: Ints, replicas: AnyFloats) -> Floats:
    """Pods that were seen to start in each half hour of the recent days: (n_owners, n_recent, 48), NaN = no data.

    replicas : (n_owners, n_recent, 48) NaN = no data in the slot
    """
    row = np.full(int(max(owners.max(), recent.service.max(initial=0))) + 1, -1)
    row[owners] = np.arange(len(owners))
    seen: Bools = np.logical_and(~recent.open[:, 0], row[recent.service] >= 0)
    counts = np.where(np.isfinite(replicas), 0.0, np.nan)
    np.add.at(counts, (row[recent.service[seen]], recent.day[seen], recent.slot[seen]), 1.0)
    return counts
