from __future__ import annotations

import numpy as np

from benchmarks.bound_coverage import by_class, coverage_interval, traits, with_drift
from forecast.resources import CPU
from tests.synthetic import synthetic_history


def test_the_interval_of_days_that_err_together_is_wide() -> None:
    rng = np.random.default_rng(0)
    apart = (rng.uniform(size=(20, 100)) < 0.95).astype(float)
    together = np.repeat((np.arange(20) != 7).astype(float)[:, None], 100, axis=1)
    share, low, high = coverage_interval(apart)
    assert share == apart.mean() and low < share < high and high - low < 0.06
    share, low, high = coverage_interval(together)
    assert share == 0.95 and high - low > 0.08


def test_unknown_hits_do_not_count() -> None:
    hits = np.full((4, 6), np.nan)
    hits[:, 0] = 1.0
    assert coverage_interval(hits) == (1.0, 1.0, 1.0)


def test_classes_are_thirds_of_the_trait() -> None:
    trait = np.tile(np.arange(300.0), (2, 1))
    hits = (trait < 100).astype(float)
    assert by_class(hits, trait) == [(1.0, 200), (0.0, 200), (0.0, 200)]
    assert by_class(hits[:1, :90], trait[:1, :90]) == []


def test_traits_know_only_the_days_before() -> None:
    history = synthetic_history(n_services=4, n_days=20)
    known, later = traits(history, [15]), traits(history.before(15), [15])
    for name, values in known.items():
        assert values.shape == (1, 4, 5)
        np.testing.assert_array_equal(values, later[name])


def test_a_drift_doubles_the_load_and_leaves_the_days_before() -> None:
    history = synthetic_history(n_services=4, n_days=20)
    drifting = with_drift(history, 8).usage_per_pod / history.usage_per_pod
    np.testing.assert_array_equal(drifting[:, CPU, :8], 1.0)
    assert 1.2 < drifting[:, CPU, -1].mean() < 3.0
