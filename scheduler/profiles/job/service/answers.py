"""What the service asks of the job profile: implemented by whoever composes it. All times in unix seconds.

Reports are asked for whole and cut to what was asked by the route: a burst is some thousand pods.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scheduler.service.answers import QueueReport


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """A pod that waits for its start. due: its latest one; run_seconds: expected; why: for people."""

    namespace: str
    name: str
    uid: str
    owner: str
    start: float
    due: float
    run_seconds: float
    why: str


@dataclass(frozen=True, slots=True)
class DemandPoint:
    """What is expected to be created from `start` on, for `seconds`."""

    start: float
    seconds: float
    pods: float
    cpu_cores: float
    memory_bytes: float


@dataclass(frozen=True, slots=True)
class StormReport:
    """Many pods expected at once. reserved_*: headroom held for it now; state: for people."""

    start: float
    end: float
    pods: float
    cpu_cores: float
    memory_bytes: float
    reserved_cpu_cores: float = 0.0
    reserved_memory_bytes: float = 0.0
    state: str = ""
    services: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ProviderReport:
    """A provider of virtual nodes. quota_*: None = no limit; backs_off_until: None = it does not."""

    name: str
    nodes: int
    pods: int
    cpu_cores: float
    memory_bytes: float
    quota_cpu_cores: float | None = None
    quota_memory_bytes: float | None = None
    quota_pods: int | None = None
    weight: float = 1.0
    backs_off_until: float | None = None
    state: str = ""


@dataclass(frozen=True, slots=True)
class JobPlan:
    """All that is asked for at once. jobs: by start; forecast: '' = there is one, else why not."""

    made: float
    jobs: Sequence[PlannedJob] = ()
    demand: Sequence[DemandPoint] = ()
    storms: Sequence[StormReport] = ()
    providers: Sequence[ProviderReport] = ()
    queues: Sequence[QueueReport] = ()
    no_forecast_because: str = ""


@dataclass(frozen=True, slots=True)
class JobReports:
    """Where the parts of a plan come from; each for any thread, and milliseconds at most.

    clock : unix seconds
    """

    clock: Callable[[], float]
    jobs: Callable[[], Sequence[PlannedJob]] = tuple
    demand: Callable[[], Sequence[DemandPoint]] = tuple
    storms: Callable[[], Sequence[StormReport]] = tuple
    providers: Callable[[], Sequence[ProviderReport]] = tuple
    queues: Callable[[], Sequence[QueueReport]] = tuple
    no_forecast_because: Callable[[], str] = str

    def plan(self) -> JobPlan:
        """As things are."""
        return JobPlan(
            made=self.clock(),
            jobs=self.jobs(),
            demand=self.demand(),
            storms=self.storms(),
            providers=self.providers(),
            queues=self.queues(),
            no_forecast_because=self.no_forecast_because(),
        )
