"""`doctor --prometheus` tells what a server has and whether it balances, and refuses what train would refuse."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from forecast_scheduler.cli import run
from testing.servers.prometheus import PrometheusServer
from tests.trainer.prometheus.small_server import small_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    with small_server(tmp_path_factory.mktemp("blocks")) as running:
        yield running


def test_what_a_server_has_is_told_in_sentences(server: PrometheusServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--prometheus", server.url]) == 0
    out = capsys.readouterr().out
    assert "3 nodes" in out and "9 running pods of 3 services" in out
    assert "cpu: 9 pods use 9.00 cores, 100% of what 3 nodes use (9.00 cores)" in out
    assert "disk: not measured" in out and "2 findings" not in out.split("network: not measured")[0]


def test_a_server_without_pods_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with PrometheusServer(tmp_path) as empty:
        assert run(["doctor", "--prometheus", empty.url]) == 2
    assert "deploy kube-state-metrics" in capsys.readouterr().err


def test_one_thing_is_looked_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--prometheus", "http://127.0.0.1:1", "--history", str(tmp_path)]) == 2
    assert "give one of them" in capsys.readouterr().err
