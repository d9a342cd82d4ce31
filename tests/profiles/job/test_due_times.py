"""By when a pod of a job has to start."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.runs.expected import ExpectedRun, ExpectedRuns, RunSource
from cluster.runs.run_times import RunTimes
from forecast.job_runs import LONGEST_RUN
from kube.decoding.jobs import JobInfo
from profiles.job.cron.cron_jobs import Concurrency, CronJobInfo, CronJobs
from profiles.job.due_times import DueTimes, due_time
from profiles.job.job_annotations import NO_TERMS, JobTerms, terms_of
from tests.cluster.runs.made_up import POD, REPORT, times
from tests.kube.job_table import JobTable


@pytest.mark.parametrize(
    ("started", "due"),
    [(9_000.0, 9_000.0 + 7200 - 150), (None, 10_000.0 + 7200 - 150), (2_000.0, 10_000.0)],
    ids=["taken up", "not seen yet", "stopped before a run could end"],
)
def test_who_may_wait_starts_long_enough_before_its_job_is_stopped(started: float | None, due: float) -> None:
    jobs = JobTable()
    jobs.put(JobInfo("shop", "report-1", "j", REPORT, started=started, active_deadline_seconds=7200))
    run = ExpectedRuns(times(60.0, 100.0), jobs=jobs).of(POD, REPORT)
    assert due_time(POD, JobTerms(latest_start=10_000.0 + 86_400), run) == due
    assert due_time(POD, JobTerms(deadline=10_000.0 + 86_400), run) == due
    assert due_time(POD, JobTerms(latest_start=10_001.0), run) == min(10_001.0, due)
    assert due_time(POD, NO_TERMS, run) == math.inf


def test_a_cron_job_without_a_zone_is_in_that_of_its_controller() -> None:
    cron_jobs = CronJobs()
    cron_jobs.put(CronJobInfo("shop", "report", "c", "0 2 * * *", concurrency=Concurrency.REPLACE))
    late = JobTerms(latest_start=10_000.0 + 7 * 86_400)
    made = {zone: DueTimes(ExpectedRuns(RunTimes()), cron_jobs, zone=zone) for zone in ("", "Europe/Berlin")}
    due = {zone: due_times.of(POD, REPORT, late) for zone, due_times in made.items()}
    assert due[""] - due["Europe/Berlin"] == 3600.0  # 10,000 s is a winter's morning of 1970


@pytest.mark.parametrize(
    ("schedule", "concurrency", "due"),
    [
        ("0 */6 * * *", Concurrency.REPLACE, 6 * 3600 - 600.0),
        ("0 */6 * * *", Concurrency.ALLOW, 86_400.0),
        ("0 */6 * * *", Concurrency.FORBID, 86_400.0),
        ("* * * * *", Concurrency.REPLACE, 4.0),  # there never is the time: at once
        ("@every 6h", Concurrency.REPLACE, 86_400.0),
        ("no schedule", Concurrency.REPLACE, 86_400.0),
    ],
)
def test_who_may_wait_starts_long_enough_before_the_next_run_replaces_it(
    schedule: str, concurrency: Concurrency, due: float
) -> None:
    cron_jobs = CronJobs()
    due_times = DueTimes(ExpectedRuns(RunTimes(), jobs=JobTable()), cron_jobs)
    one = replace(POD, created=4.0)
    terms = JobTerms(latest_start=86_400.0)
    assert due_times.of(one, REPORT, terms) == 86_400.0
    cron_jobs.put(CronJobInfo(REPORT.namespace, REPORT.name, "c", schedule, concurrency=concurrency))
    assert due_times.of(one, REPORT, terms) == due
    assert due_times.of(one, REPORT, NO_TERMS) == math.inf
    cron_jobs.put(CronJobInfo(REPORT.namespace, REPORT.name, "c", schedule, concurrency=concurrency, suspended=True))
    assert due_times.of(one, REPORT, terms) == 86_400.0


RUN = ExpectedRun(100.0, RunSource.LEARNED, 250.0)


@pytest.mark.parametrize(
    ("terms", "due"),
    [
        (NO_TERMS, math.inf),
        (JobTerms(latest_start=20_000.0), 20_000.0),
        (JobTerms(deadline=20_000.0), 19_750.0),
        (JobTerms(latest_start=19_000.0, deadline=20_000.0), 19_000.0),
        (JobTerms(latest_start=19_900.0, deadline=20_000.0), 19_750.0),
        (JobTerms(deadline=10_100.0), 10_000.0),
        (JobTerms(latest_start=-math.inf), 10_000.0),
    ],
)
def test_the_latest_moment_to_start(terms: JobTerms, due: float) -> None:
    assert due_time(POD, terms, RUN) == due


@given(
    st.dictionaries(
        st.sampled_from(["deadline", "latest-start", "expected-run"]),
        st.one_of(st.text(max_size=8), st.integers(0, 10**9).map(str), st.datetimes().map(lambda at: f"{at:%FT%TZ}")),
    ),
    st.lists(st.floats(0.0, LONGEST_RUN), max_size=5),
)
def test_whatever_is_written_it_is_due_after_its_creation_and_soon_enough(
    said: dict[str, str], runs: list[float]
) -> None:
    one = replace(POD, annotations={f"forecast-scheduler.io/{key}": text for key, text in said.items()})
    terms, run = terms_of(one), ExpectedRuns(times(*runs)).of(one, REPORT)
    assert 1.0 <= run.seconds <= run.long <= LONGEST_RUN
    due = due_time(one, terms, run)
    assert due >= one.created
    assert due <= max(one.created, terms.latest_start) and due <= max(one.created, terms.deadline - run.long)
    assert (due == math.inf) == (not terms.is_timed)
