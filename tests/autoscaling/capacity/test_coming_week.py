"""The coming days: last week's pods at the level that the model expects."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from autoscaling.capacity.coming_week import coming_days, days_before, with_coming_days
from forecast.history import PodUsage
from forecast.resources import CPU
from testing.fitted_models import fitted
from tests.scorer.replay.small_cluster import small_cluster


def _pods_of(pods: PodUsage, first: int, n_days: int) -> PodUsage:
    days = slice(first, first + n_days)
    return replace(pods, days=pods.days[days], usage=pods.usage[:, :, days], present=pods.present[:, days])


@pytest.mark.parametrize(("n_days", "weeks"), [(1, 1), (6, 1), (7, 2), (13, 2)])
def test_days_and_those_before_them_are_whole_weeks_apart(n_days: int, weeks: int) -> None:
    history, _ = small_cluster()
    coming, before = coming_days(history, n_days), days_before(history, n_days)
    assert len(coming) == n_days + 1 and coming[0] == history.days[-1] + timedelta(days=1)
    assert {one - other for one, other in zip(coming, before, strict=True)} == {timedelta(days=7 * weeks)}
    assert before[-1] <= history.days[-1]


def test_the_same_pods_come_and_use_what_the_model_expects() -> None:
    history, pods = small_cluster()
    model = fitted(history)
    before = days_before(history, 6)
    first = history.days.index(before[0])
    longer, coming = with_coming_days(history, _pods_of(pods, first, 7), model, 6)
    assert longer.days[: history.n_days] == history.days and longer.n_days == history.n_days + 7
    np.testing.assert_array_equal(coming.present, pods.present[:, first : first + 7])
    rebuilt = replace(history, daily_capacity=2 * np.array(history.capacity_of_days))
    later, _ = with_coming_days(rebuilt, _pods_of(pods, first, 7), model, 6)
    np.testing.assert_array_equal(later.capacity_of_days[:, :, -7:], longer.capacity_of_days[:, :, -7:])
    np.testing.assert_array_equal(later.capacity_of_days[:, :, :-7], rebuilt.daily_capacity)
    expected = longer.usage_per_pod[:, CPU, history.n_days :]
    model_says = model.usage(coming.days)[:, CPU]
    assert np.abs(expected - model_says).mean() < 0.15 * model_says.mean()
    here = coming.present > 0
    of_service = expected[coming.service]
    np.testing.assert_allclose(coming.usage[:, CPU][here], of_service[here], rtol=0.01)
