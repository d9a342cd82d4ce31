"""What services are expected to use, gathered from live tables."""

from __future__ import annotations

import numpy as np
import pytest

from autoscaling.services_ahead import services_ahead
from base.excluded import ExcludedOptions
from forecast.resources import CPU
from tests.autoscaling.live_services import ahead_of, live_tables
from tests.scorer.live_cluster import at, model, service
from tests.scorer.scorer_at import LiveScorer


def test_services_with_pods_are_there_with_what_they_request() -> None:
    ahead = ahead_of(live_tables())
    row = ahead.services.index(service(5))
    assert set(ahead.services) == {service(4), service(5)}
    assert ahead.replicas[row] == 2 and ahead.requests[row, 0] == 1.0
    assert ahead.autoscaled[row] and not ahead.autoscaled[1 - row]
    assert ahead.load.shape == ahead.std.shape == (2, model().usage_dated.shape[1], 3 * 48)
    np.testing.assert_allclose(ahead.expected_replicas[row, [37, 38, 41, 42]], [2, 9, 9, 2])
    assert (ahead.std[:, CPU] > 0).any()


def test_excluded_services_are_not_there() -> None:
    excluded = ExcludedOptions(services=(str(service(5)),))
    ahead = services_ahead(live_tables(), excluded)
    assert ahead is not None and set(ahead.services) == {service(4)}


def test_load_of_all_pods_together_is_that_of_one_times_their_number() -> None:
    ahead = ahead_of(live_tables())
    row = ahead.services.index(service(5))
    of_one = model().usage((model().first_day,))[5, CPU, 0]
    np.testing.assert_allclose(ahead.load[row, CPU, 38], 9 * of_one[38], rtol=1e-5)


def test_between_half_hours_a_curve_goes_over_evenly() -> None:
    ahead = ahead_of(live_tables())
    curve = np.zeros(3 * 48)
    curve[39] = 8.0
    assert [float(ahead.at(curve, at(hour))) for hour in (19.25, 19.5, 19.75, 20.25)] == [0.0, 4.0, 8.0, 0.0]
    assert float(ahead.highest(curve, at(18), at(22))) == pytest.approx(8.0)
    assert float(ahead.highest(curve, at(18), at(19))) == 0.0
    assert float(ahead.at(curve, at(-5))) == float(ahead.at(curve, at(200))) == 0.0


def test_without_a_model_there_is_nothing_to_act_on() -> None:
    assert services_ahead(LiveScorer(without_model=True).scorer.tables, ExcludedOptions()) is None
