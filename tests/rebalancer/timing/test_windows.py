"""When moves may be made."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from base.arrays import Floats
from base.errors import InputError
from base.local_hours import ChangeWindows
from forecast.calendar import Calendar
from rebalancer.rebalance_settings import WindowOptions
from rebalancer.timing.windows import MoveWindows, may_start, move_windows
from testing.constants import with_constants

BERLIN = Calendar("Europe/Berlin")
DAY = date(2026, 11, 24)
SPRING, AUTUMN = date(2026, 3, 29), date(2026, 10, 25)

EVENING = np.array([0.3] * 4 + [0.2] * 7 + [0.3] * 5 + [0.5] * 18 + [0.9] * 11 + [0.5] * 3)
"""Low from 02:00 to 05:30, high from 17:00 to 22:30."""


def days(one: Floats, n: int = 3) -> Floats:
    return np.tile(one, (n, 1))


def found(
    load: Floats, day: date = DAY, *, calendar: Calendar = BERLIN, now: datetime | None = None, **options: object
) -> MoveWindows:
    return move_windows(
        load, day, calendar, now or calendar.midnight(day), with_constants(WindowOptions(), **options), ChangeWindows()
    )


def local(windows: MoveWindows, calendar: Calendar = BERLIN) -> list[str]:
    zone = calendar.zone
    return [f"{one.begin.astimezone(zone):%d %H:%M} {one.end.astimezone(zone):%H:%M}" for one in windows.windows]


def test_the_valley_ends_a_freeze_before_the_ramp() -> None:
    # Valley: up to 0.2 + 25 % of 0.7 = 0.375; the ramp is at 08:00.
    assert local(found(days(EVENING))) == ["24 00:00 07:00"]
    assert local(found(days(EVENING), freeze=0)) == ["24 00:00 08:00"]
    assert local(found(days(EVENING), freeze=5400)) == ["24 00:00 06:30"]
    assert local(found(days(EVENING), freeze=100)) == ["24 00:00 07:30"]  # rounded up to half hours
    assert local(found(days(EVENING), valley_share=0.1, shortest=2.5 * 3600)) == ["24 02:00 04:30"]
    assert local(found(days(EVENING), valley_share=0.1, shortest=3 * 3600)) == []
    none = found(days(EVENING), freeze=12 * 3600)
    assert none.windows == () and "low enough" in none.because and not may_start(BERLIN.midnight(DAY), none.windows)
    nepal = Calendar("Asia/Kathmandu")  # off the full hour
    assert local(found(days(EVENING), calendar=nepal), nepal) == ["24 00:00 07:00"]


def test_a_valley_over_midnight_is_one_window() -> None:
    late = np.roll(EVENING, -6)  # low from 21:00 to 05:00; high from 14:00
    windows = found(days(late), now=BERLIN.at(DAY, 12), peak_hours=["14:00-20:00"])
    assert local(windows) == ["24 21:00 04:00"]
    (window,) = windows.windows
    assert may_start(BERLIN.midnight(DAY + timedelta(days=1)), windows.windows)
    assert not may_start(window.end, windows.windows) and may_start(window.begin, windows.windows)


def test_configured_peak_hours_are_kept_free_even_if_the_load_is_low_then() -> None:
    upside_down = np.roll(EVENING, 34)  # low from 19:00 to 22:30 and around it
    assert local(found(days(upside_down), now=BERLIN.at(DAY, 10))) == ["24 23:00 00:00"]
    assert local(found(days(upside_down), now=BERLIN.at(DAY, 10), peak_hours=[])) == ["24 17:00 00:00"]


def test_a_flat_load_gets_its_lowest_hours_outside_of_the_peak_hours() -> None:
    flat = np.full(48, 0.5)
    flat[36:40] = 0.495  # 18:00 to 20:00
    flat[6:14] = 0.498  # 03:00 to 07:00
    windows = found(days(flat))
    assert windows.is_flat and "no valley" in windows.because
    assert local(windows) == ["24 03:00 07:00"]
    assert local(found(days(flat), flat_hours=1.5)) == ["24 03:00 04:30"]
    assert local(found(days(np.zeros(48)))) == ["24 00:00 04:00"]


def test_windows_have_whole_half_hours_of_the_change_windows_and_no_freeze_before_their_end() -> None:
    def within(*texts: str) -> MoveWindows:
        changes = ChangeWindows.of(texts)
        return move_windows(days(EVENING), DAY, BERLIN, BERLIN.midnight(DAY), WindowOptions(), changes)

    assert local(within("03:10-05:00")) == ["24 03:30 05:00"]
    assert local(within("22:00-01:00", "06:00-09:00")) == ["24 00:00 01:00", "24 06:00 07:00"]
    assert "only in change_windows (03:10-05:00)" in within("03:10-05:00").because
    assert local(within("12:00-13:00")) == []
    assert within("12:00-13:00").because.endswith("long enough in change_windows (12:00-13:00)")
    flat = move_windows(
        days(np.full(48, 0.5)), DAY, BERLIN, BERLIN.midnight(DAY), WindowOptions(), ChangeWindows.of(("02:00-04:00",))
    )
    assert local(flat) == ["24 02:00 04:00"]


def test_what_is_not_predicted_is_no_valley_and_may_be_the_ramp() -> None:
    load = days(EVENING)
    load[0, 10] = np.nan
    assert local(found(load)) == ["24 00:00 04:00", "24 05:30 07:00"]
    nothing = found(np.full((2, 48), np.nan))
    assert nothing.windows == () and "no load is predicted" in nothing.because


def test_windows_of_the_past_are_gone() -> None:
    now = BERLIN.at(DAY, 6) + timedelta(minutes=40)
    assert local(found(days(EVENING), now=now, shortest=60)) == ["24 06:30 07:00", "25 00:00 06:30"]
    later = now + timedelta(minutes=20)
    assert local(found(days(EVENING), now=later)) == ["25 00:00 07:00"]


@pytest.mark.parametrize(("day", "hours"), [(SPRING, 6.0), (AUTUMN, 8.0), (DAY, 7.0)])
def test_days_of_23_and_25_hours(day: date, hours: float) -> None:
    windows = found(days(EVENING), day)
    window = windows.windows[0]
    assert local(windows)[0] == f"{day.day:02} 00:00 07:00"  # by the clock on the wall
    assert (window.end - window.begin).total_seconds() / 3600 == hours  # in real time


def test_a_load_of_another_shape_is_refused() -> None:
    with pytest.raises(InputError, match=r"\(days, 48\)"):
        found(np.zeros(48))


def test_peak_hours_that_cannot_be_read_are_refused() -> None:
    with pytest.raises(InputError, match=r"peak_hours.*no range of hours"):
        WindowOptions(peak_hours=("evening",))


@given(
    arrays(np.float64, (3, 48), elements=st.one_of(st.floats(0, 2), st.just(np.nan))),
    st.sampled_from([DAY, SPRING, AUTUMN, AUTUMN - timedelta(days=1)]),
    st.integers(0, 47 * 60),
)
def test_what_holds_for_all_windows(load: Floats, day: date, minutes: int) -> None:
    now = BERLIN.midnight(day) + timedelta(minutes=minutes)
    options = WindowOptions()
    windows = move_windows(load, day, BERLIN, now, options, ChangeWindows()).windows
    end = datetime.min.replace(tzinfo=UTC)
    for window in windows:
        assert end < window.begin < window.end  # in order, and not touching
        assert (window.end - window.begin).total_seconds() >= options.shortest
        assert now - timedelta(minutes=30) < window.begin and window.end <= now + timedelta(hours=24.5)
        end, at = window.end, window.begin
        while at < end:
            assert not 17 <= at.astimezone(BERLIN.zone).hour < 23
            local_day, slot = BERLIN.day_and_slot(at)
            assert np.isfinite(load[(local_day - day).days, slot])
            at += timedelta(minutes=30)
        assert may_start(window.begin, windows) and not may_start(window.end, windows)
