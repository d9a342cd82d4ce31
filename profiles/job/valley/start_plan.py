"""When each waiting job is to start, so that the highest load of the cluster grows least.

    cost(start) = sum_r w_r * sum_{points of the run} ((x + v)^4 - x^4)        x = load / capacity, v = the job's use

The energy that placement weighs nodes by (cluster/predicted/power_growth.py), here of the cluster as a whole: the
fourth power follows the highest points. Jobs of the least slack are planned first, and each adds its use to the load
before the next is looked at, so that they do not all choose the same minute. Like jobs are planned in pieces: 3,000
take some 50 ms, and 150 ms if no two are alike.

A job without slack starts now. One with slack starts at the earliest point whose cost the forecast cannot distinguish
from the lowest (`_Table.difference_error`). A planned start is moved only if it costs clearly more: jobs cannot rely on
a plan that changes every ten seconds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Final

import numpy as np

from base.arrays import Bools, Floats, Ints
from cluster.predicted.power_growth import RESOURCE_WEIGHTS
from forecast.resources import RESOURCES
from profiles.job.job_settings import ValleyOptions

_DEFAULTS: Final = ValleyOptions()
_MOST_PIECES: Final = 500
_MOST_PIECES_OF_A_GROUP: Final = 64
_LABELS: Final = tuple({"cpu": "CPU"}.get(one.name, one.name) for one in RESOURCES)


@dataclass(frozen=True, slots=True)
class ExpectedLoad:
    """What the nodes that jobs may use are predicted to be used for without the jobs that wait.

    first    : unix seconds at which the first point begins, at most one step before now
    step     : seconds
    share    : (n_resources, n_points) of their capacity together, 0 where that is not known
    capacity : (n_resources,) base units, 0 = not known
    room     : (2, n_points) CPU cores and memory bytes that more pods may request; None = any number
    n_nodes  : that these are spread over: on each of them half a pod is lost on average
    error    : (n_resources, n_points) standard deviation of `share`, the forecast's; None = not known, taken as 0
    """

    first: float
    step: float
    share: Floats
    capacity: Floats
    room: Floats | None = None
    n_nodes: int = 0
    error: Floats | None = None


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """A pod that waits, or several that start together.

    use         : (n_resources,) base units while it runs, of all its pods
    run_seconds : how long that is expected to be
    due         : unix seconds, its latest start; inf = it does not say, and may not be held
    planned     : its start by the last plan; None = it is new
    requests    : CPU cores and memory bytes
    reserve     : seconds by which the plan stays clear of its latest start, in case there is no room then
    n_pods      : that it consists of
    """

    uid: str
    use: Floats
    run_seconds: float
    due: float
    planned: float | None = None
    requests: tuple[float, float] = (0.0, 0.0)
    reserve: float = 0.0
    n_pods: int = 1


@dataclass(frozen=True, slots=True)
class PlannedStart:
    """start: unix seconds, not after `due` less a margin unless that is over; why: for people."""

    uid: str
    start: float
    why: str


@dataclass(frozen=True, slots=True)
class _Group:
    """Jobs, by position, of which one is planned as the other.

    use, requests : of all of them
    n_pods        : that they consist of
    length, last  : of the run, and the latest start, in points
    kept          : start by the last plan, a point
    """

    jobs: Ints
    use: Floats
    requests: Floats
    n_pods: int
    length: int
    last: int
    kept: int
    is_kept: bool


def plan_starts(
    jobs: Sequence[WaitingJob],
    load: ExpectedLoad,
    now: float,
    *,
    margin: float = _DEFAULTS.margin,
    least_gain: float = _DEFAULTS.least_gain,
    zone: tzinfo = UTC,
) -> list[PlannedStart]:
    """In the order of `jobs`.

    margin     : seconds before `due`
    least_gain : share of the cost by which a start must be better than the one planned so far, or than now, even if
                 the forecast has no error
    zone       : of the times in `why`
    """
    planned: list[PlannedStart | None] = [None] * len(jobs)
    table = _Table(load, now, max((job.run_seconds for job in jobs), default=0.0))
    waiting: list[int] = []
    for at, job in enumerate(jobs):
        if job.planned is not None and job.planned <= now:
            planned[at] = PlannedStart(job.uid, job.planned, "starts now: its planned time has come")
        elif job.due == math.inf:
            planned[at] = PlannedStart(job.uid, now, "starts now: it does not say how long it may wait")
        elif job.due - margin < now + load.step:
            planned[at] = PlannedStart(job.uid, now, f"starts now: it may not wait, {_until(job.due, now, zone)}")
        else:
            waiting.append(at)
            continue
        table.add(0, table.length(job.run_seconds), table.share_of(job.use), np.array(job.requests))
    clock = _Clock(now, zone)
    pieces = _pieces([jobs[at] for at in waiting], table, margin)
    for group in pieces:
        if group.is_kept:  # else the first group would find the best minutes empty again
            table.add(group.kept, group.length, group.use, group.requests)
    for group in pieces:
        if group.is_kept:
            table.add(group.kept, group.length, -group.use, -group.requests)
        start, lowest, has_room_now = table.best_start(group, least_gain)
        resource = table.deciding(group.use, group.length)
        then, at_once, at_best = (table.predicted(resource, point, group.length) for point in (start, 0, lowest))
        better = None if lowest == start or at_best >= then else (load.first + lowest * load.step, at_best)
        table.add(start, group.length, group.use, group.requests)
        for number in group.jobs.tolist():
            job = jobs[waiting[number]]
            moment = now if start == 0 else min(load.first + start * load.step, job.due - margin)
            if group.is_kept and start == group.kept and job.planned is not None:
                moment = min(job.planned, job.due - margin)
            why = clock.words(moment, _LABELS[resource], then, at_once, job.due, better, has_room_now=has_room_now)
            planned[waiting[number]] = PlannedStart(job.uid, moment, why)
    return [one for one in planned if one is not None]


class _Table:
    """The load while jobs are added to it. Beyond its end the last point goes on."""

    def __init__(self, load: ExpectedLoad, now: float, longest_run: float) -> None:
        self.load, self.now = load, now
        self.n_points = int(load.share.shape[1])
        tail = min(self.length(longest_run), self.n_points)
        ends = np.repeat(load.share[:, -1:], tail, axis=1)
        self._share = np.concatenate([load.share, ends], axis=1)  # (n_resources, n_points + tail)
        error = np.zeros_like(load.share) if load.error is None else load.error
        self._error = np.concatenate([error, np.repeat(error[:, -1:], tail, axis=1)], axis=1)
        self._room = None
        if load.room is not None:
            self._room = np.concatenate([load.room, np.repeat(load.room[:, -1:], tail, axis=1)], axis=1)
        known = load.capacity > 0
        self._per_capacity = np.where(known, 1 / np.where(known, load.capacity, 1.0), 0.0)
        self._weights = np.where(known, RESOURCE_WEIGHTS[: len(known)], 0.0)

    def length(self, run_seconds: float) -> int:
        """Points that a run takes, at least one."""
        seconds = min(max(float(run_seconds), 0.0), self.n_points * self.load.step)
        return max(1, math.ceil(seconds / self.load.step))

    def point(self, moment: float) -> int:
        """In which it lies; one that is over or too far ahead is the first or the last."""
        return int(min(max((moment - self.load.first) / self.load.step, 0.0), self.n_points - 1))

    def share_of(self, use: Floats) -> Floats:
        """(n_resources,) of capacity."""
        return np.nan_to_num(use, posinf=0.0, neginf=0.0) * self._per_capacity

    def best_start(self, group: _Group, least_gain: float) -> tuple[int, int, bool]:
        """The point chosen, the point of the lowest cost, and whether there is room now.

        The earliest start is taken that costs more than the lowest by at most one standard error of the difference: the
        rule of one standard error (Breiman et al. 1984, "Classification and Regression Trees", 3.4.3). "Now" is also
        taken if it costs more by at most `least_gain` of its own cost. The start planned so far is kept up to
        that or two standard errors. If no start has room, room does not count.
        """
        end = group.last + group.length
        used = np.flatnonzero(group.use)
        x, v = self._share[used, :end], group.use[used, None]
        d = v * (2 * x + v)
        # As cluster.predicted.power_growth.power_growth.
        growth: Floats = np.asarray(self._weights[used] @ (d * (2 * x * x + d)))  # (end,)
        cost = _over_runs(growth, group.length)  # (last + 1,) by start
        has_room_now = True
        if self._room is not None:
            needed = group.requests * (1 + 0.5 * self.load.n_nodes / group.n_pods)
            short: Bools = np.asarray((self._room[:, :end] < needed[:, None]).any(axis=0))
            if short.any():
                blocked = _over_runs(short.astype(np.float64), group.length) > 0.5
                has_room_now = not blocked[0]
                if not blocked.all():
                    cost = np.where(blocked, np.inf, cost)
        lowest = int(cost.argmin())
        possible = np.isfinite(cost)
        cost = np.where(possible, cost, 0.0)
        error, beyond = self.difference_error(group, lowest), np.where(possible, cost - cost[lowest], np.inf)
        reference = group.kept if group.is_kept else 0
        if beyond[reference] <= max((1 + group.is_kept) * error[reference], least_gain * cost[reference]):
            return reference, lowest, has_room_now
        good_enough = beyond <= np.maximum(error, 1e-9 * cost)
        return int(good_enough.argmax()), lowest, has_room_now

    def difference_error(self, group: _Group, other: int) -> Floats:
        """Standard error of cost(start) - cost(other) for every start: (last + 1,), 0 where start = other.

        With slope(x) = d/dx ((x + v)^4 - x^4) = 4 ((x + v)^3 - x^3) and the forecast's error e of x, to first order

            error^2 = sum_r w_r^2 ((sum of slope e over the points of start's run only)^2 + (the same of other's)^2)

        Points of both runs cancel. A load that is above its forecast stays so for a run, so errors add linearly within
        one; those of two runs that have no point in common are independent.
        """
        starts, length, end = np.arange(group.last + 1), group.length, group.last + group.length
        first, second = np.minimum(starts, other), np.maximum(starts, other)
        variance = np.zeros(len(starts))
        for r in np.flatnonzero(group.use):
            x, v = self._share[r, :end], group.use[r]
            slope = 4 * v * (3 * x * (x + v) + v * v)
            sums = np.concatenate([[0.0], np.cumsum(slope * self._error[r, :end])])
            alone = sums[np.minimum(first + length, second)] - sums[first]
            other_alone = sums[second + length] - sums[np.maximum(second, first + length)]
            variance += self._weights[r] ** 2 * (alone**2 + other_alone**2)
        return np.asarray(np.sqrt(variance))

    def add(self, start: int, length: int, use: Floats, requests: Floats) -> None:
        """They are planned then."""
        self._share[:, start : start + length] += use[:, None]
        if self._room is not None:
            self._room[:, start : start + length] -= requests[:, None]

    def deciding(self, of: Floats, length: int) -> int:
        """The resource that speaks most against starting now."""
        return int((self._weights * of * (self._share[:, :length] ** 3).mean(axis=1)).argmax())

    def predicted(self, resource: int, start: int, length: int) -> float:
        """Mean share during a run, with the jobs that are planned already."""
        return float(self._share[resource, start : start + length].mean())


def _pieces(jobs: Sequence[WaitingJob], table: _Table, margin: float) -> list[_Group]:
    """Like jobs in groups, large groups in parts that are planned one after the other; least slack first."""
    if not jobs:
        return []
    use = np.array([table.share_of(job.use) for job in jobs])  # (n_jobs, n_resources)
    length = np.array([table.length(job.run_seconds) for job in jobs])
    last = np.array([table.point(job.due - margin - job.reserve) for job in jobs])
    requests = np.array([job.requests for job in jobs])  # (n_jobs, 2)
    n_pods = np.array([job.n_pods for job in jobs])
    # A job whose latest start has come nearer than its planned one is planned anew; -1 = is new.
    kept = np.array([-1 if job.planned is None else table.point(job.planned) for job in jobs])
    kept = np.where(kept > last, -1, kept)
    with np.errstate(divide="ignore"):
        # Uses within a tenth of each other are alike.
        size = np.where(use > 0, np.round(np.log10(use) * 24), -1e6).astype(np.int64)
    keys = np.column_stack([last, length, kept, size])  # sorted by the first
    _, inverse, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    by_group = np.split(np.argsort(inverse.ravel(), kind="stable"), np.cumsum(counts)[:-1])
    pieces: list[_Group] = []
    for members in by_group:
        n_pieces = min(max(1, _MOST_PIECES * len(members) // len(jobs)), _MOST_PIECES_OF_A_GROUP, len(members))
        first = members[0]
        for part in np.array_split(members, n_pieces):
            at, of_all = int(kept[first]), (use[part].sum(axis=0), requests[part].sum(axis=0), int(n_pods[part].sum()))
            pieces.append(_Group(part, *of_all, int(length[first]), int(last[first]), max(at, 0), at >= 0))
    return pieces


def _over_runs(values: Floats, length: int) -> Floats:
    """(n_points,) -> (n_points - length + 1,) sums over runs by their start."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    return np.asarray(sums[length:] - sums[:-length])


