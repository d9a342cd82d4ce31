"""What pods say of their runs, and what becomes of what cannot be read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.assuming_cluster import AssumingCluster
from cluster.runs.expected import EXPECTED_RUN_ANNOTATION, said_run
from forecast.service_key import Owner, ServiceKey
from kube.decoding.jobs import JobInfo
from kube.objects.objects import PodInfo
from profiles.job.due_times import DatedTerms
from profiles.job.job_annotations import DEADLINE_ANNOTATION, JobTerms, Place, UnreadTerms, terms_of
from scorer.options import ScorerOptions
from tests.kube.api_objects import pod
from tests.kube.job_table import JobTable
from tests.profiles.job.serverless.providers_world import job_pod

CREATED = datetime(2026, 11, 21, 20, 0, tzinfo=UTC).timestamp()
DEADLINE, LATEST_START, RUN, PLACE = "deadline", "latest-start", "expected-run", "place"
HOUR = 3600.0


def says(annotations: Mapping[str, str]) -> PodInfo:
    ours = {f"forecast-scheduler.io/{key}": text for key, text in annotations.items()}
    return replace(pod("a", created=CREATED), annotations=ours)


def test_all_of_it() -> None:
    said = {LATEST_START: "2h", DEADLINE: "2026-11-22T06:00:00+01:00", RUN: "20m", PLACE: "cluster"}
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
    terms = terms_of(says({key: text, RUN: "10m"}))
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
    said = says({RUN: text})
    terms = terms_of(said)
    assert terms.run_seconds == said_run(said.annotations) == seconds
    assert len(terms.mistakes) == (seconds is None) and not terms.is_timed


TEXTS = st.one_of(
    st.text(max_size=30),
    st.text("0123456789-:TZ+.hms", max_size=30),
    st.datetimes().map(lambda at: f"{at.isoformat()}Z"),
    st.from_regex(r"[0-9]{1,70}(ms|s|m|h|d)", fullmatch=True),
)


@given(st.dictionaries(st.sampled_from([LATEST_START, DEADLINE, RUN, PLACE]), TEXTS))
def test_anything_may_be_written(annotations: dict[str, str]) -> None:
    terms = terms_of(says(annotations))
    assert not math.isnan(terms.latest_start) and not math.isnan(terms.deadline)
    assert terms.run_seconds is None or 1.0 <= terms.run_seconds <= 366 * 86_400
    understood = sum((terms.latest_start < math.inf, terms.deadline < math.inf, terms.run_seconds is not None))
    understood += annotations.get(PLACE) in [place.value for place in Place]
    assert understood + len(terms.mistakes) == len(annotations)


PREFIX = "forecast-scheduler.io/"
POD = replace(
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
    of = ServiceKey(POD.namespace, "Job", "work")
    job = JobInfo(POD.namespace, "work", "u", of, created=990.0, started=1_000.0, succeeded=succeeded, failed=failed)
    jobs.put(job)
    said = {PREFIX + "latest-start": "30m", PREFIX + "deadline": "8h"}
    terms = DatedTerms(jobs).of(replace(POD, created=created, annotations=said))
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
