"""What is remembered of groups of pods: when they came, by minute of the day, what they were like, and what came at the
same time on most days. A group is what starts them again and again, whatever it calls each time.

Local minutes are minutes since 1970 by the clock on the wall. One thread at a time.

day 1  ....|....        minutes around which enough pods came ---+
day 2  ...|.....        ... on most days that were seen ---------+--> a period: as many pods as on the median day,
day 3  .........                                                      minute by minute as they came on that day

    shop/Job/load        load-28391040, load-20261122t0800, load-x7k2p
    shop/Workflow/nightly  nightly-1795334400, whose pods it owns
    shop/DAG/prices      pods of Airflow without an owner, by their label dag_id
    shop/Pod/resize      other pods without an owner

Pure, and a guess: parts of a name that look generated are left out, wherever they are.
"""

from __future__ import annotations

import math
import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from base.arrays import Bools, Ints
from forecast.service_key import ServiceKey
from kube.objects.objects import PodInfo

# What came at the same time on most days is expected at that time. Pure: pods per minute in, pods per minute out.
#
# day 1  ....|....        minutes around which enough pods came ---+
# day 2  ...|.....        ... on most days that were seen ---------+--> a period: as many pods as on the median day,
# day 3  .........                                                      minute by minute as they came on that day

AROUND: Final = 5
"""Minutes by which days may differ."""

_FEWEST_DAYS: Final = 2

DAYS: Final = 7
DAY_MINUTES: Final = 1440

BEFORE: Final = 2 * AROUND
"""Minutes of the axis before now: what began then may still go on."""

_PASSING_GROUPS: Final = 512
_MOST_AT_ONCE: Final = 65_535
_MOST_KINDS: Final = 16
_MOST_REQUESTED: Final = 1e15
_SERVICES: Final = 8

_DAG_LABEL: Final = "dag_id"
"""https://airflow.apache.org/docs/apache-airflow-providers-cncf-kubernetes/stable/operators.html"""

_LONGEST: Final = 253
_UUID: Final = re.compile(r"(?<![0-9a-z])[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![0-9a-z])")
_PARTS: Final = re.compile(r"[-._]+")

_GENERATED: Final = re.compile(
    r"""  \d[\dtz]*                               # numbers, dates and times
        | [bcdfghjklmnpqrstvwxz2456789]{5}        # generateName: rand.String(5) of k8s.io/apimachinery
        | (?=[a-f]*\d)[0-9a-f]{7,}                # hashes
        | (?=[a-z0-9]*\d[a-z])[a-z0-9]{8,}        # letters and digits mixed, as Airflow adds them; not version2024
    """,
    re.VERBOSE,
)


def expected_arrivals(came: Ints, seen: Bools, min_pods: int, usual: Bools | None = None) -> Iterator[tuple[int, Ints]]:
    """The first minute of each period, and the pods that are expected in each of its minutes.

    came     : (n_days, n_minutes) pods, the latest day first
    seen     : (n_days, n_minutes) whether the bursts were observed then
    min_pods : within AROUND minutes before or after
    usual    : (n_minutes,) whether the model saw as many start at that time of day: then one day is enough
    """
    fewest = _FEWEST_DAYS if usual is None else np.where(usual, 1, _FEWEST_DAYS)
    hits = (seen & (around(came) >= min_pods)).sum(axis=0)
    busy = np.flatnonzero((hits >= fewest) & (2 * hits > seen.sum(axis=0)))
    if not len(busy):
        return
    for run in np.split(busy, np.flatnonzero(np.diff(busy) > 2 * AROUND) + 1):
        first = max(0, int(run[0]) - AROUND)
        yield first, _median_day(came[:, first : int(run[-1]) + AROUND + 1], min_pods)


def around(came: Ints) -> Ints:
    """(n_days, n_minutes) pods within AROUND minutes of each minute."""
    sums = np.pad(np.cumsum(came, axis=1, dtype=np.int64), ((0, 0), (AROUND + 1, AROUND)), mode="edge")
    sums[:, : AROUND + 1] = 0
    return np.asarray(sums[:, 2 * AROUND + 1 :] - sums[:, : -2 * AROUND - 1])


