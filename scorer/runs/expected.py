"""How long a pod is expected to run.

    what its annotation says  >  what was learned of its service  >  the default

No longer than activeDeadlineSeconds of its Job: then it is stopped. That clock starts when the controller takes the Job
up, whether or not its pods run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from forecast.errors import InputError
from forecast.run_length import LONGEST_RUN
from forecast.service_key import ServiceKey
from scorer.cluster.job_runs import JobRuns
from scorer.cluster.objects import PodInfo
from scorer.runs.run_times import SHORTEST_RUN, RunTimes
from scorer.runs.said_run import said_run

__all__ = ["DEFAULT_RUN", "ExpectedRun", "ExpectedRuns", "Source"]

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
    stopped : unix seconds at which its Job is ended, whether or not it is done; inf = never
    rounds  : so many such runs one after the other, this one included, until its Job is complete
    """

    seconds: float
    source: Source
    long: float
    stopped: float = math.inf
    rounds: int = 1

    def within(self, most: float) -> ExpectedRun:
        """The same, cut off."""
        if self.long <= most:
            return self
        return replace(self, seconds=min(self.seconds, most), long=most)


class ExpectedRuns:
    """For any thread.

    jobs    : where the Job of a pod is looked up; None = nowhere
    default : seconds, where nothing is known
    """

    def __init__(
        self,
        run_times: RunTimes,
        *,
        jobs: JobRuns | None = None,
        default: float = DEFAULT_RUN,
    ) -> None:
        if not SHORTEST_RUN <= default <= LONGEST_RUN:
            raise InputError(
                f"the run time of unknown jobs is {default:g} s: it must be between {SHORTEST_RUN:g} s and "
                f"{LONGEST_RUN / 86_400:g} days, such as 10m"
            )
        self._run_times, self._jobs = run_times, jobs
        self._default = ExpectedRun(default, Source.DEFAULT, default)

    def of(self, pod: PodInfo, service: ServiceKey) -> ExpectedRun:
        """The expected run of a pod, bounded by its Job."""
        run = self.of_service(service, pod.annotations)
        if self._jobs is None or pod.owner.kind != "Job":
            return run
        job = self._jobs.get(pod.namespace, pod.owner.name)
        if job is None or job.uid != pod.owner_uid:
            return run
        run = replace(run, rounds=job.rounds(job.succeeded))
        if job.active_deadline_seconds is None:
            return run
        most = float(job.active_deadline_seconds)
        # A Job whose start was not seen yet has just been taken up: nobody makes its pods before.
        began = pod.created if job.started is None else job.started
        return replace(run.within(max(SHORTEST_RUN, most)), stopped=began + most)

    def of_service(self, service: ServiceKey, annotations: Mapping[str, str] = _NO_ANNOTATIONS) -> ExpectedRun:
        """The expected run of the next pod of a service. annotations: ours, of its template."""
        said = said_run(annotations) if annotations else None
        if said is not None:
            return ExpectedRun(said, Source.SAID, said)
        learned = self._run_times.expected(service)
        if learned is None:
            return self._default
        return ExpectedRun(learned.typical, Source.BOUNDED if learned.is_bound else Source.LEARNED, learned.long)
