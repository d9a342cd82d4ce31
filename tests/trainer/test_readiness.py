"""When there is too little, too old or too much gap to replace the model in use."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from base.errors import InputError
from forecast.calendar import Calendar
from forecast.fit import fit
from forecast.history import History
from tests.synthetic import synthetic_history
from trainer.nightly import check_ready, measured_days


def with_days_measured(history: History, measured: list[int], *, pods_listed: bool = False) -> History:
    """Nothing was recorded on all other days, or only which pods there were."""
    others = [day for day in range(history.n_days) if day not in measured]
    usage, replicas = history.usage_per_pod.copy(), history.replicas.copy()
    usage[:, :, others] = np.nan
    if not pods_listed:
        replicas[:, others] = np.nan
    return replace(history, usage_per_pod=usage, replicas=replicas)


def midnight_after(history: History) -> datetime:
    return history.calendar.midnight(history.days[-1] + timedelta(days=1))


@pytest.mark.parametrize(("n_days", "cold"), [(1, True), (6, True), (7, False), (28, False)])
def test_under_a_week_is_a_cold_start(n_days: int, cold: bool) -> None:
    ready = check_ready(synthetic_history(n_days=n_days), None, live_at=None, force=False)
    assert (ready.measured_days, ready.cold_start) == (n_days, cold)


@pytest.mark.parametrize("pods_listed", [False, True])
@pytest.mark.parametrize("day", [0, 12, 29])
def test_a_month_with_one_day_of_data_is_refused(day: int, pods_listed: bool) -> None:
    history = with_days_measured(synthetic_history(n_days=30), [day], pods_listed=pods_listed)
    with pytest.raises(InputError, match=r"of the 30 days from .* only 1 hold data, 7 are needed: .*--force"):
        check_ready(history, None, live_at=None, force=False)
    assert check_ready(history, None, live_at=None, force=True).cold_start


def test_a_day_of_which_most_is_missing_does_not_count() -> None:
    history = synthetic_history(n_days=3)
    usage = history.usage_per_pod.copy()
    usage[:, :, 1, :30] = np.nan
    assert measured_days(replace(history, usage_per_pod=usage)) == 2


def test_a_day_on_which_only_one_service_in_six_was_measured_does_not_count() -> None:
    history = synthetic_history(n_days=3, n_services=6)
    usage = history.usage_per_pod.copy()
    usage[1:, :, 1] = np.nan
    assert measured_days(replace(history, usage_per_pod=usage)) == 2


def test_where_no_pod_is_ever_measured_the_days_of_the_nodes_count() -> None:
    history = synthetic_history(n_days=9)
    nodes = history.node_usage.copy()
    nodes[:, :, 4] = np.nan
    only_nodes = replace(history, usage_per_pod=np.full_like(history.usage_per_pod, np.nan), node_usage=nodes)
    assert measured_days(only_nodes) == 8


def test_a_history_that_shrank_does_not_replace_a_model_that_knows_more() -> None:
    grown = fit(synthetic_history(n_days=14))
    with pytest.raises(InputError, match=r"holds 3 days, but the model in use was trained on 14: it stays"):
        check_ready(synthetic_history(n_days=3), grown, live_at=None, force=False)
    check_ready(synthetic_history(n_days=3), fit(synthetic_history(n_days=2)), live_at=None, force=False)
    check_ready(synthetic_history(n_days=3), grown, live_at=None, force=True)


@pytest.mark.parametrize(("hours", "refused"), [(0.1, False), (23, False), (25, False), (47, False), (49, True)])
def test_a_live_source_must_have_data_of_yesterday_or_the_day_before(hours: float, refused: bool) -> None:
    history = synthetic_history(n_days=9)
    now = midnight_after(history) + timedelta(hours=hours)
    if refused:
        with pytest.raises(InputError, match=r"newest whole day of data is .*, 3 days ago"):
            check_ready(history, None, live_at=now, force=True)
    else:
        check_ready(history, None, live_at=now, force=False)


def test_days_are_those_of_the_history_s_time_zone() -> None:
    history = synthetic_history(n_days=9, calendar=Calendar("Asia/Tokyo"))
    now = midnight_after(history) + timedelta(days=1, hours=23)  # still the second day there, the first one in UTC
    check_ready(history, None, live_at=now.astimezone(UTC), force=False)
    with pytest.raises(InputError, match="newest whole day"):
        check_ready(history, None, live_at=now + timedelta(hours=1), force=False)
