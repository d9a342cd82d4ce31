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

import pytest

from base.errors import InputError
from profiles.job.cron.expression import CronExpression

DAY = 86_400
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

# Days on which offsets change: by an hour, twice in a month. (Samoa's lost day hangs robfig/cron. Days without a
# midnight and changes of half an hour, where it leaves out what exists, are in test_expression.py.)
CHANGES = (
    ("Europe/Berlin", "2026-03-29"),
    ("Europe/Berlin", "2026-10-25"),
    ("America/New_York", "2026-03-08"),
    ("America/New_York", "2026-11-01"),
    ("America/Sao_Paulo", "2018-02-18"),
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
    "@every +1h",
    "@every 0",
    "@every 0s",
    "@every -0",
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
    "*-5 * * * *",
    "1/2/3 * * * *",
    "0 0 29 2 *",
    "0 0 29 2 thu-4/2",
    "5,,6, * * * *",
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
