"""What is expected is what is used, grown as the forecast grows, between a floor and a ceiling."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from autoscaling.replicas.loads_ahead import expected_load

amounts = st.floats(0, 1e6, allow_nan=False)


def _one(used: float, then: float, ahead: float, ceiling: float = 3.0) -> float:
    return float(expected_load(np.array([used]), np.array([then]), np.array([ahead]), ceiling=ceiling)[0])


@pytest.mark.parametrize(
    ("used", "then", "ahead", "expected"),
    [
        (2.0, 10.0, 15.0, 3.0),  # its shape counts, not its level
        (2.0, 10.0, 5.0, 2.0),  # a load that is to fall takes nothing away
        (2.0, 10.0, 90.0, 6.0),  # a wrong forecast adds so much at most
        (2.0, 0.0, 1.0, 6.0),
        (2.0, 0.0, 0.0, 2.0),
        (0.0, 1.0, 2.0, 0.0),
    ],
)
def test_the_present_load_grows_as_the_forecast_does(used: float, then: float, ahead: float, expected: float) -> None:
    assert _one(used, then, ahead) == pytest.approx(expected)


def test_nothing_is_said_of_what_is_not_measured() -> None:
    assert np.isnan(_one(float("nan"), 1.0, 2.0))
    assert _one(1.0, float("nan"), 2.0) >= 1.0


@given(amounts, amounts, amounts, st.floats(1, 100))
@example(1.0, 5e-324, 1.0, 2.0)
def test_it_stays_between_floor_and_ceiling(used: float, then: float, ahead: float, ceiling: float) -> None:
    assert used <= _one(used, then, ahead, ceiling) <= used * ceiling * (1 + 1e-12)


def test_a_ceiling_below_the_floor_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        _one(1.0, 1.0, 1.0, 0.5)
