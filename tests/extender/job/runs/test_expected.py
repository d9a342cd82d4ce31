"""How long a run is expected to take, and by when it has to start."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.job.objects.cron_jobs import Concurrency, CronJobInfo, CronJobs
from extender.job.objects.job_runs import JobRun, JobRuns
from extender.job.runs.expected import ExpectedRun, ExpectedRuns, Source, due_time
from extender.job.runs.run_times import LONGEST_RUN, RunTimes
from extender.job.terms import NO_TERMS, JobTerms, terms_of
from forecast.errors import InputError
from forecast.service_key import Owner, ServiceKey
from tests.extender.job.runs.made_up import REPORT, run
from tests.scorer.cluster.api_objects import pod

POD = pod("a", owner=Owner("Job", "report-1"), owner_uid="j", created=10_000.0)
SAYS = replace(POD, annotations={"forecast-scheduler.io/expected-run": "20m"})


def times(*seconds: float) -> RunTimes:
    made = RunTimes()
    for one in seconds:
        made.learn(REPORT, one)
    return made


def test_what_is_said_is_known_better_than_what_was_learned_and_that_better_than_nothing() -> None:
    nothing, learned = ExpectedRuns(RunTimes()), ExpectedRuns(times(60.0, 100.0))
    assert nothing.of(POD, REPORT) == ExpectedRun(600.0, Source.DEFAULT, 600.0)
    assert learned.of(POD, REPORT) == ExpectedRun(80.0, Source.LEARNED, 150.0)
    for runs in (nothing, learned):
        assert runs.of(SAYS, REPORT) == ExpectedRun(1200.0, Source.SAID, 1200.0)
    jobs = RunTimes()
    jobs.learn_from_jobs([run(seconds=100.0)])
    assert ExpectedRuns(jobs).of(POD, REPORT) == ExpectedRun(100.0, Source.BOUNDED, 200.0)


def test_what_cannot_be_read_is_not_said() -> None:
    odd = replace(POD, annotations={"forecast-scheduler.io/expected-run": "a while"})
    assert ExpectedRuns(times(60.0)).of(odd, REPORT).source is Source.LEARNED


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
    jobs = JobRuns()
    jobs.put(JobRun("shop", "report-1", "j", REPORT, active_deadline_seconds=stopped_after))
    runs = ExpectedRuns(times(60.0, 100.0), jobs=jobs)
    of_pod = runs.of(POD, REPORT)
    assert (of_pod.seconds, of_pod.source, of_pod.long) == (expected[0], Source.LEARNED, expected[1])
    for stranger in (replace(POD, owner_uid="of-another-job"), replace(POD, owner=Owner("Workflow", "report-1"))):
        assert runs.of(stranger, REPORT).long == 150.0


@pytest.mark.parametrize(
    ("started", "due"),
    [(9_000.0, 9_000.0 + 7200 - 150), (None, 10_000.0 + 7200 - 150), (2_000.0, 10_000.0)],
    ids=["taken up", "not seen yet", "stopped before a run could end"],
)
def test_who_may_wait_starts_long_enough_before_its_job_is_stopped(started: float | None, due: float) -> None:
    jobs = JobRuns()
    jobs.put(JobRun("shop", "report-1", "j", REPORT, started=started, active_deadline_seconds=7200))
    run = ExpectedRuns(times(60.0, 100.0), jobs=jobs).of(POD, REPORT)
    assert due_time(POD, JobTerms(latest_start=10_000.0 + 86_400), run) == due
    assert due_time(POD, JobTerms(deadline=10_000.0 + 86_400), run) == due
    assert due_time(POD, JobTerms(latest_start=10_001.0), run) == min(10_001.0, due)
    assert due_time(POD, NO_TERMS, run) == math.inf


@pytest.mark.parametrize(
    ("completions", "succeeded", "rounds"), [(8, 0, 4), (8, 3, 3), (8, 8, 1), (1, 0, 1), (None, 5, 1)]
)
def test_a_job_of_several_rounds_needs_the_time_of_all_that_are_left(
    completions: int | None, succeeded: int, rounds: int
) -> None:
    jobs = JobRuns()
    jobs.put(JobRun("shop", "report-1", "j", REPORT, parallelism=2, completions=completions, succeeded=succeeded))
    run = ExpectedRuns(times(60.0, 100.0), jobs=jobs).of(POD, REPORT)
    assert (run.rounds, run.long) == (rounds, 150.0)
    assert due_time(POD, JobTerms(deadline=10_000.0 + 86_400), run) == 10_000.0 + 86_400 - rounds * 150.0


def test_a_cron_job_without_a_zone_is_in_that_of_its_controller() -> None:
    cron_jobs = CronJobs()
    cron_jobs.put(CronJobInfo("shop", "report", "c", "0 2 * * *", concurrency=Concurrency.REPLACE))
    late = JobTerms(latest_start=10_000.0 + 7 * 86_400)
    made = {zone: ExpectedRuns(RunTimes(), cron_jobs=cron_jobs, zone=zone) for zone in ("", "Europe/Berlin")}
    due = {zone: due_time(POD, late, runs.of(POD, REPORT)) for zone, runs in made.items()}
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
    runs = ExpectedRuns(RunTimes(), jobs=JobRuns(), cron_jobs=cron_jobs)
    one = replace(POD, created=4.0)
    terms = JobTerms(latest_start=86_400.0)
    assert due_time(one, terms, runs.of(one, REPORT)) == 86_400.0
    cron_jobs.put(CronJobInfo(REPORT.namespace, REPORT.name, "c", schedule, concurrency=concurrency))
    assert due_time(one, terms, runs.of(one, REPORT)) == due
    assert due_time(one, NO_TERMS, runs.of(one, REPORT)) == math.inf
    cron_jobs.put(CronJobInfo(REPORT.namespace, REPORT.name, "c", schedule, concurrency=concurrency, suspended=True))
    assert due_time(one, terms, runs.of(one, REPORT)) == 86_400.0


@pytest.mark.parametrize("default", [0.0, -1.0, math.inf, math.nan])
def test_a_default_that_is_no_run_time_is_refused(default: float) -> None:
    with pytest.raises(InputError, match="such as 10m"):
        ExpectedRuns(RunTimes(), default=default)


RUN = ExpectedRun(100.0, Source.LEARNED, 250.0)


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
