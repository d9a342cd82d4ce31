"""Pods of Jobs load their node until their run ends, by every rule that looks ahead."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest

from base.arrays import Floats
from forecast.fit import fit
from forecast.hot_share import HOT_SHARE
from forecast.resources import CPU, RESOURCES
from forecast.service_key import ServiceKey
from scorer.replay.curves import CurveForecast, JobPods, last_week, last_weeks_runs
from scorer.replay.preparation import forecast_with
from scorer.replay.replay import Replay, replay
from scorer.replay.replay_rules import ByCurves, ReplayedPod, ReplayState
from trainer.history.files import HistoryFiles

N_RESOURCES = len(RESOURCES)
SERVICE, JOB = 0, 1
EVENING = slice(32, 40)


def forecast(job_cores: float = 6.0) -> CurveForecast:
    """A service with an evening of two cores a pod, and a job of six cores whenever it runs."""
    mean = np.zeros((2, N_RESOURCES, 48))
    mean[SERVICE, CPU, EVENING] = 2.0
    mean[JOB, CPU] = job_cores
    return CurveForecast(
        mean=mean,
        curves=mean[:, :, None],
        curve_weights=np.ones(1),
        replicas=np.array([np.ones(48), np.where(np.arange(48) < 2, 1.0, 0.0)]),
        autoscaled=np.zeros(2, dtype=bool),
        base=np.zeros((2, N_RESOURCES, 48)),
        run_seconds=np.array([np.nan, 3600.0]),
    )


def two_nodes() -> ReplayState:
    capacity = np.full((2, N_RESOURCES), np.nan)
    capacity[:, CPU] = 10.0
    return ReplayState(capacity, np.full((2, 2), 99.0), np.zeros((2, N_RESOURCES)), np.ones((2, 2)))


def jobs(*end: int) -> JobPods:
    """By pod: the first is of the service, the others are of the job."""
    return JobPods(np.array([False, True]), np.array(end))


def pod(index: int, service: int) -> ReplayedPod:
    return ReplayedPod(service, np.array([1.0, 0.0]), np.zeros(N_RESOURCES), index)


@pytest.mark.parametrize(("known", "node"), [(True, 0), (False, 1)])
def test_a_job_that_ends_at_night_takes_no_room_in_the_evening(known: bool, node: int) -> None:
    """Node 0 runs the job, node 1 has a small evening of its own."""
    curves = forecast()
    curves.base[1, CPU, EVENING] = 1.0
    state = two_nodes()
    rule = ByCurves(curves, state.capacity, jobs=jobs(48, 2) if known else None)
    rule.observe(0, state)
    rule.added(pod(1, JOB), 0)
    assert rule.choose(pod(0, SERVICE), np.ones(2, dtype=bool), state) == node


def test_a_job_counts_until_it_is_gone_and_its_error_not_in_the_evening() -> None:
    curves = forecast()
    curves.base[1, CPU] = 3.0
    state = two_nodes()
    rule = ByCurves(curves, state.capacity, jobs=jobs(48, 2, 12), live_correction=False)
    rule.observe(0, state)
    rule.added(pod(1, JOB), 0)
    rule.observe(10, state)
    assert rule.choose(pod(2, JOB), np.ones(2, dtype=bool), state) == 1  # six cores are still on node 0
    rule.removed(pod(1, JOB), 0)
    rule.observe(11, state)
    assert rule.choose(pod(2, JOB), np.ones(2, dtype=bool), state) == 0
    # It used four cores more than expected, and ended: nothing of that is left.
    state = two_nodes()
    rule = ByCurves(forecast(), state.capacity, jobs=jobs(48, 2))
    measured = np.zeros((2, N_RESOURCES))
    measured[0, CPU] = 10.0
    state.measure(measured, np.array([[0.0, 1.0], [0.0, 0.0]]))
    assert rule.live_error(2, state)[0, CPU] == pytest.approx(0.0)
    state.counts[0, JOB] = 1.0
    assert rule.live_error(2, state)[0, CPU] == pytest.approx(4.0)


# The whole way, from samples to figures

N_NODES, N_DAYS = 6, 16
CAPACITY = 10.0


@pytest.fixture(scope="module")
def nightly(tmp_path_factory: pytest.TempPathFactory) -> HistoryFiles:
    """Six equal nodes: three run a job of six cores from 02:00 to 05:00; twelve services peak in the evening."""
    directory = tmp_path_factory.mktemp("nightly")
    start = datetime(2026, 3, 2, tzinfo=UTC)
    rows: list[tuple[object, ...]] = []
    totals: Floats = np.full((N_NODES, N_DAYS * 48), 0.1)
    pods: dict[str, tuple[str, float]] = {}

    def sample(name: str, service: str, slot: int, node: int, cores: float) -> None:
        rows.append((start + timedelta(minutes=30 * slot), "shop", service, name, f"node-{node}", cores))
        totals[node, slot] += cores
        pods.setdefault(name, (service, 0.5))

    for slot in range(N_DAYS * 48):
        evening = 1.0 if 34 <= slot % 48 < 44 else 0.1
        for s in range(12):
            sample(f"web-{s}-abcde", f"Deployment/web-{s}", slot, s % N_NODES, 2.0 * evening)
        if 4 <= slot % 48 < 10:
            minutes = int((start + timedelta(days=slot // 48, hours=2)).timestamp()) // 60
            for job in range(3):
                sample(f"report-{job}-{minutes}-xyz", f"CronJob/report-{job}", slot, job, 6.0)
    usage = pd.DataFrame(rows, columns=["timestamp", "namespace", "service", "pod", "node", "cpu_cores"])
    others = [resource.column for resource in RESOURCES[1:]]
    times = [start + timedelta(minutes=30 * slot) for slot in range(N_DAYS * 48)]
    nodes = pd.DataFrame(
        [(time, f"node-{n}", totals[n, i]) for i, time in enumerate(times) for n in range(N_NODES)],
        columns=["timestamp", "node", "cpu_cores"],
    )
    requests = [("shop", service, name, cores, 1e8) for name, (service, cores) in pods.items()]
    capacity = pd.DataFrame([(f"node-{n}", CAPACITY) for n in range(N_NODES)], columns=["node", "cpu_cores"])
    for table in (usage, nodes, capacity):
        table[others] = np.nan
    for name, table in (("usage", usage), ("nodes", nodes), ("capacity", capacity)):
        table.to_parquet(directory / f"{name}.parquet")
    pd.DataFrame(
        requests, columns=["namespace", "service", "pod", "request_cpu_cores", "request_memory_bytes"]
    ).to_parquet(directory / "pods.parquet")
    return HistoryFiles.open(directory)


@pytest.fixture(scope="module")
def played(nightly: HistoryFiles) -> Replay:
    history = nightly.history()
    pods = nightly.pod_usage(history.days[0], history.days[-1])
    return replay(history, pods, forecast_with(fit), seed=1, ladder=False, hot=HOT_SHARE)


def test_evenings_are_even_beside_jobs_and_their_runs_are_known(played: Replay, nightly: HistoryFiles) -> None:
    """As in the scorer: pods of Job owners come by the clock, and no room is kept for them."""
    forecast = played.forecasts["forecast"]
    assert not forecast.autoscaled[played.recording.ending].any()
    # Twelve pods on six nodes: two each, wherever the jobs ran at 04:00.
    services = np.array([not ending for ending in played.recording.ending])[played.recording.service]
    for rule in ("last_week", "forecast", "oracle"):
        node = played.playbacks[rule].node[services]
        assert np.bincount(node, minlength=N_NODES).tolist() == [2] * N_NODES, rule
    history = nightly.history()
    ending = np.array([service.kind == "CronJob" for service in history.services])
    seconds = last_weeks_runs(history, played.window)
    assert np.isnan(seconds[~ending]).all()
    np.testing.assert_allclose(seconds[ending], 3 * 3600.0)
    assert ServiceKey("shop", "CronJob", "report-0") in history.services
    assert np.isfinite(last_week(history, played.window).run_seconds).sum() == 3
    at_start = (played.recording.birth == 0) & played.recording.ending[played.recording.service]
    assert at_start.sum() == 3
    assert played.recording.started[at_start].tolist() == [-4, -4, -4]
    assert played.recording.death[at_start].tolist() == [2, 2, 2]