class _Clock:
    """Words for a plan."""

    def __init__(self, now: float, zone: tzinfo) -> None:
        self._now, self._zone = now, zone

    def words(
        self,
        start: float,
        label: str,
        then: float,
        at_once: float,
        due: float,
        better: tuple[float, float] | None,
        *,
        has_room_now: bool,
    ) -> str:
        """starts 02:40: cluster CPU is predicted at 31 % then, 74 % now; may start until 06:00

        better : moment and share of a start of lower cost that is not taken; None = there is none
        """
        until = _until(due, self._now, self._zone)
        if better is not None and _percent(better[1]) != _percent(then if start > self._now else at_once):
            found = f"{_percent(better[1])} at {_time(better[0], self._now, self._zone)}"
            until = f"{found} differs by less than the forecast may err; {until}"
        if start <= self._now:
            return f"starts now: cluster {label} is predicted at {_percent(at_once)}, and waiting gains little; {until}"
        what = f"cluster {label} is predicted at {_percent(then)} then, {_percent(at_once)} now"
        if not has_room_now:
            what += ", and there is no room for its requests now"
        return f"starts {_time(start, self._now, self._zone)}: {what}; {until}"


def _until(due: float, now: float, zone: tzinfo) -> str:
    return f"may start until {_time(due, now, zone)}"


def _time(moment: float, now: float, zone: tzinfo) -> str:
    """With the day unless it is today's; a moment that no calendar has is far away."""
    try:
        local, today = (datetime.fromtimestamp(one, zone) for one in (moment, now))
    except (ValueError, OverflowError, OSError):
        return "the end of time"
    return f"{local:%H:%M}" if local.date() == today.date() else f"{local:%a %H:%M}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
