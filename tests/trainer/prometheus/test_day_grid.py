"""Evaluation times of a day."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from base.errors import InputError
from trainer.prometheus.query_times import DayGrid

DAY = date(2026, 3, 2)
MIDNIGHT = datetime(2026, 3, 2, tzinfo=UTC)


def test_a_day_ends_with_the_midnight_after_it() -> None:
    grid = DayGrid.of(DAY, MIDNIGHT + timedelta(days=5), 300)
    assert grid.n_ticks == 288 and grid.seconds == 86_400
    assert grid.at(0) == MIDNIGHT + timedelta(minutes=5) and grid.at(287) == MIDNIGHT + timedelta(days=1)


@pytest.mark.parametrize(("minutes", "n_ticks"), [(-60, 0), (0, 0), (4.9, 0), (5, 1), (62, 12), (1440, 288)])
def test_until_is_floored_to_the_step(minutes: float, n_ticks: int) -> None:
    assert DayGrid.of(DAY, MIDNIGHT + timedelta(minutes=minutes), 300).n_ticks == n_ticks


def test_until_may_come_in_any_zone() -> None:
    until = datetime(2026, 3, 2, 3, tzinfo=timezone(timedelta(hours=2)))  # 01:00 UTC
    assert DayGrid.of(DAY, until, 300).n_ticks == 12


@pytest.mark.parametrize("step", [10, 420, 7200])
def test_steps_that_do_not_fit_are_told(step: int) -> None:
    with pytest.raises(InputError, match="must divide an hour"):
        DayGrid.of(DAY, MIDNIGHT, step)
