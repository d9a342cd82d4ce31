"""What pods say of their runs, and what becomes of what cannot be read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.objects.objects import PodInfo
from scheduler.profiles.job.job_annotations import NO_TERMS, JobTerms, Place, terms_of
from scorer.runs.declared_run import said_run
from tests.kube.api_objects import pod

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


def test_a_place() -> None:
    assert [terms_of(says({PLACE: place.value})).place for place in Place] == list(Place)
    terms = terms_of(says({PLACE: "Cluster"}))
    assert terms.place is Place.ANY
    assert terms.mistakes == ("forecast-scheduler.io/place is 'Cluster': write one of any, cluster, serverless",)


def test_every_mistake_is_told() -> None:
    terms = terms_of(says(dict.fromkeys((LATEST_START, DEADLINE, RUN, PLACE), "x" * 5000)))
    assert len(terms.mistakes) == 4 and all(len(mistake) < 300 for mistake in terms.mistakes)
    assert replace(terms, mistakes=()) == NO_TERMS


@pytest.mark.parametrize("annotations", [{}, {"policy": "spread"}, {"queue": "night"}])
def test_a_pod_that_says_nothing_has_no_terms(annotations: dict[str, str]) -> None:
    assert terms_of(says(annotations)) is NO_TERMS
    assert said_run(says(annotations).annotations) is None


def test_a_duration_counts_from_the_creation_of_each_pod() -> None:
    first = says({DEADLINE: "1h"})
    assert terms_of(replace(first, created=CREATED + 60)).deadline == terms_of(first).deadline + 60


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
