"""For which times to ask: the evaluation times of one UTC day, and how many of them at once. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta

from base.arrays import Bools
from base.errors import InputError
from trainer.prometheus.http_answer import TooManySamples
from trainer.prometheus.queries import EVERY_NAMESPACE

MAX_POINTS_PER_SERIES = 11_000
_MOST_RANGES = 8

_DAY_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class Chunk:
    """Ticks first..last (both included) of some namespaces.

    everything : the namespaces are all there are, so the query need not name them (and sees ones we do not know of)
    """

    first: int
    last: int
    namespaces: tuple[str, ...] = ()
    everything: bool = True

    @property
    def regex(self) -> str:
        """Regular expression of the namespaces, for the placeholder {namespaces}."""
        # Names of namespaces are DNS labels (a-z, 0-9, -): nothing in them needs escaping.
        return EVERY_NAMESPACE if self.everything else "|".join(self.namespaces)

    @property
    def n_ticks(self) -> int:
        return self.last - self.first + 1


def chunks(
    pods: Mapping[str, int], first: int, last: int, *, max_samples: int, by_namespace: bool = True
) -> list[Chunk]:
    """Pieces of at most max_samples points each.

    pods         : series expected per namespace (or per anything, if by_namespace is False)
    by_namespace : whether the query can be restricted to namespaces
    """
    n_ticks = last - first + 1
    if n_ticks <= 0:
        return []
    total = sum(pods.values())
    whole = Chunk(first, last, tuple(sorted(pods)) if by_namespace else ())
    if total * n_ticks <= max_samples:
        return _in_time([whole], total, max_samples)
    if not by_namespace:
        return _in_time([whole], total, max_samples)
    pieces: list[Chunk] = []
    bundle: list[str] = []
    size = 0
    for namespace in sorted(pods, key=lambda name: (-pods[name], name)):
        if pods[namespace] * n_ticks > max_samples:
            pieces += _in_time([Chunk(first, last, (namespace,), False)], pods[namespace], max_samples)
            continue
        if bundle and (size + pods[namespace]) * n_ticks > max_samples:
            pieces += _in_time([Chunk(first, last, tuple(bundle), False)], size, max_samples)
            bundle, size = [], 0
        bundle.append(namespace)
        size += pods[namespace]
    if bundle:
        pieces += _in_time([Chunk(first, last, tuple(bundle), False)], size, max_samples)
    return pieces


def halves(chunk: Chunk, error: TooManySamples, *, step_seconds: int, by_namespace: bool) -> list[Chunk]:
    """The same in two pieces: by namespace while there are several, then by time down to an hour; else InputError."""
    if by_namespace and len(chunk.namespaces) > 1:
        middle = len(chunk.namespaces) // 2
        return [
            replace(chunk, namespaces=part, everything=False)
            for part in (chunk.namespaces[:middle], chunk.namespaces[middle:])
        ]
    if chunk.n_ticks * step_seconds > 3600:
        middle = (chunk.first + chunk.last) // 2
        return [replace(chunk, last=middle), replace(chunk, first=middle + 1)]
    where = f" of namespace {chunk.namespaces[0]}" if len(chunk.namespaces) == 1 and not chunk.everything else ""
    raise InputError(
        f"the server refuses even the smallest piece of query {error.name}{where} ({error.found}): raise its "
        "query.max-samples, or lower prometheus.max_samples if it answers with a limit of its own"
    ) from error


def uncovered_ranges(covered: Bools) -> list[tuple[int, int]]:
    """Runs of ticks (first, last) that recorded metrics do not cover: there the raw queries are asked.

    covered : (n_ticks,) whether anything was recorded at each tick
    Many small holes are one long range: what was recorded is kept there all the same.
    """
    runs: list[tuple[int, int]] = []
    start: int | None = None
    for tick, there in enumerate([*covered.tolist(), True]):
        if not there and start is None:
            start = tick
        elif there and start is not None:
            runs.append((start, tick - 1))
            start = None
    return [(runs[0][0], runs[-1][1])] if len(runs) > _MOST_RANGES else runs


def _in_time(pieces: Sequence[Chunk], n_series: int, max_samples: int) -> list[Chunk]:
    """Cut pieces so that n_series x ticks stays below the limit, and ticks below the limit per series."""
    most = max(1, min(MAX_POINTS_PER_SERIES, max_samples // max(1, n_series)))
    return [
        replace(piece, first=first, last=min(first + most - 1, piece.last))
        for piece in pieces
        for first in range(piece.first, piece.last + 1, most)
    ]


# The evaluation times of one UTC day. Pure.
#
# Tick k of day D is the time D 00:00 + (k + 1) x step. What a query answers there is the mean over the step before, so
# it is stored with the timestamp D 00:00 + k x step: the rows of a day lie within the day.


@dataclass(frozen=True, slots=True)
class DayGrid:
    """n_ticks evaluation times of a day, all of them unless the day is not over.

    first_second : seconds after midnight at which the first step begins
    """

    day: date
    step_seconds: int
    n_ticks: int
    first_second: int = 0

    @classmethod
    def of(cls, day: date, until: datetime, step_seconds: int) -> DayGrid:
        """The ticks of a day that are not after `until` (an aware datetime)."""
        if not 15 <= step_seconds <= 3600 or 3600 % step_seconds:
            raise InputError(
                f"prometheus.step is {step_seconds} s: it must divide an hour and be at least 15 s, for instance 5m"
            )
        elapsed = (until - datetime.combine(day, time(), UTC)).total_seconds()
        return cls(day, step_seconds, int(min(max(elapsed, 0), _DAY_SECONDS) // step_seconds))

    @classmethod
    def ending(cls, at: datetime, step_seconds: int, n_ticks: int) -> DayGrid:
        """The last ticks until a time that is a multiple of the step; they may begin on the day before."""
        begin = at - timedelta(seconds=step_seconds * n_ticks)
        midnight = datetime.combine(begin.date(), time(), UTC)
        return cls(begin.date(), step_seconds, n_ticks, int((begin - midnight).total_seconds()))

    @property
    def start(self) -> int:
        """Unix time of the first row: the day's midnight, unless it begins later."""
        return int(datetime.combine(self.day, time(), UTC).timestamp()) + self.first_second

    @property
    def origin(self) -> int:
        """Unix time of tick 0."""
        return self.start + self.step_seconds

    @property
    def seconds(self) -> int:
        """How much of the day there is."""
        return self.n_ticks * self.step_seconds

    def at(self, tick: int) -> datetime:
        """When a tick is evaluated."""
        return datetime.fromtimestamp(self.origin, UTC) + timedelta(seconds=tick * self.step_seconds)
