"""How long a run is expected to take."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from base.errors import InputError
from cluster.runs.expected import ExpectedRun, ExpectedRuns, RunSource
from cluster.runs.run_times import RunTimes
from forecast.service_key import Owner, ServiceKey
from kube.decoding.jobs import JobInfo
from tests.cluster.runs.made_up import POD, REPORT, run, times
from tests.kube.job_table import JobTable

SAYS = replace(POD, annotations={"forecast-scheduler.io/expected-run": "20m"})


def test_what_is_said_and_can_be_read_is_known_better_than_what_was_learned() -> None:
    nothing, learned = ExpectedRuns(RunTimes()), ExpectedRuns(times(60.0, 100.0))
    assert nothing.of(POD, REPORT) == ExpectedRun(600.0, RunSource.DEFAULT, 600.0)
    assert learned.of(POD, REPORT) == ExpectedRun(80.0, RunSource.LEARNED, 150.0)
    for runs in (nothing, learned):
        assert runs.of(SAYS, REPORT) == ExpectedRun(1200.0, RunSource.SAID, 1200.0)
    jobs = RunTimes()
    jobs.learn_from_jobs([run(seconds=100.0)])
    assert ExpectedRuns(jobs).of(POD, REPORT) == ExpectedRun(100.0, RunSource.BOUNDED, 200.0)
    odd = replace(POD, annotations={"forecast-scheduler.io/expected-run": "a while"})
    assert ExpectedRuns(times(60.0)).of(odd, REPORT).source is RunSource.LEARNED


def test_the_next_pod_of_a_service() -> None:
    runs = ExpectedRuns(times(60.0), default=30.0)
    assert runs.of_service(REPORT) == runs.of(POD, REPORT)
    assert runs.of_service(REPORT, SAYS.annotations) == runs.of(SAYS, REPORT)
    assert runs.of_service(ServiceKey("shop", "CronJob", "other")).seconds == 30.0


@pytest.mark.parametrize(
    ("stopped_after", "expected"),
    [(None, (80.0, 150.0)), (1000, (80.0, 150.0)), (120, (80.0, 120.0)), (30, (30.0, 30.0))],
)
def test_no_run_is_longer_than_its_job_may_be(stopped_after: int | None, expected: tuple[float, float]) -> None:
    jobs = JobTable()
    jobs.put(JobInfo("shop", "report-1", "j", REPORT, active_deadline_seconds=stopped_after))
    runs = ExpectedRuns(times(60.0, 100.0), jobs=jobs)
    of_pod = runs.of(POD, REPORT)
    assert (of_pod.seconds, of_pod.source, of_pod.long) == (expected[0], RunSource.LEARNED, expected[1])
    for stranger in (replace(POD, owner_uid="of-another-job"), replace(POD, owner=Owner("Workflow", "report-1"))):
        assert runs.of(stranger, REPORT).long == 150.0


@pytest.mark.parametrize("default", [0.0, -1.0, math.inf, math.nan])
def test_a_default_that_is_no_run_time_is_refused(default: float) -> None:
    with pytest.raises(InputError, match="such as 10m"):
        ExpectedRuns(RunTimes(), default=default)
