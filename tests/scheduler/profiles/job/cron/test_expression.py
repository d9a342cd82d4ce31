"""Schedules by example; random ones are held against robfig/cron itself in test_robfig.py."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecast.errors import InputError
from scheduler.profiles.job.cron.expression import CronExpression

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


def test_a_skipped_hour_is_left_out_and_a_repeated_one_counts_twice() -> None:
    assert times("30 2 * * *", "2026-03-28T12:00", "2026-03-30T12:00") == ["03-30 02:30"]
    assert times("30 2 * * *", "2026-10-24T12:00", "2026-10-26T12:00") == ["10-25 02:30", "10-25 02:30", "10-26 02:30"]


def test_a_day_that_was_left_out_is_passed_over() -> None:
    every_day = CronExpression.parse("0 0 31 * *", "Pacific/Apia")  # the 29th was followed by the 31st
    assert every_day.next_after(int(at("2011-12-28T12:00"))) == int(datetime(2011, 12, 30, 10, tzinfo=UTC).timestamp())


def test_a_time_that_is_rarer_than_changes_of_the_clock_is_found() -> None:
    assert times("0 12 1 1,12 *", "2026-01-15T00:00", "2027-02-01T00:00") == ["12-01 12:00", "01-01 12:00"]


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
