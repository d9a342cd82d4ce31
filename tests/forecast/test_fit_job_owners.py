"""What a fit makes of Job owners: pods by the clock, usage of a pod as it runs, and no harm to other services."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from base.arrays import Floats32
from forecast.calendar import SLOTS_PER_DAY, DayType
from forecast.fit import fit
from forecast.history import History
from forecast.model import PeakModel
from forecast.resources import CPU, MEMORY
from forecast.service_key import ServiceKey
from tests.forecast.job_histories import DAY, HOUR, nights, with_runs
from tests.synthetic import synthetic_history

NIGHT, YOUNG, GONE, WIDER, WEEKLY, ONCE, MIDNIGHT = range(5, 12)
HOURS = slice(4, 10)  # 02:00 to 05:00


def history_of_jobs() -> History:
    """Five services that are always there, and seven Job owners, whose pods request a tenth of a core or byte."""
    history = synthetic_history(n_services=12)
    wider = [(start, seconds) for start, seconds in nights(range(28)) for _ in range(2 if start < 25 * DAY else 8)]
    for service, name, runs in (
        (NIGHT, "night", nights(range(28))),
        (YOUNG, "young", nights(range(27, 28))),
        (GONE, "gone", nights(range(15))),
        (WIDER, "wider", wider),
        (WEEKLY, "weekly", nights(range(6, 28, 7))),
        (MIDNIGHT, "midnight", [*nights(range(27), hour=23), *nights([27], hour=23, seconds=HOUR)]),
    ):
        history = with_runs(history, service, runs, owner=ServiceKey("shop", "CronJob", name), usage=float(service))
    history = with_runs(history, ONCE, nights([27]), owner=ServiceKey("shop", "Job", "once"), usage=float(ONCE))
    requests = np.where(np.arange(12)[:, None, None] < NIGHT, history.daily_requests, 0.1)
    return replace(history, daily_requests=requests)


@lru_cache(maxsize=1)
def model() -> PeakModel:
    return fit(history_of_jobs())


def pods(service: int) -> Floats32:
    """Expected pods of the fourteen days: (14, 48)."""
    return np.asarray(model().replicas_dated[service], dtype=np.float32)


def test_a_nightly_job_has_its_pod_at_night_and_none_by_day() -> None:
    np.testing.assert_allclose(pods(NIGHT)[:, HOURS], 1.0)
    assert not pods(NIGHT)[:, 10:].any()
    assert not pods(NIGHT)[:, :4].any()
    assert not model().autoscaled[NIGHT:].any()


def test_a_job_over_midnight_is_there_on_both_sides_of_it() -> None:
    np.testing.assert_allclose(pods(MIDNIGHT)[:, 46:], 1.0)
    np.testing.assert_allclose(pods(MIDNIGHT)[:, :4], 1.0)
    assert not pods(MIDNIGHT)[:, 4:46].any()


def test_what_is_gone_and_what_ran_once_is_not_expected_again() -> None:
    assert not pods(GONE).any()
    assert not pods(ONCE).any()
    assert model().reference_replicas[[GONE, ONCE]].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("service", [NIGHT, YOUNG, GONE, WIDER, WEEKLY, ONCE, MIDNIGHT])
def test_a_pod_is_expected_to_use_what_pods_used_also_at_an_hour_at_which_none_ever_ran(service: int) -> None:
    usage = model().usage_dated[service]
    np.testing.assert_allclose(usage, float(service), rtol=0.05)
    np.testing.assert_allclose(model().usage_day_type[service], float(service), rtol=0.05)


def test_more_pods_of_a_job_share_no_work() -> None:
    share = model().load_share(np.full(12, 8.0))
    np.testing.assert_array_equal(share[NIGHT:], 1.0)
    np.testing.assert_allclose(share[:NIGHT, CPU], 0.5)
    np.testing.assert_array_equal(share[:, MEMORY], 1.0)


def test_errors_of_an_owner_of_one_night_are_no_multiple_of_its_load() -> None:
    errors = np.hypot(model().own_std, model().shared_std)[:, CPU]
    assert (errors[[YOUNG, WEEKLY]] < 0.5 * np.array([[YOUNG], [WEEKLY]])).all()


def test_job_owners_do_not_change_what_is_known_of_requests() -> None:
    """A Deployment that is new borrows from services, not from jobs that run at night."""
    with_jobs, without = (found.request_ratio[CPU] for found in (model(), fit(synthetic_history(n_services=NIGHT))))
    np.testing.assert_allclose(with_jobs[: DayType.HOLIDAY].max(), without[: DayType.HOLIDAY].max(), rtol=0.05)


def test_lengths_starts_and_load_are_published() -> None:
    found = model()
    assert found.run_seconds[NIGHT].tolist() == [3 * HOUR, 3 * HOUR]
    assert found.run_count[NIGHT] == 28
    assert found.run_starts[NIGHT].sum(axis=1).tolist() == [1, 1, 1, 1]
    np.testing.assert_allclose(found.run_usage[NIGHT], float(NIGHT), rtol=1e-6)
    assert found.run_starts.shape == (12, len(DayType), SLOTS_PER_DAY)
    assert found.info["job_owners"] == {"count": 7, "with_runs": 7, "expected": 5}
