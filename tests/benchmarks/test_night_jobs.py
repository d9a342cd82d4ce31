"""Nights of CronJobs for the benchmarks: in a history, and running at the release."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from benchmarks.clusters.history_directory import write_history
from benchmarks.clusters.read_history import read_cluster
from benchmarks.clusters.replicated import NodeSizes, asd_cluster
from benchmarks.clusters.scenarios import nightly_jobs
from benchmarks.night_jobs import day_and_zone_of_four_o_clock, jobs_on_every_second_node
from forecast.resources import CPU, RESOURCES
from forecast.run_forecast import forecast_runs
from tests.benchmarks.test_clusters import made_up_asd
from trainer.history.files import HistoryFiles


def test_nights_of_a_history_run_from_two_to_five_local_time(tmp_path: Path) -> None:
    cluster = asd_cluster(made_up_asd(), seed=1, node_sizes=NodeSizes.MIXED, n_pods=120, n_nodes=9)
    nights = nightly_jobs(cluster, np.random.default_rng(1), cores=[0.4, 0.2], pods_each=1)
    write_history(nights, tmp_path)
    known = HistoryFiles.open(tmp_path).history()
    jobs = [row for row, service in enumerate(known.services) if service.kind == "CronJob"]
    runs = forecast_runs(known)
    np.testing.assert_allclose(runs.seconds[jobs, 0], 3 * 3600.0)
    np.testing.assert_allclose(runs.usage[jobs, CPU], [0.4, 0.2], rtol=0.05)
    there = np.nan_to_num(known.replicas[jobs]) > 0
    assert there[:, 1:-1, 4:10].all()
    assert not there[:, :, 10:].any()
    assert len(read_cluster(tmp_path).pods) > len(cluster.pods)


@pytest.mark.parametrize("hour", range(24))
def test_it_is_four_o_clock_somewhere(hour: int) -> None:
    now = datetime(2026, 11, 23, hour, 40, tzinfo=UTC)
    day, zone = day_and_zone_of_four_o_clock(now)
    local = now.astimezone(ZoneInfo(zone))
    assert (local.hour, local.date()) == (4, day)


def test_every_second_node_runs_a_job_of_its_size_that_ends_in_an_hour() -> None:
    capacity = np.ones((6, len(RESOURCES))) * np.array([[1.0], [1.0], [2.0], [2.0], [4.0], [4.0]])
    jobs = jobs_on_every_second_node(capacity)
    assert jobs.rows.tolist() == [0, 2, 4]
    assert jobs.cores.tolist() == pytest.approx([0.6, 1.2, 2.4])
    assert jobs.usage(*capacity.shape)[:, CPU].tolist() == pytest.approx([0.6, 0.0, 1.2, 0.0, 2.4, 0.0])
    now = datetime(2026, 11, 23, 4, 10, tzinfo=UTC)
    made = [job | {"metadata": job["metadata"] | {"uid": "u"}} for job in jobs.jobs(now)]
    pods = jobs.pods(made, [f"node-{n}" for n in range(6)], now)
    assert [pod["spec"]["nodeName"] for pod in pods] == ["node-0", "node-2", "node-4"]
    assert {pod["status"]["startTime"] for pod in pods} == {"2026-11-23T02:10:00Z"}
