"""Durations that pods say, counted from the creation of their Jobs."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from forecast.service_key import Owner, ServiceKey
from kube.decoding.jobs import JobInfo
from scheduler.profiles.job.job_annotations import terms_of
from scheduler.profiles.job.run_start import DatedTerms
from tests.kube.api_objects import pod
from tests.kube.job_table import JobTable

PREFIX = "forecast-scheduler.io/"
POD = replace(
    pod("a", created=5_000.0),
    owner=Owner("Job", "work"),
    owner_uid="u",
    annotations={PREFIX + "deadline": "1h", PREFIX + "latest-start": "2026-11-22T06:00:00Z"},
)


def known(*, uid: str = "u", created: float = 1_000.0) -> DatedTerms:
    jobs = JobTable()
    jobs.put(JobInfo(POD.namespace, "work", uid, ServiceKey(POD.namespace, "Job", "work"), created=created))
    return DatedTerms(jobs)


def test_a_duration_counts_from_the_creation_of_the_job_and_a_time_is_a_time() -> None:
    terms, plain = known().of(POD), terms_of(POD)
    assert (terms.deadline, plain.deadline) == (4_600.0, 8_600.0)
    assert terms.latest_start == plain.latest_start
    again = replace(POD, uid="b", name="b", created=9_000.0)
    assert known().of(again) == terms


def test_without_the_job_it_counts_from_the_creation_of_the_pod() -> None:
    for dated in (DatedTerms(JobTable()), known(uid="of an earlier Job"), known(created=0.0)):
        assert dated.of(POD) == terms_of(POD)
    assert known().is_settled(POD) and not known(uid="of an earlier Job").is_settled(POD)
    other = replace(POD, owner=Owner("ReplicaSet", "work"))
    assert known().of(other) == terms_of(POD) and known().is_settled(other)


@pytest.mark.parametrize(
    ("created", "succeeded", "failed", "is_open"),
    [
        (1_030.0, 8, 0, True),  # of the first round: it was to start with the others
        (9_000.0, 8, 0, False),  # of a later round
        (9_000.0, 0, 1, False),  # tried again
        (9_000.0, 0, 0, True),  # the Job has not begun
    ],
)
def test_what_a_job_makes_after_others_of_it_have_ended_was_not_to_start_by_then(
    created: float, succeeded: int, failed: int, is_open: bool
) -> None:
    jobs = JobTable()
    of = ServiceKey(POD.namespace, "Job", "work")
    job = JobInfo(POD.namespace, "work", "u", of, created=990.0, started=1_000.0, succeeded=succeeded, failed=failed)
    jobs.put(job)
    said = {PREFIX + "latest-start": "30m", PREFIX + "deadline": "8h"}
    terms = DatedTerms(jobs).of(replace(POD, created=created, annotations=said))
    assert terms.latest_start == (990.0 + 1800 if is_open else math.inf)
    assert terms.deadline == 990.0 + 8 * 3600
