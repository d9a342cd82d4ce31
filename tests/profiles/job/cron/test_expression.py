"""Schedules by example; random ones are held against robfig/cron itself in test_robfig.py."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from base.errors import InputError
from profiles.job.cron.expression import CronExpression

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN).timestamp()


def times(schedule: str, after: str, until: str, zone: str = "Europe/Berlin") -> list[str]:
    found = CronExpression.parse(schedule, zone).times_between(at(after), at(until))
    return [f"{datetime.fromtimestamp(t, BERLIN):%m-%d %H:%M}" for t in found]


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("0 */6 * * *", ["06-01 06:00", "06-01 12:00", "06-01 18:00", "06-02 00:00"]),
        ("@daily", ["06-02 00:00"]),
        ("30 2,3 1 * *", ["06-01 02:30", "06-01 03:30"]),
        ("0 9 * * MON-fri", ["06-01 09:00"]),  # 2026-06-01 is a Monday
        ("0 9 13 * mon", ["06-01 09:00"]),  # either day will do
        ("0 9 13 * *", []),
        ("0 20/2 ? JUN ?", ["06-01 20:00", "06-01 22:00"]),
    ],
)
def test_a_day(schedule: str, expected: list[str]) -> None:
    assert times(schedule, "2026-06-01T00:00", "2026-06-02T00:00") == expected


def test_a_time_that_is_rarer_than_changes_of_the_clock_is_found() -> None:
    assert times("0 12 1 1,12 *", "2026-01-15T00:00", "2027-02-01T00:00") == ["12-01 12:00", "01-01 12:00"]


def test_clocks_that_change_by_half_an_hour_leave_out_only_what_does_not_exist() -> None:
    """robfig/cron leaves out 02:00 to 02:29 after the change in autumn, too, though these minutes come once."""
    zone = ZoneInfo("Australia/Lord_Howe")  # 02:00 is 01:30 again on 2026-04-05, and 02:30 on 2026-10-04
    schedule = CronExpression.parse("45,15 1,2 * * *", "Australia/Lord_Howe")
    for day, expected in (
        ("2026-04-05", ["01:15", "01:45", "01:45", "02:15", "02:45"]),
        ("2026-10-04", ["01:15", "01:45", "02:45"]),
    ):
        midnight = datetime.fromisoformat(day).replace(tzinfo=zone).timestamp()
        found = schedule.times_between(midnight, midnight + 4 * 3600)
        assert [f"{datetime.fromtimestamp(t, zone):%H:%M}" for t in found] == expected


def test_a_day_without_a_midnight_is_a_day() -> None:
    """robfig/cron passes over it, unless it looks from a time of that very day."""
    zone = ZoneInfo("Asia/Beirut")  # 2026-03-29 begins at 01:00, a Sunday
    friday = datetime(2026, 3, 27, 12, tzinfo=zone).timestamp()
    found = CronExpression.parse("0 0,5 * * sun", "Asia/Beirut").times_between(friday, friday + 3 * 86_400)
    assert [f"{datetime.fromtimestamp(t, zone):%d %H:%M}" for t in found] == ["29 05:00"]


@pytest.mark.parametrize("schedule", ["0 0 30 2 *", ", * * * *", "+5 * * * *"])
def test_what_never_comes_or_nobody_writes_is_refused_though_the_api_server_takes_it(schedule: str) -> None:
    with pytest.raises(InputError, match="schedule"):
        CronExpression.parse(schedule)


def test_the_second_time_of_an_hour_comes_in_its_order() -> None:
    change = at("2026-10-25T02:00")  # 02:00 to 03:00 come twice
    parsed = CronExpression.parse("*/20 2 * * *", "Europe/Berlin")
    twice = [change + 1200 * n for n in range(6)]
    assert parsed.times_between(change - 1, change + 10_800).tolist() == twice
    for before, after in pairwise(twice):
        assert parsed.next_after(int(before)) == after


def test_times_are_shared_and_cannot_be_changed() -> None:
    times = CronExpression.parse("0 3 * * *").times_between(0, 86_400)
    with pytest.raises(ValueError, match="read-only"):
        times[0] = 0.0


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [("+1h", 3600), ("7s500ms", 7), (".5m", 30), ("0", 1), ("0s", 1), ("-0", 1), ("-1h", 1), ("500ms", 1)],
)
def test_durations_are_those_of_go_and_a_second_at_least(duration: str, seconds: int) -> None:
    assert CronExpression.parse(f"@every {duration}").every == seconds


@pytest.mark.parametrize("duration", ["", "1", "1d", "1h30", "1.2.3h", "+-1h", "2600000h"])
def test_what_go_reads_as_no_duration_is_refused(duration: str) -> None:
    with pytest.raises(InputError, match="is no duration up to 292 years"):
        CronExpression.parse(f"@every {duration}")


def test_every_so_often_counts_from_the_last_start() -> None:
    every = CronExpression.parse("@every 7m")
    assert every.times_between(1000, 2000, anchor=900).tolist() == [1320, 1740]
    assert every.times_between(1000, 1500, anchor=1400).tolist() == []


@pytest.mark.parametrize(
    "schedule", ["", "TZ=UTC 0 3 * * *", "CRON_TZ=UTC 0 3 * * *", "0 3 * * 7", "@reboot", "x" * 999]
)
def test_what_the_api_server_refuses_is_refused(schedule: str) -> None:
    with pytest.raises(InputError):
        CronExpression.parse(schedule)


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../../etc/passwd", "Local", "/etc/localtime", "x" * 999, "a\0b"])
def test_unknown_zones_are_refused(zone: str) -> None:
    with pytest.raises(InputError, match="time zone"):
        CronExpression.parse("0 3 * * *", zone)


@given(st.text(max_size=30) | st.from_regex(r"[-*/,?0-9a-z ]{0,40}", fullmatch=True), st.text(max_size=12))
def test_whatever_is_written_is_read_or_refused(schedule: str, zone: str) -> None:
    try:
        found = CronExpression.parse(schedule, zone).times_between(1.79e9, 1.79e9 + 86_400)
    except InputError:
        return
    assert ((found > 1.79e9) & (found <= 1.79e9 + 86_400)).all()
