"""What is learned of run times: of pods first, of whole Jobs while there is nothing better; bounded whatever comes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.runs.run_times import REMEMBERED_RUNS, RunTimes
from forecast.job_runs import LONGEST_RUN, RunEstimate, estimate
from forecast.service_key import ServiceKey
from kube.decoding.jobs import JobOutcome
from tests.cluster.runs.made_up import REPORT, run

RUNS = st.lists(st.floats(1.0, LONGEST_RUN), min_size=1, max_size=80)


def learned(*seconds: float) -> RunTimes:
    times = RunTimes()
    for one in seconds:
        times.learn(REPORT, one)
    return times


@given(RUNS)
def test_quantiles(runs: list[float]) -> None:
    found = estimate(runs)
    assert found.typical == pytest.approx(np.median(runs))
    assert found.typical <= found.long <= LONGEST_RUN
    if len(runs) >= 20:
        assert found.long == pytest.approx(np.quantile(runs, 0.95))
    else:
        assert found.long >= max(runs)


@pytest.mark.parametrize("seconds", [-1.0, math.nan, math.inf, -math.inf, LONGEST_RUN * 1.01])
def test_what_is_no_time_is_ignored(seconds: float) -> None:
    assert learned(seconds).expected(REPORT) is None
    times = RunTimes()
    times.learn_from_jobs([run(seconds=seconds)])
    assert times.expected(REPORT) is None
    assert learned(60.0, seconds).expected(REPORT) == RunEstimate(60.0, 120.0, 1)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"parallelism": 5, "completions": 5, "succeeded": 5}, RunEstimate(100.0, 200.0, 1, is_bound=True)),
        ({"outcome": None}, None),
        ({"outcome": JobOutcome.FAILED}, None),
        ({"started": None}, None),
        ({"finished": None}, None),
        ({"completions": 2}, None),
        ({"completions": 0}, None),
        ({"completions": None}, None),
        ({"parallelism": 5, "completions": 6}, None),
        ({"failed": 1}, None),
    ],
)
def test_only_a_job_whose_pods_ran_at_once_and_well_says_how_long_they_took(
    changes: dict[str, object], expected: RunEstimate | None
) -> None:
    times = RunTimes()
    times.learn_from_jobs([replace(run(), **changes)])  # type: ignore[arg-type]
    assert times.expected(REPORT) == expected


def named(kind: str, number: int) -> ServiceKey:
    return ServiceKey("shop", kind, f"x{number}")


def test_jobs_count_once_and_until_a_pod_was_seen_and_services_are_forgotten_by_age() -> None:
    times = RunTimes()
    times.learn_from_jobs([run("a", seconds=100.0), run("b", seconds=300.0)])
    assert times.expected(REPORT) == RunEstimate(200.0, 450.0, 2, is_bound=True)
    times.learn(REPORT, 500.0, was_cut=True)
    assert times.expected(REPORT) == RunEstimate(200.0, 450.0, 2, is_bound=True), "a pod that failed tells nothing"
    times.learn(REPORT, 60.0)
    times.learn_from_jobs([run("c", seconds=400.0)])
    assert times.expected(REPORT) == RunEstimate(60.0, 120.0, 1)
    times = RunTimes()
    for _ in range(3):
        times.learn_from_jobs([run("a"), run("b", seconds=50.0)])
    found = times.expected(REPORT)
    assert found is not None and found.n == 2
    times.learn_from_jobs([run(f"n{i}", seconds=7.0) for i in range(10 * REMEMBERED_RUNS)])
    assert times.expected(REPORT) == RunEstimate(7.0, 7.0, REMEMBERED_RUNS, is_bound=True)
    times = RunTimes(lasting=3)
    for number in range(3):
        times.learn(named("CronJob", number), 60.0)
    assert times.expected(named("CronJob", 0)) is not None, "which makes 1 the oldest"
    times.learn(named("CronJob", 3), 60.0)
    assert [number for number in range(4) if times.expected(named("CronJob", number))] == [0, 2, 3]


def test_cut_runs_count_only_if_long_and_bare_jobs_push_out_none() -> None:
    assert learned(60.0).expected(REPORT) == RunEstimate(60.0, 120.0, 1)
    assert learned(30.0, 60.0, 100.0, 40.0).expected(REPORT) == RunEstimate(50.0, 125.0, 4)
    assert learned(*[60.0] * 39, 3600.0).expected(REPORT) == RunEstimate(60.0, 60.0, 40)
    assert estimate([60.0] * 19 + [100.0]).long == pytest.approx(62.0)
    assert estimate([60.0] * 18 + [100.0]).long == pytest.approx(100.0 + 100.0 / 19)
    times = RunTimes()
    times.learn(REPORT, 500.0, was_cut=True)
    assert times.expected(REPORT) is None, "nobody knows whether that was long"
    times.learn(REPORT, 60.0)
    times.learn(REPORT, 60.0, was_cut=True)
    times.learn(REPORT, 5.0, was_cut=True)
    assert times.expected(REPORT) == RunEstimate(60.0, 120.0, 1)
    times.learn(REPORT, 80.0, was_cut=True)
    assert times.expected(REPORT) == RunEstimate(70.0, 120.0, 2)
    times = RunTimes(lasting=10, passing=5)
    times.learn(REPORT, 60.0)
    for number in range(1000):
        times.learn(named("Job", number), 5.0)
        times.learn_from_jobs([run(f"u{number}", service=named("Job", 10_000 + number))])
    assert times.expected(REPORT) == RunEstimate(60.0, 120.0, 1)
    assert len(times) == 6


@given(
    st.lists(
        st.tuples(st.sampled_from(["CronJob", "Job", "Pod"]), st.integers(0, 9), st.floats(), st.booleans()),
        max_size=60,
    )
)
def test_whatever_comes_is_bounded(happenings: list[tuple[str, int, float, bool]]) -> None:
    times = RunTimes(lasting=4, passing=2)
    for kind, number, seconds, flag in happenings:
        times.learn(named(kind, number), seconds, was_cut=flag)
        times.learn_from_jobs([run(str(seconds), seconds=seconds, service=named(kind, number + flag))])
    assert len(times) <= 6
    for kind in ("CronJob", "Job", "Pod"):
        for number in range(11):
            found = times.expected(named(kind, number))
            assert found is None or (1.0 <= found.typical <= found.long <= LONGEST_RUN and 1 <= found.n <= 64)
