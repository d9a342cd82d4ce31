"""One night of the rebalancer, and the hours around the peaks of a day with the real descheduler, on real servers."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.rebalanced_nights import total
from forecast.calendar import Calendar
from testing.rebalancing.lived_nights import days_with_descheduler, nights_with_rebalancer
from testing.rebalancing.two_peaks import TwoPeaks, zone_in_the_small_hours

pytestmark = pytest.mark.long  # training, and the descheduler is built once


@pytest.fixture
def world() -> TwoPeaks:
    return TwoPeaks(Calendar(str(zone_in_the_small_hours(datetime.now(UTC)))))


def test_a_night_of_moves_prevents_hot_half_hours_and_nothing_moves_in_the_peak_window(
    world: TwoPeaks, tmp_path: Path
) -> None:
    days = nights_with_rebalancer(world, 1, tmp_path, moves_a_night=18)
    assert 0 < total(days, "evicted") <= 18
    assert total(days, "hot") < total(days, "untouched_hot")
    assert (total(days, "peak_window"), total(days, "returns"), total(days, "violations")) == (0, 0, 0)


def test_the_descheduler_moves_pods_when_nodes_are_hot(world: TwoPeaks, tmp_path: Path) -> None:
    days = days_with_descheduler(world, 1, tmp_path, hours=(3, 10, 20))
    assert total(days, "evicted") >= total(days, "peak_window") > 0
    assert total(days, "violations") == 0
