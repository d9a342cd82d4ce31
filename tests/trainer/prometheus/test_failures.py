"""Servers that are away, slow, broken or foreign: the same tables in the end, or one sentence with the way out."""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from base.errors import InputError
from testing.constants import with_constants
from testing.servers.bad_proxy import BadProxy, Behaviour, self_signed
from testing.servers.prometheus import PrometheusServer, free_port
from tests.trainer.prometheus.scrapes import DAY, HOUR, options_day_end
from tests.trainer.prometheus.small_server import small_server
from trainer.prometheus.day_tables import DayTables
from trainer.prometheus.log_source import LogSource
from trainer.prometheus.prometheus_connection import PrometheusConnection
from trainer.prometheus.prometheus_settings import ConnectionOptions, SourceOptions
from trainer.prometheus.prometheus_source import PrometheusSource
from trainer.prometheus.queries import Queries


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    with small_server(tmp_path_factory.mktemp("blocks")) as running:
        yield running


@pytest.fixture(scope="module")
def expected(server: PrometheusServer) -> DayTables:
    tables = _source(server.url).read_day(DAY, options_day_end())
    assert tables.usage.num_rows == 9 * 48 and tables.nodes.num_rows == 3 * 48
    return tables


def _source(url: str, options: SourceOptions | None = None, **connection: Any) -> PrometheusSource:
    settings = {"patience": 20.0, "first_patience": 10.0} | connection
    sleep: Callable[[float], None] = lambda seconds: time.sleep(min(seconds, 0.05))  # noqa: E731
    return PrometheusSource(
        PrometheusConnection(url, with_constants(ConnectionOptions(), **settings), sleep=sleep),
        options or SourceOptions(log_source=LogSource.NONE),
    )


def _same(one: DayTables, other: DayTables) -> bool:
    return all(
        getattr(one, name).equals(getattr(other, name)) for name in ("usage", "nodes", "pods", "capacity")
    ) and isinstance(one.usage, pa.Table)


