"""By when a pod of a job has to start."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecast.run_length import LONGEST_RUN
from forecast.service_key import Owner, ServiceKey
from kube.decoding.jobs import JobInfo
from kube.objects.objects import PodInfo
from scheduler.profiles.job.due_times import DueTimes, due_time
from scheduler.profiles.job.job_annotations import DEADLINE_ANNOTATION, NO_TERMS, JobTerms, Place, terms_of
from scheduler.profiles.job.objects.cron_jobs import Concurrency, CronJobInfo, CronJobs
from scheduler.profiles.job.run_start import DatedTerms
from scheduler.profiles.job.unread_annotations import UnreadTerms
from scorer.assuming_cluster import AssumingCluster
from scorer.options import ScorerOptions
from scorer.runs.declared_run import EXPECTED_RUN_ANNOTATION, said_run
from scorer.runs.expected import ExpectedRun, ExpectedRuns, Source
from scorer.runs.run_times import RunTimes
from tests.kube.api_objects import pod
from tests.kube.job_table import JobTable
from tests.scheduler.profiles.job.serverless.providers_world import job_pod
from tests.scorer.runs.made_up import POD, REPORT, times


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


CREATED = datetime(2026, 11, 21, 20, 0, tzinfo=UTC).timestamp()
DEADLINE, LATEST_START, EXPECTED_RUN, PLACE = "deadline", "latest-start", "expected-run", "place"
HOUR = 3600.0


def says(annotations: Mapping[str, str]) -> PodInfo:
    ours = {f"forecast-scheduler.io/{key}": text for key, text in annotations.items()}
    return replace(pod("a", created=CREATED), annotations=ours)


def test_all_of_it() -> None:
    said = {LATEST_START: "2h", DEADLINE: "2026-11-22T06:00:00+01:00", EXPECTED_RUN: "20m", PLACE: "cluster"}
    assert terms_of(says(said)) == JobTerms(CREATED + 2 * HOUR, CREATED + 9 * HOUR, 1200.0, Place.CLUSTER)


@pytest.mark.parametrize(
    ("text", "after_creation"),
    [
        ("2026-11-21T21:30:00Z", 1.5 * HOUR),
        ("2026-11-21T21:30:00.250Z", 1.5 * HOUR + 0.25),
        ("2026-11-21T16:30:00-05:00", 1.5 * HOUR),
        ("2026-11-21T19:00:00Z", -HOUR),
        ("90m", 1.5 * HOUR),
        ("1.5h", 1.5 * HOUR),
        ("5400", 1.5 * HOUR),
        ("0s", 0.0),
        ("366d", 366 * 24 * HOUR),
    ],
)
@pytest.mark.parametrize("key", [LATEST_START, DEADLINE])
def test_a_moment(key: str, text: str, after_creation: float) -> None:
    terms = terms_of(says({key: text}))
    moments = {LATEST_START: terms.latest_start, DEADLINE: terms.deadline}
    assert moments.pop(key) == CREATED + after_creation
    assert list(moments.values()) == [math.inf] and terms.is_timed and not terms.mistakes


NO_MOMENTS = """
    soon -2h inf 367d 2026-11-21 2026-11-21T21:30:00 2026-11-21T21:30Z 2026-13-01T00:00:00Z 2026-11-21t21:30:00z
    2026-02-30T00:00:00Z 2026-11-21T25:00:00Z 2026-11-21T21:30:00+0100 2026-11-21T21:30:00+99:00
    0001-01-01T00:00:00+05:00x 999999999999999999999999999999999999999999999999999999999999
