"""What a night's reading does with days that cannot be read, servers that die, and a lease that is lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from base.errors import InputError
from forecast.calendar import Calendar
from tests.trainer.own_history.days import DAY, day_tables, midnight
from trainer.history_update import Reading, read_new_days
from trainer.own_history_store import OwnHistory
from trainer.prometheus.day_tables import DayTables
from trainer.prometheus.http_answer import PrometheusUnreachable
from trainer.prometheus.prometheus_settings import SourceOptions
from trainer.prometheus.prometheus_source import PrometheusSource
from trainer.run_lease import LeaseLost

N_DAYS = 5
DAYS = [DAY + timedelta(days=i) for i in range(N_DAYS)]
NOW = midnight(DAYS[-1], 30)


@dataclass
class Server:
    """Stands in for PrometheusSource: days that it has, and days on which reading fails."""

    url: str = "http://prometheus"
    options: SourceOptions = field(default_factory=lambda: SourceOptions(step=1800))
    failing: dict[date, Exception] = field(default_factory=dict)
    asked: list[date] = field(default_factory=list)
    created: int | None = 1_700_000_000

    def kube_system_created(self, now: datetime) -> int | None:
        return self.created

    def days_with_data(self, first: date, now: datetime) -> tuple[date, ...]:
        return tuple(day for day in DAYS if day >= first)

    def read_day(self, day: date, until: datetime, progress: object = None) -> DayTables:
        self.asked.append(day)
        if day in self.failing:
            raise self.failing[day]
        return day_tables(day)


def read(server: Server, own: OwnHistory, **options: Any) -> Reading:
    arguments = {"now": NOW, "days": 28, "keep_days": 100, "calendar": Calendar(), **options}
    return read_new_days(cast(PrometheusSource, server), own, **arguments)


def test_a_day_that_cannot_be_read_does_not_keep_later_days_out(tmp_path: Path) -> None:
    own = OwnHistory(str(tmp_path))
    server = Server(failing={DAYS[1]: InputError("query node_cpu returns a series without the label node")})
    reading = read(server, own)
    assert reading.days == tuple(day for day in DAYS if day != DAYS[1])
    assert list(reading.unreadable) == [DAYS[1]] and "label node" in reading.unreadable[DAYS[1]]
    server.failing.clear()
    assert read(server, own).days == (DAYS[1],)
    assert read(server, own).days == ()


def test_when_no_day_can_be_read_the_run_ends(tmp_path: Path) -> None:
    server = Server(failing={day: InputError(f"wrong on {day}") for day in DAYS})
    with pytest.raises(InputError, match=f"wrong on {DAYS[-1]}"):
        read(server, OwnHistory(str(tmp_path)))


def test_a_server_that_is_gone_is_not_asked_for_every_day(tmp_path: Path) -> None:
    own, server = OwnHistory(str(tmp_path)), Server(failing={DAYS[2]: PrometheusUnreachable("cannot be reached")})
    with pytest.raises(PrometheusUnreachable):
        read(server, own)
    assert server.asked == DAYS[:3]
    assert list(own.read_days()) == DAYS[:2]


def test_days_that_would_not_be_kept_are_not_read(tmp_path: Path) -> None:
    server = Server()
    reading = read(server, OwnHistory(str(tmp_path)), keep_days=3)
    assert server.asked == [day for day in DAYS if day >= NOW.date() - timedelta(days=3)]
    assert reading.forgotten == ()


def test_a_run_that_lost_its_lease_writes_nothing_more(tmp_path: Path) -> None:
    own = OwnHistory(str(tmp_path))
    with pytest.raises(LeaseLost):
        read(Server(), own, before_write=_lost_after(3))
    assert list(own.read_days()) == DAYS[:2]  # once before history.json, then once before each day


def test_days_of_another_cluster_are_not_mixed_with_those_that_are_there(tmp_path: Path) -> None:
    own, before = OwnHistory(str(tmp_path)), tmp_path / "history.json"
    read(Server(), own)
    other = Server(created=1_800_000_000)
    with pytest.raises(InputError, match=r"days of another cluster.*1700000000.*1800000000"):
        read(other, own)
    assert other.asked == []
    assert read(Server(created=None), own).days == ()  # who does not say it is not refused
    before.write_text(before.read_text().replace("kube_system_created", "of_before"))
    read(other, own)


def _lost_after(n_checks: int) -> Callable[[], None]:
    left = iter(range(n_checks))

    def check() -> None:
        if next(left, None) is None:
            raise LeaseLost("another run has it")

    return check
