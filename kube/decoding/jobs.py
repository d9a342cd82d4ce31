"""Jobs: runs that are due, under way or over. Whose run it is, how far it is, when it began and ended.

https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/job-v1/
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from forecast.service_key import NO_OWNER, Owner, ServiceKey, service_of_pod
from kube.decoding import wire
from kube.decoding.job_specs import (
    DEFAULT_FAILING,
    NO_TEMPLATE,
    Failing,
    JobSpecJson,
    PodTemplate,
    TemplateOwner,
    failing_of,
    pod_template,
)
from kube.decoding.object_decoding import controller, created_at, namespace_of, uid_of
from kube.decoding.wire_base import Int32, Text, Time, Wire


class JobOutcome(Enum):
    """How a Job ended."""

    COMPLETE = "Complete"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class JobInfo(TemplateOwner):
    """A Job.

    service     : that of its pods: its CronJob or other owner, else itself
    started     : when its controller took it up, again after a suspension; None = not yet
    finished    : when it ended; None = it has not
    outcome     : None = it has not ended
    suspended   : its pods are not to run now (Kueue suspends what it has not admitted)
    completions : None = a work queue
    failing     : how many of its pods may fail, and which do not count
    active, ready, succeeded, failed : pods, as its controller counted last
    uncounted_failed : pods that it is about to count as failed, too
    terminating : pods being deleted that have not ended
    """

    namespace: str
    name: str
    uid: str
    service: ServiceKey
    created: float = 0.0
    started: float | None = None
    finished: float | None = None
    outcome: JobOutcome | None = None
    suspended: bool = False
    parallelism: int = 1
    completions: int | None = 1
    completion_mode: str = "NonIndexed"
    active_deadline_seconds: int | None = None
    failing: Failing = DEFAULT_FAILING
    template: PodTemplate = NO_TEMPLATE
    active: int = 0
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    uncounted_failed: int = 0
    terminating: int = 0

    @property
    def owner(self) -> Owner:
        """The controller of the Job, such as its CronJob; NO_OWNER if it has none."""
        if (self.service.kind, self.service.name) == ("Job", self.name):
            return NO_OWNER
        return Owner(self.service.kind, self.service.name)


class JobCondition(Wire):
    """status.conditions[] of a Job."""

    type: Text
    status: Text = ""
    last_transition_time: Time | None = None


class UncountedPods(Wire):
    """status.uncountedTerminatedPods: UIDs."""

    failed: list[Text] | None = None


class JobStatus(Wire):
    """status of a Job."""

    start_time: Time | None = None
    completion_time: Time | None = None
    active: Int32 | None = None
    ready: Int32 | None = None
    succeeded: Int32 | None = None
    failed: Int32 | None = None
    terminating: Int32 | None = None
    uncounted_terminated_pods: UncountedPods | None = None
    conditions: list[JobCondition] | None = None


class JobJson(Wire):
    """A Job (batch/v1)."""

    metadata: wire.Metadata
    spec: JobSpecJson | None = None
    status: JobStatus | None = None


_NONE_UNCOUNTED: Final = UncountedPods()
_OUTCOMES: Final = {one.value: one for one in JobOutcome}


def job_info(job: JobJson) -> JobInfo:
    """A Job. Raises InputError for a quantity in its template that cannot be read."""
    metadata, spec, status = job.metadata, job.spec or JobSpecJson(), job.status or JobStatus()
    namespace = namespace_of(metadata)
    outcome, finished = _ending(status)
    return JobInfo(
        namespace=namespace,
        name=metadata.name,
        uid=uid_of(metadata),
        service=service_of_pod(
            namespace, metadata.name, Owner("Job", metadata.name), owner_of_owner=controller(metadata)[0]
        ),
        created=created_at(metadata),
        started=status.start_time.timestamp() if status.start_time else None,
        finished=finished,
        outcome=outcome,
        suspended=bool(spec.suspend),
        parallelism=1 if spec.parallelism is None else spec.parallelism,
        completions=1 if spec.completions is None and spec.parallelism is None else spec.completions,
        completion_mode=spec.completion_mode or "NonIndexed",
        active_deadline_seconds=spec.active_deadline_seconds,
        failing=failing_of(
            spec.backoff_limit, spec.backoff_limit_per_index, spec.pod_failure_policy, spec.pod_replacement_policy
        ),
        template=pod_template(spec.template),
        active=status.active or 0,
        ready=status.ready or 0,
        succeeded=status.succeeded or 0,
        failed=status.failed or 0,
        uncounted_failed=len((status.uncounted_terminated_pods or _NONE_UNCOUNTED).failed or ()),
        terminating=status.terminating or 0,
    )


def _ending(status: JobStatus) -> tuple[JobOutcome | None, float | None]:
    """How and when it ended. Only a completed Job has a completionTime; of a failed one its condition says when."""
    for condition in status.conditions or ():
        outcome = _OUTCOMES.get(condition.type)
        if outcome is None or condition.status != "True":
            continue
        ended = (status.completion_time if outcome is JobOutcome.COMPLETE else None) or condition.last_transition_time
        return outcome, ended.timestamp() if ended else None
    return None, None
