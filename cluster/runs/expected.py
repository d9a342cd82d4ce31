"""Which pods run for a while and end, and how long one is expected to run: by its annotation, the pods before, or the
model.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Final

from base.errors import InputError
from base.setting_group import duration_seconds
from cluster.runs.run_times import SHORTEST_RUN, RunTimes
from forecast.job_runs import LONGEST_RUN, RunEstimate
from forecast.one_off_owners import known_as
from forecast.service_key import ServiceKey
from kube.decoding.jobs import JobInfo
from kube.objects.objects import ANNOTATION_PREFIX, PodInfo

_RUN_ON: Final = frozenset({"DaemonSet", "Node", "ReplicaSet", "ReplicationController", "StatefulSet"})
"""Controllers that replace a pod which ends."""

EXPECTED_RUN_ANNOTATION: Final = ANNOTATION_PREFIX + "expected-run"

LONGEST_TEXT: Final = 64
"""Characters. Any client may write annotations: longer texts are refused before they are parsed or kept."""

DEFAULT_RUN: Final = 600.0
_MOST_RUNS_OF_MODEL: Final = 8
_NO_ANNOTATIONS: Final[Mapping[str, str]] = {}


def is_job_pod(pod: PodInfo, scheduler_names: Collection[str] = ()) -> bool:
    """Return whether a pod is of a Job, or of the job profile without a controller that keeps it running.

    scheduler_names : of the job profile; bare pods and those of workflow engines come with it
    """
    kind = pod.owner.kind
    return kind == "Job" or (pod.scheduler_name in scheduler_names and kind not in _RUN_ON)


def said_run(annotations: Mapping[str, str]) -> float | None:
    """Seconds that a pod of these annotations expects to run; None = they do not say, or not so that it can be read."""
    text = annotations.get(EXPECTED_RUN_ANNOTATION)
    return None if text is None else annotated_run(text[: LONGEST_TEXT + 1])


@lru_cache(maxsize=8192)  # pods of one template say the same
def annotated_run(text: str) -> float | None:
    """Seconds of a run, at least SHORTEST_RUN; None = the text is no duration above 0."""
    seconds = annotated_duration(text)
    return max(seconds, SHORTEST_RUN) if seconds is not None and seconds > 0 else None


def annotated_duration(text: str) -> float | None:
    """Seconds of a duration of at most a year; None = the text is none."""
    seconds = duration_seconds(text) if len(text) <= LONGEST_TEXT else None
    return seconds if seconds is not None and seconds <= LONGEST_RUN else None


class RunSource(Enum):
    """Where it is known from."""

    SAID = "annotation"
    LEARNED = "pods before"
    MODEL = "model"
    BOUNDED = "Jobs before"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class ExpectedRun:
    """Seconds from its start to its end.

    seconds : typically; for what it adds to the load
    long    : nearly always; for deadlines
    stopped : unix seconds at which its Job is ended, whether or not it is done; inf = never
    rounds  : number of such runs one after the other, this one included, until its Job is complete
    """

    seconds: float
    source: RunSource
    long: float
    stopped: float = math.inf
    rounds: int = 1

    def within(self, most: float) -> ExpectedRun:
        """The same, cut off."""
        if self.long <= most:
            return self
        return replace(self, seconds=min(self.seconds, most), long=most)


class ExpectedRuns:
    """Expected runs of pods and services, for any thread.

    jobs            : by UID, where the Job of a pod is looked up; None = nowhere
    default         : seconds, where nothing is known
    scheduler_names : of the job profile, see `is_job_pod`
    """

    def __init__(
        self,
        run_times: RunTimes,
        *,
        jobs: Mapping[str, JobInfo] | None = None,
        default: float = DEFAULT_RUN,
        scheduler_names: Collection[str] = (),
    ) -> None:
        if not SHORTEST_RUN <= default <= LONGEST_RUN:
            raise InputError(
                f"the run time of unknown jobs is {default:g} s: it must be between {SHORTEST_RUN:g} s and "
                f"{LONGEST_RUN / 86_400:g} days, such as 10m"
            )
        self._run_times, self._names = run_times, frozenset(scheduler_names)
        self._jobs: Mapping[str, JobInfo] = {} if jobs is None else jobs  # an empty one is filled later
        self._default = ExpectedRun(default, RunSource.DEFAULT, default)
        self._of_model: Mapping[ServiceKey, RunEstimate] = {}
        self.knows_groups = False  # whether the model has groups of one-off owners

    def use_model(self, runs: Mapping[ServiceKey, RunEstimate]) -> None:
        """Start from the run lengths that a model has learned, in place of those of the model before it."""
        self._of_model = runs
        self.knows_groups = any(service.is_group for service in runs)

    def is_job(self, pod: PodInfo) -> bool:
        """Whether a pod runs for a while and ends."""
        return is_job_pod(pod, self._names)

    def seconds(self, pod: PodInfo, service: ServiceKey) -> float | None:
        """Seconds that a pod runs from its start; None = on and on. Quick: called for each pod that changes."""
        if not is_job_pod(pod, self._names) and self._group_of(service) is None:
            return None
        seconds = said_run(pod.annotations) if pod.annotations else None
        if seconds is None:
            known, _ = self._known(service)
            seconds = self._default.seconds if known is None else known.typical
        most = self._most(pod)
        return seconds if most is None else min(seconds, most)

    def of(self, pod: PodInfo, service: ServiceKey) -> ExpectedRun:
        """The expected run of a pod, bounded by its Job."""
        run, job = self.of_service(service, pod.annotations), self._job_of(pod)
        if job is None:
            return run
        run = replace(run, rounds=job.rounds(job.succeeded))
        most = self._most(pod)
        if most is None or job.active_deadline_seconds is None:
            return run
        # A Job whose start was not seen yet has just been taken up: its controller makes no pods before.
        began = pod.created if job.started is None else job.started
        return replace(run.within(most), stopped=began + job.active_deadline_seconds)

    def of_service(self, service: ServiceKey, annotations: Mapping[str, str] = _NO_ANNOTATIONS) -> ExpectedRun:
        """The expected run of the next pod of a service. annotations: ours, of its template."""
        said = said_run(annotations) if annotations else None
        if said is not None:
            return ExpectedRun(said, RunSource.SAID, said)
        known, source = self._known(service)
        return self._default if known is None else ExpectedRun(known.typical, source, known.long)

    def _known(self, service: ServiceKey) -> tuple[RunEstimate | None, RunSource]:
        """What model and process know of a service; None = nothing."""
        group = self._group_of(service)
        seen, of_model = self._run_times.expected(service), self._of_model.get(group or service)
        if of_model is not None and (seen is None or seen.is_bound):
            return of_model, RunSource.MODEL
        if seen is None:
            return None, RunSource.DEFAULT
        if seen.is_bound:
            return seen, RunSource.BOUNDED
        return seen if of_model is None else refined(of_model, seen), RunSource.LEARNED

    def _group_of(self, service: ServiceKey) -> ServiceKey | None:
        """The group of one-off owners that the model knows a service as; None = it is in none."""
        group = known_as(self._of_model, service) if self.knows_groups else None
        return group if group is not None and group.is_group else None

    def _job_of(self, pod: PodInfo) -> JobInfo | None:
        return self._jobs.get(pod.owner_uid) if pod.owner.kind == "Job" else None

    def _most(self, pod: PodInfo) -> float | None:
        """Seconds after which its Job is stopped; None = never."""
        job = self._job_of(pod)
        if job is None or job.active_deadline_seconds is None:
            return None
        return max(SHORTEST_RUN, float(job.active_deadline_seconds))


def refined(of_model: RunEstimate, seen: RunEstimate) -> RunEstimate:
    """What a model has learned of a service, refined by what this process has seen of it.

        ln seconds = (n ln seen + m ln of_model) / (n + m),    m = min(runs of the model, 8)

    A mean of logarithms, since a run that has doubled is as far off as one that has halved. The model counts for eight
    runs at most: it knows weeks, and a job that was changed today is to be believed today.
    """
    m = min(of_model.n, _MOST_RUNS_OF_MODEL)
    share = seen.n / (seen.n + m)

    def between(a: float, b: float) -> float:
        return math.exp((1.0 - share) * math.log(a) + share * math.log(b))

    return RunEstimate(between(of_model.typical, seen.typical), between(of_model.long, seen.long), seen.n + m)
