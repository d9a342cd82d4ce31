"""Changes to a history that last week cannot know, made around the replay's cut-off, and nights full of CronJobs.

The cut-off is the last 04:00 local that leaves seven whole days after it, as in `forecast-scheduler replay`.
Each function takes a cluster and gives back another one; services are picked by the random generator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from enum import Enum

import holidays
import numpy as np
import pandas as pd

from base.arrays import Bools, Floats, Floats32, Ints
from benchmarks.clusters.cluster import SLOTS_PER_DAY, Cluster, Service
from benchmarks.clusters.placement import place_natively
from benchmarks.clusters.pods import pod_name
from forecast.event_calendar import Event
from forecast.resources import CPU, DISK, LOG, MEMORY, NETWORK

#: Resources that are shared out between replicas; every pod needs its memory whatever its load.
LOAD = [CPU, DISK, NETWORK, LOG]
TEST_DAYS = 7
CUT_OFF_HOUR = 4


class Scenario(Enum):
    """Names on the command line."""

    NONE = "none"
    DOUBLED_REPLICAS = "doubled-replicas"
    NEW_SERVICES = "new-services"
    HOLIDAY = "holiday"
    TREND = "trend"
    NIGHTLY_JOBS = "nightly-jobs"
    EVENT = "event"
    TWO_COUNTRIES = "two-countries"
    RELEASE = "release"
    MOVED = "moved"
    MONTH_END = "month-end"


def cut_off_slot(cluster: Cluster) -> int:
    """First slot of the placement: 04:00 local of the last day that leaves seven whole days."""
    hours = cluster.timestamps().tz_convert(cluster.time_zone)
    latest = cluster.n_slots - TEST_DAYS * SLOTS_PER_DAY
    at_four = np.flatnonzero((hours.hour == CUT_OFF_HOUR) & (hours.minute == 0))
    return int(at_four[at_four <= latest].max())


def without_change(cluster: Cluster, rng: np.random.Generator) -> Cluster:
    """The cluster as it is."""
    return cluster


def doubled_replicas(cluster: Cluster, rng: np.random.Generator, *, share: float = 1 / 3) -> Cluster:
    """Two hours before the cut-off a third of the services get twice the replicas of half the size.

    Their total load and requests stay as they were: last week's load per pod is then twice what a pod will use.
    """
    moment = cut_off_slot(cluster) - 4
    chosen = _some_services(cluster, rng, share)
    twins: Ints = np.flatnonzero(chosen[cluster.service_of] & (cluster.first <= moment) & (cluster.end > moment))
    usage = cluster.usage.copy()
    usage[chosen[cluster.service_of], :, moment:] *= 0.5
    added = usage[twins].copy()  # (n_twins, n_resources, n_slots)
    added[:, :, :moment] = np.nan
    halved = tuple(
        replace(s, request_cpu_cores=s.request_cpu_cores / 2, request_memory_bytes=s.request_memory_bytes / 2)
        if is_chosen
        else s
        for s, is_chosen in zip(cluster.services, chosen, strict=True)
    )
    return _with_pods(replace(cluster, services=halved), rng, usage, added, twins, moment)


def new_services(
    cluster: Cluster, rng: np.random.Generator, *, share: float = 1 / 3, ramp: Sequence[float] = (0.1, 0.2, 0.4)
) -> Cluster:
    """A third of the services went live three days before the cut-off; nothing of them is known from before.

    ramp: share of the load on their first days, as a careful launch does it; full load from the cut-off on. Without
    it the three days already show everything and copying them is as good as a forecast.
    """
    birth = cut_off_slot(cluster) - 3 * SLOTS_PER_DAY
    young = _some_services(cluster, rng, share)[cluster.service_of]  # (n_pods,)
    usage = cluster.usage.copy()
    usage[young, :, :birth] = np.nan
    for day, part in enumerate(ramp):
        for resource in LOAD:
            usage[young, resource, birth + day * SLOTS_PER_DAY : birth + (day + 1) * SLOTS_PER_DAY] *= part
    first = np.where(young, np.maximum(cluster.first, birth), cluster.first)
    return replace(cluster, usage=usage, first=first)


def public_holiday(
    cluster: Cluster, rng: np.random.Generator, *, last_day: date = date(2026, 5, 17), country: str = "DE"
) -> Cluster:
    """The history moves to April and May: Ascension Day (14 May 2026, a Thursday) falls into the test week.

    On public holidays half of the services (offices) carry 30 % and half (leisure) 170 % of their usual load. Labour
    Day, and in longer histories Easter, lies in the history, so that a holiday can be learned; last week has none.
    Traces with real dates keep their weekdays where their history ends on a Sunday, as the built ones do.
    """
    moved = _moved_to(cluster, last_day, country)
    leisure = _some_services(cluster, rng, 0.5)
    return _on_holidays(moved, country, np.where(leisure, 1.7, 0.3))


def two_countries(cluster: Cluster, rng: np.random.Generator, *, last_day: date = date(2026, 5, 17)) -> Cluster:
    """Half of the services follow the holidays of Germany, half those of Great Britain, as in `public_holiday`.

    Labour Day and the Early May bank holiday (4 May, a Monday) are in the history, Ascension Day is in the test week
    and changes half of the services. Last week has no holiday.
    """
    moved = _moved_to(cluster, last_day, "DE,GB")
    german = _some_services(cluster, rng, 0.5)
    load = np.where(_some_services(cluster, rng, 0.5), 1.7, 0.3)
    in_germany = _on_holidays(moved, "DE", np.where(german, load, 1.0))
    return _on_holidays(in_germany, "GB", np.where(german, 1.0, load))


def _moved_to(cluster: Cluster, last_day: date, country: str | None) -> Cluster:
    """The same history with another last day, and with the holidays of a country, of several, or of none."""
    end = pd.Timestamp(last_day, tz=cluster.time_zone) + pd.Timedelta(days=1)
    start = (end - pd.Timedelta(days=cluster.n_slots // SLOTS_PER_DAY)).tz_convert("UTC")
    return replace(cluster, start=start, holiday_country=country)


def _on_holidays(cluster: Cluster, country: str, factor: Floats) -> Cluster:
    """The cluster with the load of each service multiplied on holidays of a country. factor : (n_services,)"""
    calendar = holidays.country_holidays(country)
    local = cluster.timestamps().tz_convert(cluster.time_zone)
    return _with_load(cluster, factor, np.array([day in calendar for day in local.date]))


def _with_load(cluster: Cluster, factor: Floats, slots: Bools) -> Cluster:
    """The cluster with the load of each service multiplied in some slots. factor : (n_services,), slots : (n_slots,)"""
    usage = cluster.usage.copy()
    for resource in LOAD:
        usage[:, resource, slots] *= factor.astype(np.float32)[cluster.service_of, None]
    return replace(cluster, usage=usage)


def daily_trend(cluster: Cluster, rng: np.random.Generator, *, per_day: float = 0.05, days_before: int = 10) -> Cluster:
    """A third of the services grow by 5 % a day from ten days before the cut-off to the end, a third shrink likewise.

    They reach their usual level in the middle of the test week: what changes is what was known before.
    """
    slots = np.arange(cluster.n_slots)
    cut_off = cut_off_slot(cluster)
    day = np.maximum(slots - (cut_off - days_before * SLOTS_PER_DAY), 0) / SLOTS_PER_DAY
    middle = days_before + TEST_DAYS / 2
    growth = ((1.0 + per_day) ** (day - middle)).astype(np.float32)  # (n_slots,)
    growing = _some_services(cluster, rng, 1 / 3)
    shrinking = _some_services(cluster, rng, 1 / 3, among=~growing)
    usage = cluster.usage.copy()
    for resource in LOAD:
        usage[growing[cluster.service_of], resource] *= growth
        usage[shrinking[cluster.service_of], resource] /= growth
    return replace(cluster, usage=usage)


def releases(
    cluster: Cluster,
    rng: np.random.Generator,
    *,
    share: float = 1 / 3,
    factors: tuple[float, float] = (1.8, 0.5),
    days_before: int = 4,
) -> Cluster:
    """A third of the services carry 1.8 or 0.5 times their load since a release four days before the cut-off."""
    moment = cut_off_slot(cluster) - days_before * SLOTS_PER_DAY
    changed = _some_services(cluster, rng, share)
    rises = _some_services(cluster, rng, share / 2, among=changed)
    since = np.where(changed, np.where(rises, factors[0], factors[1]), 1.0)
    return _with_load(cluster, since, np.arange(cluster.n_slots) >= moment)


def moved_services(
    cluster: Cluster, rng: np.random.Generator, *, share: float = 1 / 3, hours_before: int = 8
) -> Cluster:
    """A third of the services came at 20:00 before the cut-off, with new pods, from the namespace old-<namespace>.

    The list of moved services names both. The nodes stay the same, so that only names differ from the history as it
    was. With 24 hours before, last week knows a whole day, and copying it places as well as a forecast.
    """
    moment = cut_off_slot(cluster) - hours_before * SLOTS_PER_DAY // 24
    chosen = _some_services(cluster, rng, share)
    row = np.cumsum(chosen) - 1 + len(cluster.services)  # of the service as it was
    was = tuple(
        replace(s, namespace=f"old-{s.namespace}")
        for s, is_chosen in zip(cluster.services, chosen, strict=True)
        if is_chosen
    )
    left: Ints = np.flatnonzero(chosen[cluster.service_of] & (cluster.first < moment) & (cluster.end > moment))
    usage = cluster.usage.copy()
    before = usage[left].copy()
    before[:, :, moment:] = np.nan
    usage[left, :, :moment] = np.nan
    first, service_of = cluster.first.copy(), cluster.service_of.copy()
    first[left] = moment
    return replace(
        cluster,
        services=(*cluster.services, *was),
        pods=(*cluster.pods, *(pod_name(rng, f"{cluster.pods[pod].rsplit('-', 1)[0]}-#####") for pod in left)),
        service_of=np.concatenate([service_of, row[service_of[left]]]),
        first=np.concatenate([first, cluster.first[left]]),
        end=np.concatenate([cluster.end, np.full(len(left), moment)]),
        node_of=np.concatenate([cluster.node_of, cluster.node_of[left]]),
        usage=np.concatenate([usage, before]),
        moved=tuple(
            (f"{old.namespace}/{old.owner}", f"{old.namespace.removeprefix('old-')}/{old.owner}") for old in was
        ),
    )


def month_ends(
    cluster: Cluster,
    rng: np.random.Generator,
    *,
    share: float = 1 / 4,
    factor: float = 2.5,
    weeks_before: int = 8,
    month_end: date = date(2026, 6, 30),
) -> Cluster:
    """A quarter of the services (billing) carry 2.5 times their load on the last two workdays of each month.

    The three weeks before the test week are repeated in front of the history, so that it has two month ends, and it
    moves so that the test week has the third. Weekdays stay; there are no holidays. Services whose pods come and go are
    not repeated: they have no older history.
    """
    longer = _repeated(cluster, weeks_before)
    local = cluster.timestamps().tz_convert(cluster.time_zone)
    last_day = month_end + timedelta(days=(local[-1].weekday() - month_end.weekday()) % 7)
    moved = _moved_to(longer, last_day, None)
    billing = _some_services(cluster, rng, share)
    local = moved.timestamps().tz_convert(moved.time_zone)
    workdays: dict[tuple[int, int], list[date]] = {}
    for n in range(moved.n_slots // SLOTS_PER_DAY + 40):  # to the end of the last month
        day = local[0].date() + timedelta(days=n)
        if day.weekday() < 5:
            workdays.setdefault((day.year, day.month), []).append(day)
    last = {day for of_month in workdays.values() for day in of_month[-2:]}
    return _with_load(moved, np.where(billing, factor, 1.0), np.array([day in last for day in local.date]))


def _repeated(cluster: Cluster, weeks: int) -> Cluster:
    """The cluster with weeks in front of it: repeats of the last three whole weeks before the test week, or of fewer.

    Only pods that live through the whole history are repeated. Nothing of the test week is in the repeats.
    """
    n_new, week = weeks * 7 * SLOTS_PER_DAY, 7 * SLOTS_PER_DAY
    known = cluster.n_slots - TEST_DAYS * SLOTS_PER_DAY
    period = min(known // week, 3) * week
    if period == 0:
        raise ValueError("the history has less than two weeks: nothing can be repeated")
    begin = known - period
    source = begin + (np.arange(-n_new, 0) - begin) % period
    throughout = (cluster.first == 0) & (cluster.end == cluster.n_slots)
    earlier = cluster.usage[:, :, source]
    earlier[~throughout] = np.nan
    return replace(
        cluster,
        start=cluster.start - pd.Timedelta(days=weeks * 7),
        first=np.where(throughout, 0, cluster.first + n_new),
        end=cluster.end + n_new,
        usage=np.concatenate([earlier, cluster.usage], axis=2),
        base=np.concatenate([cluster.base[:, :, source], cluster.base], axis=2),
    )


def campaign(
    cluster: Cluster,
    rng: np.random.Generator,
    *,
    share: float = 1 / 3,
    factor: float = 2.0,
    days_after: int = 2,
    known_factor: bool = True,
) -> Cluster:
    """A third of the services carry twice their load on a campaign day, two days after that of the cut-off.

    The calendar of events names day and services. If the factor is not known, a day two weeks earlier was like it.
    """
    local = cluster.timestamps().tz_convert(cluster.time_zone)
    chosen = _some_services(cluster, rng, share)
    coming = local[cut_off_slot(cluster)].date() + timedelta(days=days_after)
    days = [coming] if known_factor else [coming - timedelta(days=14), coming]
    busy = _with_load(cluster, np.where(chosen, factor, 1.0), np.array([day in days for day in local.date]))
    events = [
        Event(
            name="campaign",
            first_day=day,
            namespace=service.namespace,
            service=service.owner,
            factor=factor if known_factor else None,
        )
        for day in days
        for service, takes_part in zip(cluster.services, chosen, strict=True)
        if takes_part
    ]
    return replace(busy, events=(*cluster.events, *events))


def nightly_jobs(
    cluster: Cluster,
    rng: np.random.Generator,
    *,
    cores: Sequence[float] | None = None,
    pods_each: int = 2,
    requested: float = 0.4,
    hours: range = range(2, 5),
) -> Cluster:
    """Every night CronJobs run from 02:00 to 05:00 local time, so that many of the nodes are busy at the cut-off.

    cores     : that a pod of each CronJob uses while it runs, None = 18 of them, 4 to 7.5 cores; each run differs from
                it by up to a tenth
    requested : share of this that a pod requests; at 1.0 nodes are full by requests and no rule has a choice
    """
    local = cluster.timestamps().tz_convert(cluster.time_zone)
    night: Bools = np.isin(local.hour, np.array(hours))
    nights = [np.flatnonzero(night & (local.date == day)) for day in sorted(set(local.date))]
    nights = [slots for slots in nights if len(slots)]
    size = rng.uniform(4.0, 7.5, size=18) if cores is None else np.asarray(cores, dtype=np.float64)
    cron_jobs = len(size)
    owners = tuple(
        Service("batch", "CronJob", f"night-{n:02d}", requested * float(of_one), float(of_one) * 2.0**30)
        for n, of_one in enumerate(size)
    )
    of_job = np.tile(np.repeat(np.arange(cron_jobs), pods_each), len(nights))
    of_night = np.repeat(np.arange(len(nights)), cron_jobs * pods_each)
    added: Floats32 = np.full((len(of_job), cluster.usage.shape[1], cluster.n_slots), np.nan, dtype=np.float32)
    names = []
    for pod, (job, number) in enumerate(zip(of_job.tolist(), of_night.tolist(), strict=True)):
        slots = nights[number]
        used = size[job] * rng.uniform(0.9, 1.1) * rng.uniform(0.95, 1.05, len(slots))
        added[pod][:, slots] = 0.0
        added[pod, CPU, slots] = used
        added[pod, MEMORY, slots] = used * 2.0**30
        due = int(cluster.timestamps()[slots[0]].timestamp()) // 60
        names.append(pod_name(rng, f"{owners[job].name}-{due}-#####"))
    first: Ints = np.concatenate([cluster.first, [nights[number][0] for number in of_night.tolist()]])
    end: Ints = np.concatenate([cluster.end, [nights[number][-1] + 1 for number in of_night.tolist()]])
    service_of: Ints = np.concatenate([cluster.service_of, of_job + len(cluster.services)])
    together = replace(cluster, services=(*cluster.services, *owners), service_of=service_of)
    placed: Ints = np.concatenate([cluster.node_of, np.full(len(of_job), -1)])
    return replace(
        together,
        pods=(*cluster.pods, *names),
        first=first,
        end=end,
        node_of=place_natively(rng, together.requests()[service_of], cluster.allocatable, first, end, placed=placed),
        usage=np.concatenate([cluster.usage, added]),
    )


SCENARIOS: Mapping[Scenario, Callable[[Cluster, np.random.Generator], Cluster]] = {
    Scenario.NONE: without_change,
    Scenario.DOUBLED_REPLICAS: doubled_replicas,
    Scenario.NEW_SERVICES: new_services,
    Scenario.HOLIDAY: public_holiday,
    Scenario.TREND: daily_trend,
    Scenario.NIGHTLY_JOBS: nightly_jobs,
    Scenario.EVENT: campaign,
    Scenario.TWO_COUNTRIES: two_countries,
    Scenario.RELEASE: releases,
    Scenario.MOVED: moved_services,
    Scenario.MONTH_END: month_ends,
}


def _some_services(cluster: Cluster, rng: np.random.Generator, share: float, *, among: Bools | None = None) -> Bools:
    """(n_services,) a random share of all services, drawn from those whose replicas do not follow load."""
    n_services = len(cluster.services)
    fixed = np.ones(n_services, dtype=bool) if among is None else among.copy()
    # A pod that comes and goes marks its service as autoscaled; `read_cluster` does not know otherwise.
    fixed[cluster.service_of[(cluster.first > 0) | (cluster.end < cluster.n_slots)]] = False
    candidates = rng.permutation(np.flatnonzero(fixed))
    chosen = np.zeros(n_services, dtype=bool)
    chosen[candidates[: max(round(share * n_services), 1)]] = True
    return chosen


def _with_pods(
    cluster: Cluster, rng: np.random.Generator, usage: Floats32, added: Floats32, twins: Ints, moment: int
) -> Cluster:
    """The cluster with one more pod per twin, born at `moment` and placed by requests beside what is there."""
    names = [pod_name(rng, f"{cluster.pods[twin].rsplit('-', 1)[0]}-#####") for twin in twins]
    service_of: Ints = np.concatenate([cluster.service_of, cluster.service_of[twins]])
    first: Ints = np.concatenate([cluster.first, np.full(len(twins), moment)])
    end: Ints = np.concatenate([cluster.end, cluster.end[twins]])
    requests: Floats = cluster.requests()[service_of]
    placed: Ints = np.concatenate([cluster.node_of, np.full(len(twins), -1)])
    return replace(
        cluster,
        pods=(*cluster.pods, *names),
        service_of=service_of,
        first=first,
        end=end,
        node_of=place_natively(rng, requests, cluster.allocatable, first, end, placed=placed),
        usage=np.concatenate([usage, added]),
    )
