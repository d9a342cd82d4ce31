"""Random schedules, against the library that Kubernetes itself reads them with."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecast.errors import InputError
from scheduler.profiles.job.cron.expression import CronExpression

DAY = 86_400
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

# Days on which offsets change: by an hour, half an hour, at midnight, twice in a month. (Samoa's lost day hangs
# robfig/cron.)
CHANGES = (
    ("Europe/Berlin", "2026-03-29"),
    ("Europe/Berlin", "2026-10-25"),
    ("America/New_York", "2026-03-08"),
    ("America/New_York", "2026-11-01"),
    ("Australia/Lord_Howe", "2026-04-05"),
    ("Australia/Lord_Howe", "2026-10-04"),
    ("America/Sao_Paulo", "2018-11-04"),
    ("America/Sao_Paulo", "2018-02-18"),
    ("Asia/Beirut", "2026-03-29"),
    ("America/Havana", "2026-11-01"),
    ("Africa/Casablanca", "2026-02-15"),
    ("Asia/Kolkata", "2026-07-01"),
    ("UTC", "2024-02-28"),
    ("Asia/Tokyo", "2026-12-31"),
)
WHOLE = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
EVERY = (
    "@every 90m",
    "@every 1h30m",
    "@every 7s500ms",
    "@every 1.5h",
    "@every .5m",
    "@every 20",
    "@every",
    "@every -1h",
)
ODD: tuple[str, ...] = (
    "",
    "* * * *",
    "@never",
    "1 2 3 4 5 6",
    "* * * * 7",
    "60 * * * *",
    "*/0 * * * *",
    "5- * * * *",
    "1-2-3 * * * *",
)
ODD += (
    ", * * * *",
    "*-5 * * * *",
    "+5 * * * *",
    "1/2/3 * * * *",
    "0 0 30 2 *",
    "0 0 29 2 *",
    "5-1 * * * *",
    "- * * * *",
)


class Robfig:
    """The program beside this file."""

    def __init__(self, program: Path) -> None:
        self._program = program

    def times(self, asked: Sequence[tuple[str, str, int, int]]) -> list[list[int] | None]:
        names = ("schedule", "zone", "after", "until")
        lines = "\n".join(json.dumps(dict(zip(names, one, strict=True))) for one in asked)
        done = subprocess.run([self._program], input=lines, capture_output=True, text=True, timeout=300, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def robfig(tmp_path_factory: pytest.TempPathFactory) -> Robfig:
    go = shutil.which("go") or shutil.which("go", path=str(Path(sys.executable).parent))
    if go is None:
        pytest.skip("there is no Go: times of CronJobs are not compared with those of robfig/cron")
    program = tmp_path_factory.mktemp("robfig") / "times"
    built = subprocess.run(
        [go, "build", "-o", str(program), "."],
        cwd=Path(__file__).with_name("robfig"),
        capture_output=True,
        text=True,
        timeout=300,
    )
    if built.returncode:
        pytest.skip(
            f"robfig/cron was not built, and times of CronJobs are not compared with its: {built.stderr[-500:]}"
        )
    return Robfig(program)


def part(rng: random.Random, low: int, high: int, names: Sequence[str]) -> str:
    def value(of: int) -> str:
        name = names[of - low] if names and rng.random() < 0.3 else str(of)
        return name.upper() if rng.random() < 0.2 else name

    first = rng.randint(low, high)
    span = rng.choice(["*", "?", "*", value(first), value(first), f"{value(first)}-{value(rng.randint(first, high))}"])
    step = f"/{rng.choice([1, 2, 3, 5, 7, 10, 15, 20, 100])}" if rng.random() < 0.3 else ""
    return span + step


def schedule(rng: random.Random) -> str:
    if rng.random() < 0.05:
        return rng.choice(WHOLE)
    fields = []
    for low, high, names in (
        (0, 59, ()),
        (0, 23, ()),
        (1, 31, ()),
        (1, 12, MONTHS),
        (0, 6, WEEKDAYS),
    ):
        free = rng.random() < (0.7 if low == 1 or high == 6 else 0.2)
        parts = [rng.choice("*?")] if free else [part(rng, low, high, names) for _ in range(rng.randint(1, 3))]
        fields.append(",".join(parts))
    return " ".join(fields)


def asked(rng: random.Random) -> tuple[str, str, int, int]:
    zone, day = rng.choice(CHANGES)
    about = int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp())
    after = about + rng.randint(-2 * DAY, DAY)
    return schedule(rng), zone, after, after + rng.choice([DAY, 3 * DAY, 40 * DAY])


def differences(robfig: Robfig, questions: Sequence[tuple[str, str, int, int]]) -> list[str]:
    found = []
    n_times = 0
    for one, theirs in zip(questions, robfig.times(questions), strict=True):
        text, zone, after, until = one
        try:
            ours: list[int] | None = [
                int(t) for t in CronExpression.parse(text, zone).times_between(after, until, anchor=after)
            ]
        except InputError:
            ours = None
        n_times += len(ours or ())
        if ours != theirs:
            found.append(f"{one}: ours {ours and sorted(set(ours) ^ set(theirs or ()))[:5]}, {theirs is None=}")
    assert n_times > len(questions)
    return found


def test_random_schedules_give_the_times_of_robfig(robfig: Robfig) -> None:
    rng = random.Random(7)
    assert differences(robfig, [asked(rng) for _ in range(50)]) == []


def test_what_robfig_refuses_is_refused_and_nothing_else(robfig: Robfig) -> None:
    after = 1_790_000_000
    questions = [(text, "Europe/Berlin", after, after + 800 * DAY) for text in (*WHOLE, *ODD)]
    questions += [(text, "Europe/Berlin", after, after + DAY) for text in EVERY]
    assert differences(robfig, questions) == []


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
