"""A Prometheus that answers what none can: one sentence with the query, or tables that are sound; never a crash."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from base.errors import InputError
from testing.servers.bad_proxy import BadProxy, Behaviour, Lie
from testing.servers.lies import LIES
from testing.servers.prometheus import PrometheusServer
from tests.trainer.prometheus.scrapes import DAY, options_day_end
from tests.trainer.prometheus.small_server import small_server
from trainer.prometheus.day_tables import DayTables
from trainer.prometheus.live_usage import LiveUsage
from trainer.prometheus.log_source import LogSource
from trainer.prometheus.prometheus_connection import PrometheusConnection
from trainer.prometheus.prometheus_settings import ConnectionOptions, SourceOptions
from trainer.prometheus.prometheus_source import PrometheusSource
from trainer.prometheus.queries import Queries

NAMED = (
    "value null",
    "value a number",
    "value a word",
    "time 1e18",
    "time null",
    "sample short",
    "series null",
    "labels of numbers",
)
"""Lies that are told with the query: nothing else about the answer is wrong."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    with small_server(tmp_path_factory.mktemp("blocks")) as running:
        yield running


def _connection(url: str) -> PrometheusConnection:
    options = ConnectionOptions(patience=0.2)
    return PrometheusConnection(url, options, sleep=lambda seconds: time.sleep(min(seconds, 0.02)))


def _day(url: str) -> DayTables:
    return PrometheusSource(_connection(url), SourceOptions(log_source=LogSource.NONE)).read_day(DAY, options_day_end())


def _checked(url: str) -> object:
    source, now = PrometheusSource(_connection(url)), datetime.now(UTC)
    source.check(now)
    return source.days_with_data(now.date() - timedelta(days=2), now)


def _live(url: str) -> object:
    live = LiveUsage(_connection(url), Queries(), window_seconds=300)
    until = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    seen = live.read()
    for history in (
        live.node_history(["n1"], until - timedelta(hours=3), until),
        live.service_history("shop", ["pod-.*"], until - timedelta(hours=3), until),
    ):
        assert history.shape == (5, 6) and not np.isinf(history).any()
    assert not np.isinf(seen.usage).any() and not np.isinf(seen.sampled).any()
    assert not (seen.sampled > time.time() + 120).any()
    return seen


def assert_sound(tables: DayTables) -> None:
    for table in (tables.usage, tables.nodes):
        times = table["timestamp"].to_pylist()
        assert {at.date() for at in times} <= {DAY}
        for name in table.column_names:
            if name not in ("timestamp", "namespace", "service", "pod", "node"):
                values = table[name].to_numpy()
                known = values[~np.isnan(values)]
                assert np.isfinite(known).all() and (known >= 0).all(), name


def outcome(read: Callable[[str], object], server: PrometheusServer, behaviour: Behaviour, lies: dict[str, Lie]) -> str:
    """What is told, "" where the reading went through."""
    with BadProxy(server.url, behaviour, lies=lies) as proxy:
        try:
            found = read(proxy.url)
        except InputError as error:
            told = str(error)
        else:
            told = ""
    assert len(told.splitlines()) <= 1 and len(told) < 3_000
    if not told and isinstance(found, DayTables):
        assert_sound(found)
    return told


READERS = {"check": _checked, "day": _day, "live": _live}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("lie", LIES)
def test_a_lie_in_every_answer(server: PrometheusServer, reader: str, lie: str) -> None:
    told = outcome(READERS[reader], server, lambda number, path: lie, dict(LIES))
    if lie in NAMED:
        assert "answers query" in told and "no Prometheus says that" in told and "the query is " in told
    if lie == "value 1e308" and reader == "day":  # it would size the day for more queries than there are half minutes
        assert "counts 1e+308 pods in namespace" in told and "no cluster has more than 10,000,000" in told
