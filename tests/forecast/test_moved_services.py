"""A fit takes the past of a moved service as its own; what was measured here stays, and stays apart."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from forecast.fit import fit
from forecast.fit_inputs import with_earlier_days
from forecast.history import EarlierDays, History
from tests.synthetic import MONDAY, synthetic_history

MOVED = 2


def earlier_of(history: History, days: slice) -> EarlierDays:
    """What one service did on some days."""
    return EarlierDays(
        days=history.days[days],
        service=np.array([MOVED]),
        usage_per_pod=history.usage_per_pod[[MOVED], :, days],
        replicas=history.replicas[[MOVED], days],
        pod_variance=history.pod_variance[[MOVED], :, days],
        daily_requests=history.daily_requests[[MOVED], :, days],
    )


def forgotten(history: History, n_days: int) -> History:
    """The history without the first days of one service."""
    usage, replicas = history.usage_per_pod.copy(), history.replicas.copy()
    variance, requests = history.pod_variance.copy(), history.daily_requests.copy()
    usage[MOVED, :, :n_days] = variance[MOVED, :, :n_days] = requests[MOVED, :, :n_days] = np.nan
    replicas[MOVED, :n_days] = 0
    return replace(history, usage_per_pod=usage, replicas=replicas, pod_variance=variance, daily_requests=requests)


def cut(history: History, n_days: int) -> History:
    """The history without its first days."""
    return history.before(history.n_days, keep=history.n_days - n_days)


def test_a_filled_history_is_the_one_of_a_service_that_never_moved() -> None:
    whole = synthetic_history(n_days=35)
    filled = with_earlier_days(replace(forgotten(whole, 30), earlier=earlier_of(whole, slice(0, 30))))
    assert filled.digest() == whole.digest()
    np.testing.assert_array_equal(
        fit(replace(forgotten(whole, 30), earlier=earlier_of(whole, slice(0, 30)))).usage_dated, fit(whole).usage_dated
    )


def test_a_past_longer_than_the_history_is_put_in_front_of_it() -> None:
    whole = synthetic_history(n_days=35)
    short = replace(cut(whole, 32), earlier=earlier_of(whole, slice(0, 32)))
    filled = with_earlier_days(short)
    assert filled.days == whole.days
    np.testing.assert_array_equal(filled.usage_per_pod[MOVED], whole.usage_per_pod[MOVED])
    np.testing.assert_array_equal(filled.replicas[MOVED], whole.replicas[MOVED])
    others = np.arange(len(whole.services)) != MOVED
    assert np.isnan(filled.usage_per_pod[others, :, :32]).all()
    assert np.isnan(filled.node_usage[:, :, :32]).all()
    np.testing.assert_array_equal(filled.usage_per_pod[:, :, 32:], short.usage_per_pod)
    np.testing.assert_array_equal(filled.placements.first, short.placements.first + 32 * 48)


def test_a_short_history_with_a_long_past_knows_the_weekend_of_the_moved_service() -> None:
    whole = synthetic_history(n_days=33, noise=0.01)  # ends on a Friday
    blind, knowing = fit(cut(whole, 30)), fit(replace(cut(whole, 30), earlier=earlier_of(whole, slice(0, 30))))
    saturday, friday = blind.usage_dated[:, 0, 0].mean(axis=1), blind.usage_dated[:, 0, 6].mean(axis=1)
    assert saturday[MOVED] / friday[MOVED] == pytest.approx(1.0, abs=0.1)
    saturday, friday = knowing.usage_dated[:, 0, 0].mean(axis=1), knowing.usage_dated[:, 0, 6].mean(axis=1)
    assert saturday[MOVED] / friday[MOVED] == pytest.approx(0.7, abs=0.05)


def test_what_is_measured_here_wins() -> None:
    whole = synthetic_history(n_days=28)
    other = replace(whole, usage_per_pod=whole.usage_per_pod * 3)
    filled = with_earlier_days(replace(whole, earlier=earlier_of(other, slice(0, 28))))
    np.testing.assert_array_equal(filled.usage_per_pod, whole.usage_per_pod)


def test_nothing_of_later_days_is_reached_through_an_earlier_cut_off() -> None:
    whole = synthetic_history(n_days=28)
    history = replace(forgotten(whole, 20), earlier=earlier_of(whole, slice(0, 20)))
    known = history.before(10)
    assert known.earlier is not None
    assert known.earlier.days == whole.days[:10]
    kept = history.before(28, keep=15).earlier
    assert kept is not None
    assert kept.days == whole.days[13:20]
    assert history.before(28, keep=5).earlier is None


def test_the_past_is_part_of_what_a_model_was_fitted_on() -> None:
    whole = synthetic_history(n_days=28)
    blind = forgotten(whole, 20)
    other = replace(whole, usage_per_pod=whole.usage_per_pod * 3)
    pasts = (None, earlier_of(whole, slice(0, 20)), earlier_of(whole, slice(0, 19)), earlier_of(other, slice(0, 20)))
    assert len({replace(blind, earlier=past).digest() for past in pasts}) == 4
    assert whole.days[0] == MONDAY
    assert whole.days[20] == MONDAY + timedelta(days=20)
