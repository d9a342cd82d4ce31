"""How long the pods of a service ran: the last of them, and what to expect of the next.

    pods that finish --learn--------------> RunTimes --expected--> RunEstimate
    Jobs that have completed --learn_from_jobs-->       upper bounds, while no pod was seen

Nothing is written down: after a restart it is learned anew from the Jobs and finished pods that the API server has.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from forecast.run_length import LONGEST_RUN, RunEstimate, estimate
from forecast.service_key import ServiceKey
from kube.decoding.jobs import JobInfo, JobOutcome

REMEMBERED_RUNS: Final = 64
"""Of each service, the latest."""

SHORTEST_RUN: Final = 1.0
"""Kubernetes writes times in whole seconds: what began and ended in the same one took up to a second."""

_LASTING_SERVICES: Final = 8192
_PASSING_SERVICES: Final = 2048
_PASSING_KINDS: Final = frozenset({"Job", "Pod"})
"""Services of one. They come under ever new names, and are not to push out the CronJobs that run once a day."""


@dataclass(slots=True)
class _Seen:
    """bounds: seconds by UID of the Job, oldest first."""

    runs: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED_RUNS))
    bounds: dict[str, float] = field(default_factory=dict)
    estimate: RunEstimate = RunEstimate(0.0, 0.0, 0)  # noqa: RUF009 - frozen


class RunTimes:
    """For any thread; bounded: beyond the limits the service that was not asked or heard of for longest is forgotten.

    lasting, passing : how many services are remembered; passing are those of bare Jobs and pods
    """

    def __init__(self, *, lasting: int = _LASTING_SERVICES, passing: int = _PASSING_SERVICES) -> None:
        self._lasting, self._passing = _Latest(lasting), _Latest(passing)
        self._lock = threading.Lock()

    def expected(self, service: ServiceKey) -> RunEstimate | None:
        """What to expect of its next pod; None = nothing was seen of it."""
        with self._lock:
            seen = self._table(service).get(service)
            return None if seen is None else seen.estimate

    def learn(self, service: ServiceKey, seconds: float, *, was_cut: bool = False) -> None:
        """Learn from a pod of the service that has ended. A length of zero or less is ignored.

        was_cut : it failed or was deleted: its length counts only if it ran longer than pods typically do
        """
        if not _is_time(seconds):
            return
        with self._lock:
            known = self._table(service).get(service)
            if was_cut and (known is None or not known.runs or seconds <= known.estimate.typical):
                return
            seen = self._table(service).make(service)
            seen.runs.append(_bounded(seconds))
            seen.bounds.clear()
            seen.estimate = estimate(seen.runs)

    def learn_from_jobs(self, jobs: Iterable[JobInfo]) -> None:
        """Learn from Jobs in any state; each counts once, however often it is reported.

        Those whose pods all could run side by side and did not fail: none of them took longer than the whole.
        """
        for job in jobs:
            seconds = _seconds_of(job)
            if seconds is None:
                continue
            with self._lock:
                seen = self._table(job.service).make(job.service)
                if seen.runs:
                    continue
                seen.bounds[job.uid] = seconds
                if len(seen.bounds) > REMEMBERED_RUNS:
                    del seen.bounds[next(iter(seen.bounds))]
                seen.estimate = estimate(seen.bounds.values(), is_bound=True)

    def __len__(self) -> int:
        """Services of which something is known."""
        return len(self._lasting.of) + len(self._passing.of)

    def _table(self, service: ServiceKey) -> _Latest:
        return self._passing if service.kind in _PASSING_KINDS else self._lasting


class _Latest:
    """What was asked for last, up to a number."""

    def __init__(self, most: int) -> None:
        self._most = max(1, most)
        self.of: OrderedDict[ServiceKey, _Seen] = OrderedDict()

    def get(self, service: ServiceKey) -> _Seen | None:
        seen = self.of.get(service)
        if seen is not None:
            self.of.move_to_end(service)
        return seen

    def make(self, service: ServiceKey) -> _Seen:
        seen = self.get(service)
        if seen is None:
            while len(self.of) >= self._most:
                self.of.popitem(last=False)
            seen = self.of[service] = _Seen()
        return seen


def _is_time(seconds: float) -> bool:
    return math.isfinite(seconds) and 0 <= seconds <= LONGEST_RUN


def _bounded(seconds: float) -> float:
    return max(SHORTEST_RUN, seconds)


def _seconds_of(job: JobInfo) -> float | None:
    """At most how long each pod of a Job ran; None = it does not say."""
    if job.outcome is not JobOutcome.COMPLETE or job.started is None or job.finished is None or job.failed:
        return None
    if job.completions is None or not 1 <= job.completions <= job.parallelism:
        return None
    seconds = job.finished - job.started
    return _bounded(seconds) if _is_time(seconds) else None
