"""Which pods of a Job may be taken back before it would fail of that."""

from __future__ import annotations

from typing import Any

import pytest

from forecast.service_key import Owner, ServiceKey
from kube.decoding.job_failing import Failing, OnDisruption
from kube.decoding.jobs import JobInfo
from scheduler.profiles.job.serverless.failure_allowance import Affording, pods_to_spare
from tests.kube.job_table import JobTable
from tests.scheduler.profiles.job.serverless.providers_world import job_pod

SERVICE = ServiceKey("shop", "Job", "job")


def a_run(failing: Failing | None = None, *, uid: str = "uid-of-job", **counts: Any) -> JobInfo:
    return JobInfo("shop", "job", uid, SERVICE, failing=failing or Failing(), **counts)


def taken(affording: Affording, count: int, now: float, *, first: int = 0) -> int:
    """Of so many pods."""
    n = 0
    affording.begin(now)
    for number in range(first, first + count):
        pod = job_pod(f"p-{number}")
        if not affording.refusal(pod):
            affording.takes(pod, now)
            n += 1
    return n


@pytest.mark.parametrize(
    ("failing", "counts", "expected"),
    [
        (Failing(), {}, 5),
        (Failing(), {"failed": 3, "uncounted_failed": 1}, 1),
        (Failing(), {"failed": 6}, 0),
        (Failing(limit=0), {}, 0),
        (Failing(), {"terminating": 2}, 5),
        (Failing(replaces_only_ended=True), {"terminating": 2}, 3),
        (Failing(on_disruption=OnDisruption.IGNORED), {"failed": 6}, None),
        (Failing(on_disruption=OnDisruption.FATAL), {}, 0),
    ],
)
def test_one_failure_is_left_to_a_job(failing: Failing, counts: dict[str, Any], expected: int | None) -> None:
    assert pods_to_spare(a_run(failing, **counts)) == expected


def test_what_was_taken_counts_before_and_after_the_controller_has_counted_it() -> None:
    jobs = JobTable()
    affording = Affording(jobs)
    jobs.put(a_run(Failing(limit=10)))
    assert taken(affording, 7, 100.0) == 7
    assert taken(affording, 7, 101.0, first=7) == 2
    jobs.put(a_run(Failing(limit=10), failed=9))
    assert taken(affording, 7, 300.0, first=14) == 0
    jobs.put(a_run(Failing(limit=20), failed=9))
    assert taken(affording, 20, 301.0, first=21) == 10


def test_one_that_stays_after_all_is_given_back() -> None:
    jobs = JobTable()
    affording = Affording(jobs)
    jobs.put(a_run(Failing(limit=2)))
    assert taken(affording, 3, 100.0) == 1
    affording.stays("p-0")
    assert taken(affording, 3, 101.0, first=1) == 1


def test_one_that_is_asked_for_again_counts_once() -> None:
    jobs = JobTable()
    affording = Affording(jobs)
    jobs.put(a_run(Failing(limit=3)))
    assert [taken(affording, 1, now) for now in (100.0, 130.0)] == [1, 1]
    assert taken(affording, 2, 131.0, first=1) == 1


def test_a_job_that_is_not_known_loses_nothing_and_others_than_jobs_are_not_limited() -> None:
    jobs = JobTable()
    affording = Affording(jobs)
    jobs.put(a_run(uid="of an earlier one of this name"))
    affording.begin(0.0)
    assert "not known" in affording.refusal(job_pod("p"))
    replica = job_pod("r", owner=Owner("ReplicaSet", "job"))
    assert affording.refusal(replica) == ""
    affording.takes(replica, 0.0)
    assert not affording._taken


def test_nothing_is_remembered_for_long() -> None:
    jobs = JobTable()
    affording = Affording(jobs)
    jobs.put(a_run(Failing(on_disruption=OnDisruption.IGNORED)))
    assert taken(affording, 50, 100.0) == 50
    affording.begin(161.0)
    assert not affording._taken and not affording._not_counted
