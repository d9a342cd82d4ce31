"""Hours of the day and week as owners write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from base.errors import InputError
from base.local_hours import ChangeWindows, parse_hours

BERLIN = ZoneInfo("Europe/Berlin")
MONDAY = datetime(2026, 11, 23)


def at(day: int, hour: int, minute: int = 0) -> datetime:
    """day: 0 = Monday."""
    return MONDAY + timedelta(days=day, hours=hour, minutes=minute)


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("01:00-05:00", [at(0, 1), at(6, 4, 59)], [at(0, 0, 59), at(0, 5), at(3, 13)]),
        ("22:00-04:00", [at(0, 22), at(1, 3, 59), at(0, 0)], [at(0, 4), at(0, 21, 59)]),
        ("fri 22:00-04:00", [at(4, 23), at(5, 3)], [at(4, 3), at(5, 23), at(6, 3)]),
        ("sun 22:00-04:00", [at(6, 23), at(0, 3)], [at(6, 3), at(1, 3)]),
        ("sat,sun 00:00-24:00", [at(5, 0), at(6, 23, 59)], [at(4, 23, 59), at(0, 0)]),
        ("fri-mon 01:00-02:00", [at(4, 1), at(6, 1), at(0, 1)], [at(1, 1), at(3, 1)]),
        ("mon 01:00-02:00; tue 03:00-04:00", [at(0, 1), at(1, 3)], [at(1, 1), at(0, 3)]),
        ("01:00-02:00, 03:00-04:00", [at(0, 1), at(2, 3)], [at(0, 2)]),
        ("  MON , Tue   1:00-2:00".replace("1:", "01:").replace("2:", "02:"), [at(0, 1), at(1, 1)], [at(2, 1)]),
    ],
)
def test_what_is_inside(text: str, inside: list[datetime], outside: list[datetime]) -> None:
    hours = parse_hours(text)
    assert all(map(hours.contains, inside)) and not any(map(hours.contains, outside))


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ; ",
        "always",
        "1:00-2:00",
        "01:00",
        "01:00-25:00",
        "24:00-01:00",
        "01:60-02:00",
        "01:00-24:30",
        "01:00-01:00",
        "mo 01:00-02:00",
        "mon-xyz 01:00-02:00",
        "mon",
        "mon 01:00-02:00 UTC",
        "01:00-02:00,",
        "٠١:٠٠-٠٢:٠٠",
        "01:00-02:00;" * 100,
    ],
)
def test_what_cannot_be_read_is_refused_with_the_way_out(text: str) -> None:
    with pytest.raises(InputError, match=r"write |at most"):
        parse_hours(text)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        hours = parse_hours(text)
    except InputError:
        return
    assert hours.ranges


@given(
    st.integers(0, 47),
    st.integers(0, 180),
    st.sampled_from(["02:00-03:00", "02:30-02:40", "sun 01:00-02:15", "23:00-00:30", "sun 02:00-03:00"]),
    st.sampled_from([datetime(2026, 3, 28, 20, tzinfo=UTC), datetime(2026, 10, 24, 20, tzinfo=UTC)]),
)
def test_an_overlap_is_a_minute_inside_also_when_clocks_change(
    half_hours: int, minutes: int, text: str, night: datetime
) -> None:
    hours, begin = parse_hours(text), night + timedelta(minutes=30 * half_hours // 2)
    instants = [begin + timedelta(minutes=n) for n in range(max(1, minutes))]
    inside = any(hours.contains(one.astimezone(BERLIN)) for one in instants)
    assert hours.overlaps(begin, begin + timedelta(minutes=minutes), BERLIN) == inside


NIGHTS = ChangeWindows.of(("Mon-Fri 22:00-06:00",))


def _berlin(year: int, month: int, day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(year, month, day, hour, minute, tzinfo=BERLIN)


def test_change_windows_go_over_midnight_and_without_them_changes_are_always_allowed() -> None:
    open_at = [_berlin(2026, 11, 23, 22), _berlin(2026, 11, 24, 5, 59), _berlin(2026, 11, 28, 3)]  # Monday, Saturday
    closed_at = [_berlin(2026, 11, 23, 3), _berlin(2026, 11, 24, 6), _berlin(2026, 11, 28, 23)]
    assert [NIGHTS.closed(one, BERLIN) for one in open_at] == [""] * 3
    assert {NIGHTS.closed(one, BERLIN) for one in closed_at} == {
        "it is outside of change_windows (Mon-Fri 22:00-06:00)"
    }
    assert not any(ChangeWindows().closed(one, BERLIN) for one in (*open_at, *closed_at))


def test_the_time_zone_of_the_settings_counts_before_that_of_the_model() -> None:
    at_21_utc = datetime(2026, 11, 23, 21, tzinfo=UTC)
    assert NIGHTS.closed(at_21_utc, ZoneInfo("UTC")) and not NIGHTS.closed(at_21_utc, BERLIN)
    ours = ChangeWindows.of(("22:00-06:00",), BERLIN)
    assert not ours.closed(at_21_utc, ZoneInfo("UTC"))


@pytest.mark.parametrize(
    ("night", "minutes"), [(datetime(2026, 3, 29, tzinfo=UTC), 0), (datetime(2026, 10, 25, tzinfo=UTC), 120)]
)
def test_an_hour_that_the_clock_skips_never_opens_and_one_that_comes_twice_opens_twice(
    night: datetime, minutes: int
) -> None:
    windows = ChangeWindows.of(("02:00-03:00",))
    instants = [night - timedelta(hours=2) + timedelta(minutes=n) for n in range(6 * 60)]
    assert sum(not windows.closed(one, BERLIN) for one in instants) == minutes


def test_windows_say_until_when_they_are_open_and_whether_they_cover_a_time() -> None:
    begin, end = _berlin(2026, 11, 24, 5, 45), _berlin(2026, 11, 24, 6, 15)
    assert NIGHTS.open_until(begin, end, BERLIN) == _berlin(2026, 11, 24, 6)
    assert NIGHTS.open_until(end, end + timedelta(hours=1), BERLIN) == end
    assert not NIGHTS.covers(begin, end, BERLIN)
    assert NIGHTS.covers(begin, _berlin(2026, 11, 24, 6), BERLIN) and ChangeWindows().covers(begin, end, BERLIN)
