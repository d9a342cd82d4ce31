"""What owners are expected to need, as this process knows it now: what `quotas.py` asks before it lends.

    refresh : copies the tables under their lock, computes without it, puts the result in place under it
    called  : the highest need from now until a loan ends, one array per half hour, made beforehand

Without a forecast nothing is expected, and all that is idle is lent. Only between the start of a process, or a change
of quotas, and the first result nothing is lent: a start must not hand out what the forecast keeps.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar
from zoneinfo import ZoneInfo

import numpy as np

from base.arrays import Ints
from cluster.live_tables import LiveTables
from cluster.predicted.pod_profiles import Profiles
from cluster.tracking import TrackedCluster
from forecast.service_key import ServiceKey
from kube.objects.objects import PodInfo
from placement.usable_forecast import usable_forecast
from tenants.ledger import QuotaLedger
from tenants.need import held, most_within, needed, with_parents
from tenants.need_inputs import STEP_SECONDS, Copied, asleep_in, copied, gathered, grouped, without_pods
from tenants.quota_admission import Use, committed, denial
from tenants.quota_amounts import Units
from tenants.quota_tree import EMPTY, QuotaTree
from tenants.seen_pods import SeenPods

logger = logging.getLogger(__name__)

T = TypeVar("T")

STEPS_SHOWN = 48
"""Half hours: how far ahead it is looked for the time of an admission, and what a report shows."""

_REFRESH_SECONDS = 300.0
_LONGEST_UNKNOWN_SECONDS = 60.0
_PODS_AT_ONCE = 256
_RUNS_STEPS = (1, 2, 4, 8, 16, 32, 48, 64, 96)
"""Lengths of runs, in half hours, for which times of admissions are looked for: a run counts as the next longer one."""

_MOST_ANSWERS = 4096


@dataclass(frozen=True, slots=True)
class NeedForecast:
    """Half hours of real time, step 0 the one under way when it was made.

    made, start : unix seconds; start of step 0
    need        : (n_steps, n_quotas, n_resources) that owners are expected to need
    held        : (n_steps, n_quotas, n_resources) of it, and of borrowers, what pods of today still have; of the
                  quotas' own pods
    used        : the same with all quotas below
    waiting     : (n_quotas, n_resources) of the quotas' own pods when it was made
    within      : see tenants.need.most_within
    """

    tree: QuotaTree
    profiles: Profiles
    zone: ZoneInfo
    made: float
    start: float
    need: Ints
    held: Ints
    used: Ints
    waiting: Ints
    within: tuple[Ints, ...]
    answers: dict[tuple[int, Units, int], int | None] = field(default_factory=dict)
    later: dict[tuple[int, int], tuple[Use, Ints]] = field(default_factory=dict)


class ExpectedNeed:
    """Called under the lock of the tables, but for `refresh`."""

    def __init__(
        self,
        tables: LiveTables,
        ledger: QuotaLedger,
        seen: SeenPods,
        *,
        longest_loan: float,
        loan_seconds: Callable[[PodInfo], float],
        pool: Callable[[], Ints] | None = None,
    ) -> None:
        """
        longest_loan       : seconds ahead for which the need of owners counts, at most
        loan_seconds, pool : see Quotas
        on_change          : called under the lock once other amounts are lent
        """
        self._tables, self._ledger, self._seen = tables, ledger, seen
        self._loan_seconds, self._pool = loan_seconds, pool
        self.on_change: list[Callable[[], None]] = []
        self._n_steps = STEPS_SHOWN + max(int(longest_loan // STEP_SECONDS) + 2, _RUNS_STEPS[0])
        self._clock = tables.clock
        self.forecast: NeedForecast | None = None
        self._is_looking = False
        self._asked: tuple[QuotaTree, float] = (EMPTY, 0.0)  # first question about quotas whose need is not known
        self._looked: tuple[QuotaTree, Profiles | None, float] = (EMPTY, None, -np.inf)
        self.failures = 0

    def __call__(self, seconds: float) -> Ints | None:
        """Return (n_quotas, n_resources) units that owners need at most within so many seconds; None = not known."""
        found, tree = self.forecast, self._ledger.tree
        if found is not None and found.tree is tree:
            over = max(0, int((self._clock() - found.start) // STEP_SECONDS))  # steps, if it was not made anew in time
            return found.within[min(over + _steps(seconds), len(found.within)) - 1]
        return tree.guaranteed if self._is_awaited(tree) else None

    def expect(self) -> None:
        """Announce that `refresh` is called again and again: until its first result nothing is lent, for a minute at
        most, counted from the first question."""
        self._is_looking = True

    def admitted_from(self, pod: PodInfo) -> float | None:
        """Return from when, in unix seconds, a pod that is not admitted now would be; None = not within a day, or there
        is no forecast. Others that wait may be admitted before it."""
        found, tree = self.forecast, self._ledger.tree
        row = tree.row_of(pod)
        if found is None or found.tree is not tree or row < 0:
            return None
        n = next((n for n in _RUNS_STEPS if n * STEP_SECONDS >= self._loan_seconds(pod)), _RUNS_STEPS[-1])
        question = row, self._ledger.units_of(pod), n
        if question not in found.answers:
            if len(found.answers) >= _MOST_ANSWERS:
                found.answers.clear()
            found.answers[question] = _first_step(found, *question, pool=None if self._pool is None else self._pool())
        step = found.answers[question]
        moment = None if step is None else found.start + step * STEP_SECONDS
        return moment if moment is not None and moment > self._clock() else None

    def clause(self, pod: PodInfo) -> str:
        """Return the same for the end of a sentence, '' = not known."""
        moment, found = self.admitted_from(pod), self.forecast
        if moment is None or found is None:
            return ""
        return f"; expected to be admitted from {local_time(moment, found.zone)}"

    # In a thread of its own

    def is_due(self) -> bool:
        """Return whether quotas or the model have changed, a half hour has begun, or some minutes have passed."""
        with self._tables.reading() as cluster:
            now, (tree, profiles, at) = self._clock(), self._looked
            return (
                self._ledger.tree is not tree
                or _profiles(cluster) is not profiles
                or not 0 <= now - at < _REFRESH_SECONDS
                or (self.forecast is not None and now >= self.forecast.start + STEP_SECONDS)
            )

    def refresh(self) -> None:
        """Find out what owners will need. If that fails, there is no forecast until the next time."""
        try:
            found, looked = self._computed()
        except Exception:
            self.failures += 1
            logger.exception("what tenants will need is not known: all that is idle is lent")
            with self._tables.reading() as cluster:
                self._looked = self._ledger.tree, _profiles(cluster), self._clock()
                self._put(None)
            return
        with self._tables.reading():
            self._looked = looked
            self._put(found)

    # Inside

    def _put(self, found: NeedForecast | None) -> None:
        before, self.forecast = self.forecast, found
        if not _lends_the_same(before, found):
            for listener in self.on_change:
                listener()

    def _computed(self) -> tuple[NeedForecast | None, tuple[QuotaTree, Profiles | None, float]]:
        now, ledger = self._clock(), self._ledger
        with self._tables.reading() as cluster:
            seen, runs = copied(cluster, ledger, now), cluster.expected_runs
            if seen is None:
                return None, (ledger.tree, _profiles(cluster), now)
        groups = grouped(seen, self._services_of(seen, [uid for uid in seen.charges if uid not in seen.seats]), runs)
        missing = without_pods(seen, (group.service for group in groups))
        examples, units = self._last_seen(seen, missing)
        rows = asleep_in(seen.tree, missing, examples)
        asleep = {service: (row, units.get(service)) for service, row in rows.items()}
        all_of_it = gathered(seen, groups, asleep, self._n_steps)
        for some in _chunks(list(all_of_it.examples.items())):
            with self._tables.reading():
                for service, pod in some:
                    self._seen.note(service, pod)
        need, own = needed(seen.tree, all_of_it.services, all_of_it.further), held(seen.tree, all_of_it.services)
        return (
            NeedForecast(
                tree=seen.tree,
                profiles=seen.profiles,
                zone=seen.horizon.zone,
                made=seen.now,
                start=all_of_it.start,
                need=need,
                held=own,
                used=with_parents(seen.tree, own),
                waiting=seen.waiting,
                within=most_within(need),
            ),
            (seen.tree, seen.profiles, now),
        )

    def _services_of(self, seen: Copied, waiting: list[str]) -> dict[str, ServiceKey]:
        """By UID, of pods without a node."""
        found = {}
        for some in _chunks(waiting):
            with self._tables.reading() as cluster:
                found.update({uid: cluster.state.service_key(seen.pods[uid]) for uid in some if uid in seen.pods})
        return found

    def _last_seen(
        self, seen: Copied, services: list[ServiceKey]
    ) -> tuple[dict[ServiceKey, PodInfo], dict[ServiceKey, Units]]:
        """Pods of services without any now, and what one takes; of those that were seen."""
        examples: dict[ServiceKey, PodInfo] = {}
        units: dict[ServiceKey, Units] = {}
        for some in _chunks(services):
            with self._tables.reading():
                for service in some:
                    pod = self._seen.last(service)
                    if pod is not None:
                        examples[service] = pod
                        units[service] = self._ledger.amounts.of(pod, seen.tree.resources)
        return examples, units

    def _is_awaited(self, tree: QuotaTree) -> bool:
        """Whether the first result for these quotas is on its way."""
        if not self._is_looking or self._looked[0] is tree:
            return False
        if self._asked[0] is not tree:
            self._asked = tree, self._clock()
        return self._clock() - self._asked[1] < _LONGEST_UNKNOWN_SECONDS


def _chunks(of: Sequence[T]) -> Iterator[Sequence[T]]:
    """What is done under the lock at once: a millisecond or so."""
    return (of[first : first + _PODS_AT_ONCE] for first in range(0, len(of), _PODS_AT_ONCE))


def _lends_the_same(before: NeedForecast | None, found: NeedForecast | None) -> bool:
    if before is None or found is None:
        return before is found
    return before.tree is found.tree and np.array_equal(before.need, found.need)


def _profiles(cluster: TrackedCluster) -> Profiles | None:
    predicted = usable_forecast(cluster)
    return None if predicted is None else predicted.profiles


def local_time(moment: float, zone: ZoneInfo) -> str:
    """Return hour and minute of the model's calendar, as in "23:30"."""
    return f"{datetime.fromtimestamp(moment, zone):%H:%M}"


def _steps(seconds: float) -> int:
    """Steps that a loan of so many seconds touches, if it begins at any moment of the one under way. Loans that are
    equal in whole half hours have the same."""
    return int(seconds // STEP_SECONDS) + 2


def _first_step(found: NeedForecast, row: int, asked: Units, n: int, *, pool: Ints | None) -> int | None:
    for step in range(1, STEPS_SHOWN):
        if (step, n) not in found.later:
            expected = found.need[step : step + n].max(axis=0)
            use = Use(found.held[step], found.used[step], found.waiting, expected, pool)
            found.later[step, n] = use, committed(found.tree, use)
        use, held_back = found.later[step, n]
        if denial(found.tree, use, row, asked, held_back=held_back) is None:
            return step
    return None