def _every(nth: int, *actions: str) -> Behaviour:
    """One action in turn on every nth request."""
    return lambda number, path: actions[number // nth % len(actions)] if number % nth == nth - 1 else "pass"


@pytest.mark.parametrize("action", ["drop", "503", "502", "500", "429", "text", "half", "slow"])
def test_what_passes_is_retried(server: PrometheusServer, expected: DayTables, action: str) -> None:
    with BadProxy(server.url, _every(3, action)) as proxy:
        assert _same(_source(proxy.url).read_day(DAY, options_day_end()), expected)
        assert len(proxy.requests) > 20


def test_a_slow_answer_times_out_and_is_asked_again(server: PrometheusServer, expected: DayTables) -> None:
    with BadProxy(server.url, _every(5, "slow")) as proxy:
        assert _same(_source(proxy.url, timeout=0.2).read_day(DAY, options_day_end()), expected)


def test_an_answer_that_drips_is_given_up_and_asked_again(server: PrometheusServer, expected: DayTables) -> None:
    with BadProxy(server.url, _every(9, "drip")) as proxy:
        assert _same(_source(proxy.url, timeout=0.4).read_day(DAY, options_day_end()), expected)


def test_an_answer_beyond_all_bounds_is_asked_for_in_pieces(
    server: PrometheusServer, expected: DayTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "trainer.prometheus.prometheus_connection._LARGEST_ANSWER", 10_000
    )  # the largest of them has 16,000
    assert _same(_source(server.url).read_day(DAY, options_day_end()), expected)


def test_retries_report_their_progress(
    server: PrometheusServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("trainer.prometheus.prometheus_connection._REPORT_SECONDS", 0.3)
    dies: Behaviour = lambda number, path: "pass" if number < 1 else "503"  # noqa: E731
    with BadProxy(server.url, dies) as proxy:
        connection = _source(proxy.url, patience=1.4)._connection
        connection.instant("pod_info", "up")
        with pytest.raises(InputError, match=r"\(asked \d+ times in \d+ s\)"):
            connection.instant("pod_cpu", "vector(1)")
    lines = [record for record in caplog.records if record.getMessage() == "a query is repeated"]
    assert 2 <= len(lines) <= 4, [vars(record) for record in lines]
    for record in lines:
        told = vars(record)
        assert told["query"] == "pod_cpu" and "answers HTTP 503 (shutting down)" in told["error"]
    assert [vars(record)["attempt"] for record in lines] == sorted({vars(record)["attempt"] for record in lines})
    assert vars(lines[0])["seconds_left"] == 1


def test_the_limit_of_a_real_server(server: PrometheusServer, expected: DayTables) -> None:
    with PrometheusServer(server.blocks.parent / "limited", arguments=["--query.max-samples=4000"]) as limited:
        limited.stop()
        for block in server.blocks.iterdir():
            if block.is_dir() and (block / "meta.json").exists():
                shutil.copytree(block, limited.blocks / block.name, copy_function=os.link)
        limited.start()
        assert _same(_source(limited.url).read_day(DAY, options_day_end()), expected)


def test_a_server_that_refuses_even_little_is_told(server: PrometheusServer) -> None:
    refuse: Behaviour = lambda number, path: "422" if "container_cpu" in path else "pass"  # noqa: E731
    with BadProxy(server.url, refuse) as proxy, pytest.raises(InputError, match=r"pod_cpu.*query\.max-samples"):
        _source(proxy.url).read_day(DAY, options_day_end())


def test_small_pieces_give_the_same(server: PrometheusServer, expected: DayTables) -> None:
    options = SourceOptions(log_source=LogSource.NONE, max_samples=500, parallel=2)
    assert _same(_source(server.url, options).read_day(DAY, options_day_end()), expected)


def test_a_restart_in_the_middle(server: PrometheusServer, expected: DayTables) -> None:
    restarted = threading.Event()

    def start() -> None:
        server.start()
        restarted.set()

    def restart(number: int, path: str) -> str:
        if number == 12:
            server.stop()
            threading.Timer(0.5, start).start()
        return "pass"

    with BadProxy(server.url, restart) as proxy:
        assert _same(_source(proxy.url).read_day(DAY, options_day_end()), expected)
        assert restarted.is_set()


def test_an_unreachable_server_is_told_soon() -> None:
    with pytest.raises(InputError, match=r"cannot be reached \(.*refused.*asked \d+ times.*is the URL right"):
        _source(f"http://127.0.0.1:{free_port()}", first_patience=1.0).check(datetime.now(UTC))


def test_without_patience_the_error_tells_no_time() -> None:
    """Failed before: "(tried for 0 s)"."""
    with pytest.raises(InputError, match=r"refused\): is the URL right"):
        _source(f"http://127.0.0.1:{free_port()}", patience=0.0).check(datetime.now(UTC))


def test_a_server_that_takes_connections_and_never_answers(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Failed before: two minutes of silence, and then "(tried for 15 s)"."""
    monkeypatch.setattr("base.announced_wait.FIRST_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(InputError, match=r"timed out.*\) \(asked once, for \d+ s\): is the URL right"):
            _source(url, first_patience=1.0).check(datetime.now(UTC))
    (line,) = [vars(record) for record in caplog.records if record.getMessage() == "no answer yet"]
    assert line["of"] == f"{url} to query server time" and line["seconds_left"] == 1


def test_a_server_that_dies_for_good_ends_the_patience(server: PrometheusServer) -> None:
    dies: Behaviour = lambda number, path: "pass" if number < 5 else "503"  # noqa: E731
    message = r"503 \(shutting down\) \(asked \d+ times in \d+ s\)"
    with BadProxy(server.url, dies) as proxy, pytest.raises(InputError, match=message):
        _source(proxy.url, patience=1.0).read_day(DAY, options_day_end())


def test_a_healthy_server_passes_the_check(server: PrometheusServer) -> None:
    now = datetime.now(UTC)
    source = _source(server.url)
    source.check(now)
    assert source.days_with_data(DAY - timedelta(days=2), now)[0] == DAY
    assert now.date() in source.days_with_data(now.date() - timedelta(days=2), now) or now.hour == 0


def test_the_token_is_read_again_for_every_request(server: PrometheusServer, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old\n")
    with BadProxy(server.url, authorization="Bearer new") as proxy:
        source = _source(proxy.url, bearer_token_file=token, headers={"X-Scope-OrgID": "team"})
        with pytest.raises(InputError, match=r"refuses the credentials \(HTTP 401.*bearer_token_file"):
            source.check(datetime.now(UTC))
        assert len(proxy.requests) == 1  # wrong credentials are not tried again
        token.write_text("new\n")
        source.check(datetime.now(UTC))
        assert proxy.headers["x-scope-orgid"] == "team"


def test_user_name_and_password(server: PrometheusServer, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("secret\n")
    with BadProxy(server.url, authorization="Basic bWU6c2VjcmV0") as proxy:
        _source(proxy.url, username="me", password_file=tmp_path / "password").check(datetime.now(UTC))


def test_certificates(server: PrometheusServer, tmp_path: Path) -> None:
    certificate = self_signed(tmp_path)
    with BadProxy(server.url, certificate=certificate) as proxy:
        with pytest.raises(InputError, match=r"no secure connection .*prometheus\.ca_file"):
            _source(proxy.url).check(datetime.now(UTC))
        _source(proxy.url, ca_file=certificate).check(datetime.now(UTC))
        _source(proxy.url, insecure=True).check(datetime.now(UTC))
    with pytest.raises(InputError, match=r"prometheus\.ca_file .* cannot be read"):
        _source(proxy.url, ca_file=tmp_path / "none.pem")


@pytest.mark.parametrize("skew", [timedelta(hours=-3), timedelta(minutes=2)])
def test_clocks_that_differ_are_told_with_both_times(server: PrometheusServer, skew: timedelta) -> None:
    now = datetime.now(UTC)
    with pytest.raises(InputError, match=rf"clocks differ.*we say {now + skew:%Y-%m-%d %H}"):
        _source(server.url).check(now + skew)


@pytest.mark.parametrize("source", [LogSource.VECTOR, LogSource.FLUENT_BIT, LogSource.KUBELET])
def test_a_log_source_that_is_not_there_is_refused(server: PrometheusServer, source: LogSource) -> None:
    with pytest.raises(InputError, match=rf"prometheus\.log_source {source.value} counts: scrape that collector"):
        _source(server.url, SourceOptions(log_source=source)).check(datetime.now(UTC))


def test_a_server_without_kube_state_metrics(tmp_path: Path) -> None:
    with PrometheusServer(tmp_path) as empty, pytest.raises(InputError, match=r"no kube_pod_info .*kube-state-metrics"):
        _source(empty.url).check(datetime.now(UTC))


_CHANGED = [
    ("pod_cpu", "foreign_metric", "query pod_cpu of the settings found nothing .*queries.pod_cpu, or set it to ''"),
    ("node_disk", "foreign_metric", "query node_disk of the settings found nothing"),
    ("pod_memory", "sum by (pod) (container_memory_working_set_bytes)", "pod_memory.*without the label namespace"),
    ("node_cpu", "sum by (instance) (rate(node_cpu_seconds_total[5m]))", "without the label node .labels found: inst"),
    (
        "pod_memory",
        'container_memory_working_set_bytes or label_replace(container_memory_working_set_bytes, "x", "y", "", "")',
        "returns 2 series for pod data/pod-1",
    ),
    ("pod_cpu", "kube_pod_info + on (namespace) kube_pod_info", "cannot evaluate query pod_cpu"),
]


@pytest.mark.parametrize(("name", "query", "message"), _CHANGED)
def test_queries_that_cannot_be_right(server: PrometheusServer, name: str, query: str, message: str) -> None:
    options = SourceOptions(queries={name: query}, log_source=LogSource.NONE)
    with pytest.raises(InputError, match=message):
        _source(server.url, options).check(datetime.now(UTC))


def test_wrong_units(server: PrometheusServer) -> None:
    queries = {"pod_cpu": f"1000 * ({Queries().pod_cpu})"}
    with pytest.raises(InputError, match=r"pod_cpu adds up to .* times what node_cpu says"):
        _source(server.url, SourceOptions(queries=queries)).read_day(DAY, options_day_end())


def test_never_beyond_until(server: PrometheusServer) -> None:
    until = options_day_end() - timedelta(hours=23, minutes=-7)  # 01:07
    tables = _source(server.url).read_day(DAY, until)
    times = tables.usage["timestamp"].to_pylist()
    assert max(times) == datetime(2026, 3, 2, 1, 0, tzinfo=UTC)
    assert _source(server.url).read_day(DAY, until - timedelta(hours=1, minutes=3)).usage.num_rows == 0
    assert 4 * HOUR == 48 * 300
