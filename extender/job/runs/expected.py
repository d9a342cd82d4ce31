"""How long a pod is expected to run, and by when it has to start.

    what its annotation says  >  what was learned of its service  >  the default

No longer than activeDeadlineSeconds of its Job: then it is stopped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from extender.job.objects.job_runs import JobRuns
from extender.job.runs.run_times import LONGEST_RUN, SHORTEST_RUN, RunTimes
from extender.job.terms import JobTerms, said_run
from forecast.errors import InputError
from forecast.service_key import ServiceKey
from scorer.cluster.objects import PodInfo

__all__ = ["DEFAULT_RUN", "ExpectedRun", "ExpectedRuns", "Source", "due_time"]

DEFAULT_RUN: Final = 600.0

_NO_ANNOTATIONS: Final[Mapping[str, str]] = {}


class Source(Enum):
    """Where it is known from."""

    SAID = "annotation"
    LEARNED = "pods before"
    BOUNDED = "Jobs before"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class ExpectedRun:
    """Seconds from its start to its end.

    seconds : typically; for what it adds to the load
    long    : nearly always; for deadlines
    """

    seconds: float
    source: Source
    long: float

    def within(self, most: float) -> ExpectedRun:
        """The same, cut off."""
        if self.long <= most:
            return self
        return ExpectedRun(min(self.seconds, most), self.source, most)


class ExpectedRuns:
    """For any thread.

    jobs    : where the Job of a pod is looked up; None = nowhere
    default : seconds, where nothing is known
    """

    def __init__(self, run_times: RunTimes, *, jobs: JobRuns | None = None, default: float = DEFAULT_RUN) -> None:
        if not SHORTEST_RUN <= default <= LONGEST_RUN:
            raise InputError(
                f"the run time of unknown jobs is {default:g} s: it must be between {SHORTEST_RUN:g} s and "
                f"{LONGEST_RUN / 86_400:g} days, such as 10m"
            )
        self._run_times, self._jobs = run_times, jobs
        self._default = ExpectedRun(default, Source.DEFAULT, default)

    def of(self, pod: PodInfo, service: ServiceKey) -> ExpectedRun:
        """Of a pod."""
        run = self.of_service(service, pod.annotations)
        if self._jobs is None or pod.owner.kind != "Job":
            return run
        job = self._jobs.get(pod.namespace, pod.owner.name)
        if job is None or job.uid != pod.owner_uid or job.active_deadline_seconds is None:
            return run
        return run.within(max(SHORTEST_RUN, float(job.active_deadline_seconds)))

    def of_service(self, service: ServiceKey, annotations: Mapping[str, str] = _NO_ANNOTATIONS) -> ExpectedRun:
        """Of the next pod of a service. annotations: ours, of its template."""
        said = said_run(annotations) if annotations else None
        if said is not None:
            return ExpectedRun(said, Source.SAID, said)
        learned = self._run_times.expected(service)
        if learned is None:
            return self._default
        return ExpectedRun(learned.typical, Source.BOUNDED if learned.is_bound else Source.LEARNED, learned.long)


def due_time(pod: PodInfo, terms: JobTerms, run: ExpectedRun) -> float:
    """The latest moment at which it may start and be on time, in unix seconds; inf = it has all the time in the world.

        max(its creation, min(latest start, deadline - long run))

    One that was late before it was created is due at its creation: nobody gets ahead by asking for the impossible.
    """
    return max(pod.created, min(terms.latest_start, terms.deadline - run.long))
