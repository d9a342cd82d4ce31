from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecast.calendar import Calendar
from forecast.sample_grid import SampleGrid, slot_last, slot_means, slot_shares

ZONES = ["UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kathmandu", "Australia/Lord_Howe", "America/Santiago"]


def slow_slot_ticks(grid: SampleGrid, zone: str, first_day: date) -> list[list[int]]:
    """The ticks of each slot, one minute at a time."""
    slots: list[list[int]] = [[] for _ in range(grid.n_days * 48)]
    for tick in range(grid.n_ticks):
        start = datetime.fromtimestamp(grid.first + tick * grid.step_seconds, UTC)
        # A sample up to a slot long counts where it begins, a longer one wherever it reaches, by pieces of 5 minutes.
        pieces = 1 if grid.step_seconds <= 1800 else -(-grid.step_seconds // 300)
        for piece in range(pieces):
            local = (start + timedelta(seconds=300 * piece)).astimezone(ZoneInfo(zone))
            day = (local.date() - first_day).days
            if 0 <= day < grid.n_days:
                slots[day * 48 + local.hour * 2 + local.minute // 30].append(tick)
    return slots


@settings(max_examples=40, deadline=None)
@given(
    zone=st.sampled_from(ZONES),
    first_day=st.dates(date(2024, 1, 1), date(2026, 12, 30)),
    n_days=st.integers(1, 3),
    step=st.sampled_from([60, 300, 420, 900, 1800, 2700, 3600]),
    phase=st.integers(0, 3599),
)
def test_every_tick_is_in_the_slots_of_its_wall_clock(
    zone: str, first_day: date, n_days: int, step: int, phase: int
) -> None:
    grid = SampleGrid.of_days(Calendar(zone), first_day, n_days, step_seconds=step, phase_seconds=phase % step)
    assert (grid.first - phase) % step == 0
    found = [[tick for tick in column.tolist() if tick >= 0] for column in grid.slot_ticks.T]
    assert found == slow_slot_ticks(grid, zone, first_day)


def test_a_time_belongs_to_the_nearest_tick() -> None:
    grid = SampleGrid.of_days(Calendar(), date(2026, 3, 2), 1, step_seconds=300)
    times = grid.first + np.array([-151, -150, 0, 149, 150, 300])
    assert grid.ticks(times).tolist() == [-1, 0, 0, 0, 1, 1]


def test_means_skip_what_was_not_measured() -> None:
    grid = SampleGrid.of_days(Calendar(), date(2026, 3, 2), 1, step_seconds=600)
    samples = np.full((144, 1, 1), np.nan, dtype=np.float32)
    samples[:5, 0, 0] = [1, 2, 6, 4, np.nan]
    means = slot_means(samples, grid)
    assert means.shape == (1, 1, 1, 48)
    assert means[0, 0, 0, :2].tolist() == [3.0, 4.0]
    assert np.isnan(means[0, 0, 0, 2:]).all()


def test_shares_count_only_times_at_which_anything_was_sampled() -> None:
    grid = SampleGrid.of_days(Calendar(), date(2026, 3, 2), 1, step_seconds=600)
    seen = np.zeros((144, 2), dtype=np.bool_)
    seen[:5, 0] = True  # 3 of slot 0, 2 of slot 1
    seen[1, 1] = True
    shares, any_data = slot_shares(seen, grid)
    assert shares[:, 0, :3].tolist() == [[1.0, 1.0, 0.0], [pytest.approx(1 / 3), 0.0, 0.0]]
    assert any_data[0, :3].tolist() == [True, True, False]


def test_the_last_known_place_of_a_slot_counts() -> None:
    grid = SampleGrid.of_days(Calendar(), date(2026, 3, 2), 1, step_seconds=600)
    places = np.full((144, 1), -2, dtype=np.int32)
    places[:6, 0] = [0, 3, -1, -1, -2, -2]
    assert slot_last(places, grid)[0, 0, :3].tolist() == [3, -1, -1]
