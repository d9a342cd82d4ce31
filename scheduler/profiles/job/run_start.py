"""From when on the durations that pods say count: of a pod of a Job from the creation of the Job.

A pod that is tried again, or taken back from a provider, is another pod with another creation; what its Job was to have
done by some time it is still to have done by then. Pods that a Job makes once others of it have ended were not to start
by then: it had started.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from kube.decoding.jobs import JobInfo
from kube.objects.objects import PodInfo
from scheduler.profiles.job.job_annotations import JobTerms, terms_of

_FIRST_ROUND: Final = 60.0
"""Seconds within which a Job's controller makes the pods that it runs side by side at first."""


class DatedTerms:
    """When the terms of pods count from, for any thread. jobs: by UID."""

    def __init__(self, jobs: Mapping[str, JobInfo]) -> None:
        self._jobs = jobs

    def of(self, pod: PodInfo) -> JobTerms:
        """What a pod says; see terms_of."""
        terms = terms_of(pod, self.since)
        if terms.latest_start == math.inf or not self._has_started_before(pod):
            return terms
        return replace(terms, latest_start=math.inf)

    def since(self, pod: PodInfo) -> float:
        """Unix seconds from which its durations count: its own creation if it is of no Job, or of one not known yet."""
        job = self._job_of(pod)
        return (job.created if job is not None else 0.0) or pod.created

    def is_settled(self, pod: PodInfo) -> bool:
        """Whether `since` stays as it is: False of a pod whose Job is not known."""
        return pod.owner.kind != "Job" or self._job_of(pod) is not None

    def _has_started_before(self, pod: PodInfo) -> bool:
        job = self._job_of(pod)
        if job is None or not (job.succeeded or job.failed):
            return False
        return pod.created > (job.started or job.created) + _FIRST_ROUND

    def _job_of(self, pod: PodInfo) -> JobInfo | None:
        return self._jobs.get(pod.owner_uid) if pod.owner.kind == "Job" else None
