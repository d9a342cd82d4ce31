"""Schedules by example; random ones are held against robfig/cron itself in test_robfig.py."""

from __future__ import annotations

from datetime import datetime
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
