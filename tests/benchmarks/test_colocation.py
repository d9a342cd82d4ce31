"""What low-priority pods do to real evenings: admitted by forecast nearly nothing, by requests a lot."""

from __future__ import annotations

import pytest

from benchmarks.colocation import colocation


@pytest.mark.long  # ten seconds of computing
def test_the_gap_is_filled_and_the_evenings_stay_as_they_are() -> None:
    found = colocation(rules=("no pods", "requests", "forecast", "true future"))
    alone, by_requests, by_forecast, known = found.values()
    assert alone.hot < 0.02
    assert by_requests.hot > 0.5 and by_requests.highest > 1.2
    assert by_forecast.hot <= alone.hot + 0.005 and by_forecast.highest <= max(0.85, alone.highest)
    assert known.pods / 4 < by_forecast.pods < known.pods