"""


@pytest.mark.parametrize("text", [*NO_MOMENTS.split(), "", "2026-11-21 21:30:00Z", "2026-11-21T21:30:00Z\n", "1h" * 60])
@pytest.mark.parametrize("key", [LATEST_START, DEADLINE])
def test_no_moment_is_a_mistake_and_the_rest_counts(key: str, text: str) -> None:
    terms = terms_of(says({key: text, EXPECTED_RUN: "10m"}))
    assert (terms.latest_start, terms.deadline, terms.run_seconds) == (math.inf, math.inf, 600.0)
    assert not terms.is_timed
    (mistake,) = terms.mistakes
    assert mistake.startswith(f"forecast-scheduler.io/{key} is {text!r}"[:60]) and "such as 2h" in mistake


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("20m", 1200.0),
        ("0.1", 1.0),
        ("1ms", 1.0),
        ("366d", 366 * 86_400.0),
        *((text, None) for text in ("0", "0s", "367d", "", "long", "-5m", "2026-11-21T21:30:00Z")),
    ],
)
def test_an_expected_run(text: str, seconds: float | None) -> None:
    said = says({EXPECTED_RUN: text})
    terms = terms_of(said)
    assert terms.run_seconds == said_run(said.annotations) == seconds
    assert len(terms.mistakes) == (seconds is None) and not terms.is_timed


TEXTS = st.one_of(
    st.text(max_size=30),
    st.text("0123456789-:TZ+.hms", max_size=30),
    st.datetimes().map(lambda at: f"{at.isoformat()}Z"),
    st.from_regex(r"[0-9]{1,70}(ms|s|m|h|d)", fullmatch=True),
)


@given(st.dictionaries(st.sampled_from([LATEST_START, DEADLINE, EXPECTED_RUN, PLACE]), TEXTS))
def test_anything_may_be_written(annotations: dict[str, str]) -> None:
    terms = terms_of(says(annotations))
    assert not math.isnan(terms.latest_start) and not math.isnan(terms.deadline)
    assert terms.run_seconds is None or 1.0 <= terms.run_seconds <= 366 * 86_400
    understood = sum((terms.latest_start < math.inf, terms.deadline < math.inf, terms.run_seconds is not None))
    understood += annotations.get(PLACE) in [place.value for place in Place]
    assert understood + len(terms.mistakes) == len(annotations)


PREFIX = "forecast-scheduler.io/"
DATED_POD = replace(
    pod("a", created=5_000.0),
    owner=Owner("Job", "work"),
    owner_uid="u",
    annotations={PREFIX + "deadline": "1h", PREFIX + "latest-start": "2026-11-22T06:00:00Z"},
)


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
    of = ServiceKey(DATED_POD.namespace, "Job", "work")
    job = JobInfo(
        DATED_POD.namespace, "work", "u", of, created=990.0, started=1_000.0, succeeded=succeeded, failed=failed
    )
    jobs.put(job)
    said = {PREFIX + "latest-start": "30m", PREFIX + "deadline": "8h"}
    terms = DatedTerms(jobs).of(replace(DATED_POD, created=created, annotations=said))
    assert terms.latest_start == (990.0 + 1800 if is_open else math.inf)
    assert terms.deadline == 990.0 + 8 * 3600


def _world() -> tuple[AssumingCluster, UnreadTerms]:
    cluster = AssumingCluster(ScorerOptions(), now=0.0)
    unread = UnreadTerms(cluster.state, lambda pod: pod.scheduler_name != "other")
    cluster.listeners.append(unread.apply)
    return cluster, unread


def _saying(name: str, **said: str) -> PodInfo:
    return replace(job_pod(name, owner_uid="u"), annotations=dict(said))


def test_a_mistake_is_told_once_for_all_pods_of_a_job() -> None:
    cluster, unread = _world()
    bad = {DEADLINE_ANNOTATION: "soon", EXPECTED_RUN_ANNOTATION: "20m"}
    for name in ("a", "b"):
        cluster.put(replace(_saying(name), annotations=bad))
    ((pod, note),) = unread.take()
    assert pod.name == "a" and "'soon'" in note and DEADLINE_ANNOTATION in note and "20m" not in note
    cluster.put(replace(_saying("c"), annotations=bad))
    assert unread.take() == []
    cluster.put(replace(_saying("d"), annotations={DEADLINE_ANNOTATION: "later"}))
    assert [pod.name for pod, _ in unread.take()] == ["d"]
