"""The made-up cluster is read from a real Prometheus as it is on disk: the sum of all traps over three days."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pandas as pd

from testing.measured_cluster.cluster import build_truth
from testing.servers.prometheus import PrometheusServer
from tests.trainer.prometheus.scrapes import frame
from trainer.prometheus.prometheus_connection import PrometheusConnection
from trainer.prometheus.prometheus_source import PrometheusSource

START = date(2026, 3, 2)


def test_what_is_read_is_the_truth(tmp_path: Path) -> None:
    truth = build_truth(tmp_path, n_days=3, start=START)
    end = datetime(2026, 3, 5, tzinfo=UTC)
    with PrometheusServer(truth.blocks) as server:
        source = PrometheusSource(PrometheusConnection(server.url))
        days = source.days_with_data(START - timedelta(days=2), end)
        assert days == tuple(START + timedelta(days=day) for day in range(3))
        read = [source.read_day(day, end) for day in days]
    assert not any(tables.counts for tables in read)
    for name, keys in (
        ("usage", ["timestamp", "namespace", "service", "pod", "node"]),
        ("nodes", ["timestamp", "node"]),
    ):
        found = pd.concat([frame(getattr(tables, name)).drop(columns="at") for tables in read]).sort_values(keys)
        expected = pd.read_parquet(truth.history / f"{name}.parquet").sort_values(keys)
        assert len(expected) > 8_000
        pd.testing.assert_frame_equal(
            found.reset_index(drop=True), expected[found.columns].reset_index(drop=True), rtol=2e-6, check_dtype=False
        )
    pods = pd.concat([frame(tables.pods) for tables in read]).drop_duplicates(["namespace", "pod"], keep="last")
    pd.testing.assert_frame_equal(
        pods.sort_values(["namespace", "pod"]).reset_index(drop=True),
        pd.read_parquet(truth.history / "pods.parquet"),
        check_dtype=False,
    )
    capacity = frame(read[-1].capacity)
    pd.testing.assert_frame_equal(capacity, pd.read_parquet(truth.history / "capacity.parquet"), check_dtype=False)