def _median_day(came: Ints, min_pods: int) -> Ints:
    """(n_minutes,) as on the day that is nearest to the median of those on which enough came, and as many as that."""
    totals = came.sum(axis=1)
    days = np.flatnonzero(totals >= min_pods)
    median = float(np.median(totals[days]))
    day = days[np.argmin(np.abs(totals[days] - median))]
    so_far = np.cumsum(came[day], dtype=np.float64) * (median / totals[day])
    return np.asarray(np.diff(np.rint(so_far), prepend=0.0), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Arrival:
    """Pods of a group. requests: of one of them; annotations: ours; stays: they cannot leave for virtual nodes."""

    group: str
    service: ServiceKey
    pods: int
    requests: Mapping[str, float]
    priority: int
    annotations: Mapping[str, str]
    stays: bool = False


@dataclass(slots=True)
class Day:
    """minutes: (1440,) pods that came; requests: of all of them together."""

    minutes: npt.NDArray[np.uint16] = field(default_factory=lambda: np.zeros(DAY_MINUTES, dtype=np.uint16))
    pods: int = 0
    requests: dict[str, float] = field(default_factory=dict)

    def add(self, minute: int, arrival: Arrival) -> int:
        """How many pods of it count."""
        pods = min(arrival.pods, _MOST_AT_ONCE)
        self.minutes[minute] = min(int(self.minutes[minute]) + pods, _MOST_AT_ONCE)
        self.pods += pods
        for kind, amount in arrival.requests.items():
            if 0 < amount < _MOST_REQUESTED and (kind in self.requests or len(self.requests) < _MOST_KINDS):
                self.requests[kind] = self.requests.get(kind, 0.0) + pods * amount
        return pods


@dataclass(slots=True)
class StartGroup:
    """
    days     : by local day since 1970
    first    : local minute of its first pod
    pods     : of all days
    services : of its pods, the latest last
    priority, annotations, stays : of its latest pod
    """

    days: dict[int, Day] = field(default_factory=dict)
    first: int = 2**62
    pods: int = 0
    services: dict[ServiceKey, None] = field(default_factory=dict)
    priority: int = 0
    annotations: Mapping[str, str] | None = None
    stays: bool = False

    def add(self, arrival: Arrival, local: int) -> None:
        """Pods came in this local minute."""
        day, minute = divmod(local, DAY_MINUTES)
        self.pods += self.days.setdefault(day, Day()).add(minute, arrival)
        self.forget(max(self.days) - DAYS - 1)
        self.first = min(self.first, local)
        self.services.pop(arrival.service, None)
        self.services[arrival.service] = None
        if len(self.services) > _SERVICES:
            del self.services[next(iter(self.services))]
        self.priority, self.annotations, self.stays = arrival.priority, arrival.annotations, arrival.stays

    def forget(self, before: int) -> None:
        """Days before this one."""
        for day in [day for day in self.days if day < before]:
            self.pods -= self.days.pop(day).pods

    def requests(self) -> dict[str, float]:
        """Of one pod, the mean."""
        kinds = dict.fromkeys(kind for day in self.days.values() for kind in day.requests)
        return {
            kind: sum(day.requests.get(kind, 0.0) for day in self.days.values()) / max(1, self.pods) for kind in kinds
        }


class Groups:
    """By name, those that ever had `min_pods` pods apart from those that had not."""

    def __init__(self, min_pods: int, most: int) -> None:
        self._min_pods, self._most = min_pods, max(1, most)
        self._lasting: OrderedDict[str, StartGroup] = OrderedDict()
        self._passing: OrderedDict[str, StartGroup] = OrderedDict()

    def add(self, arrival: Arrival, local: int) -> None:
        """Pods came in this local minute."""
        name = arrival.group
        group = self._lasting.pop(name, None) or self._passing.pop(name, None) or StartGroup()
        group.add(arrival, local)
        is_lasting = group.pods >= self._min_pods
        table, most = (self._lasting, self._most) if is_lasting else (self._passing, _PASSING_GROUPS)
        table[name] = group
        if len(table) > most:
            del table[_least_worth(table)]

    def forget(self, today: int) -> None:
        """Forget days that are over for too long, and groups without news since. today: local day."""
        for table in (self._lasting, self._passing):
            for name, group in list(table.items()):
                group.forget(today - DAYS - 1)
                if not group.days:
                    del table[name]

    def get(self, name: str) -> StartGroup | None:
        """One that had enough pods; None = there is none, or no more."""
        return self._lasting.get(name)

    def names(self) -> Iterable[str]:
        """Of those that may be expected."""
        return tuple(name for name, group in self._lasting.items() if group.pods >= 2 * self._min_pods)

    def __len__(self) -> int:
        """How many are remembered."""
        return len(self._lasting) + len(self._passing)


class Once:
    """What has been counted, by UID. Once some are forgotten, what is no newer than they were counts as counted."""

    def __init__(self, most: int) -> None:
        self._most = max(1, most)
        self._at: dict[str, float] = {}
        self._forgotten = -math.inf

    def __contains__(self, uid: str) -> bool:
        """Whether it is remembered."""
        return uid in self._at

    def add(self, uid: str, at: float) -> bool:
        """Whether it is new. at: unix seconds."""
        if uid in self._at or at <= self._forgotten:
            return False
        if len(self._at) >= self._most:
            self._forgotten = max(self._forgotten, self._at.pop(next(iter(self._at))))
        self._at[uid] = at
        return True


def last_days(group: StartGroup, now: int) -> tuple[Ints, Bools]:
    """(n_days, n_minutes) each: what came at the same time on each day before the next, the latest first, and whether
    bursts were observed. The first of the minutes is BEFORE before now, a local minute.
    """
    oldest = now // DAY_MINUTES - DAYS - 1
    line = np.zeros((DAYS + 3) * DAY_MINUTES, dtype=np.int64)  # the last of it is in the future
    for day, of_day in group.days.items():
        at = (day - oldest) * DAY_MINUTES
        if 0 <= at < len(line):
            line[at : at + DAY_MINUTES] = of_day.minutes
    first = now - BEFORE - oldest * DAY_MINUTES
    back = np.arange(1, DAYS + 1)[:, None] * DAY_MINUTES
    where = first + np.arange(DAY_MINUTES + 2 * BEFORE) - back
    moment = where + oldest * DAY_MINUTES
    return line[where], (moment + AROUND >= group.first) & (moment + AROUND < now)


def _least_worth(groups: OrderedDict[str, StartGroup]) -> str:
    """Of those that came on one day only, else of all, but for the last: the one that was heard of longest ago.

    Else more groups than are remembered, each of them daily, would push each other out before they come again.
    """
    oldest, newest = next(iter(groups)), next(reversed(groups))
    return next((name for name, group in groups.items() if len(group.days) == 1 and name != newest), oldest)


# Which pods come together: a group is what starts them again and again, whatever it calls each time.
#
#     shop/Job/load        load-28391040, load-20261122t0800, load-x7k2p
#     shop/Workflow/nightly  nightly-1795334400, whose pods it owns
#     shop/DAG/prices      pods of Airflow without an owner, by their label dag_id
#     shop/Pod/resize      other pods without an owner
#
# Pure, and a guess: parts of a name that look generated are left out, wherever they are.


def group_of(pod: PodInfo) -> str:
    """namespace/kind/name of what the pod comes with."""
    dag = pod.labels.get(_DAG_LABEL)
    if not pod.owner.kind and dag:
        return f"{pod.namespace}/DAG/{dag[:_LONGEST]}"
    return group_named(pod.namespace, pod.owner.kind or "Pod", pod.owner.name or pod.name)


def group_named(namespace: str, kind: str, name: str) -> str:
    """The same of an object of this kind and name."""
    parts = _PARTS.split(_UUID.sub("", name[:_LONGEST]))
    kept = [part for part in parts if part and not _GENERATED.fullmatch(part)]
    return f"{namespace}/{kind}/{'-'.join(kept or parts[:1])}"
