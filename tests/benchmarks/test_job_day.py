"""The day of CronJobs: what is drawn is feasible, what is counted is right, and jobs run when the rule says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.job_day import RULES, figures_of, job_day
from benchmarks.job_day import _Placed as Placed
from benchmarks.job_day_cluster import RecordedDay
from benchmarks.job_day_jobs import DrawnRun, drawn_day
from forecast.resources import CPU, RESOURCES
from kube.decoding.decoding import Kind
from tests.scorer.live_cluster import at, model, node, pod_of

CORES = 40.0


def made_up_day(cores: float = 4.0) -> RecordedDay:
    """Four nodes, all of which use so much all day."""
    sizes = {"cpu": CORES, "memory": 2.0**40, "pods": 110.0}
    nodes = [replace(node(f"node-{n}"), capacity=sizes, allocatable=sizes) for n in range(4)]
    usage = np.zeros((4, len(RESOURCES), 48))
    usage[:, CPU] = cores
    capacity = np.full((4, len(RESOURCES)), np.nan)
    capacity[:, CPU] = CORES
    pods = tuple(pod_of(n % 6, f"online-{n}", f"node-{n % 4}", memory=2.0**30) for n in range(24))
    return RecordedDay(
        start=at(6),
        model=model(),
        nodes=tuple(one.name for one in nodes),
        capacity=capacity,
        usage=usage,
        before=usage[:, :, 0],
        objects={Kind.NODES: list(nodes), Kind.REPLICA_SETS: [], Kind.JOBS: []},
        pods=(pods,) * 48,
    )


def run(name: str = "report", *, created: float = 0.0, n_pods: int = 2, **more: float) -> DrawnRun:
    return DrawnRun(name, 0, created, 2.0, 2.0**30, 2.5, 3600.0, (3600.0,) * n_pods, **more)


def test_the_drawn_day_is_the_same_again_and_feasible() -> None:
    drawn = drawn_day(1)
    assert drawn == drawn_day(1)
    assert drawn != drawn_day(2)
    assert len({one.cron_job for one in drawn}) == 60
    assert [one.created for one in drawn] == sorted(one.created for one in drawn)
    assert any(one.is_timed for one in drawn)
    for one in drawn:
        assert max(one.runs) <= one.declared_run
        assert one.deadline is None or one.created + one.declared_run < one.deadline <= 86_400
        assert one.created + (one.latest_start or 0.0) <= 86_400


def test_the_figures() -> None:
    day = made_up_day()
    load = day.usage.copy()
    load[0, CPU, 10] = 0.9 * CORES
    late, early = run(latest_start=100.0), run(deadline=7200.0)
    placed = [
        Placed(late, 3600.0, 0, started=200.0),
        Placed(early, 3600.0, 0, started=3600.0),
        Placed(run("plain"), 3600.0, 0, started=60.0),
        Placed(run("plain"), 3600.0),
    ]
    found = figures_of(day, load, placed)
    assert found.hot == found.hot_cpu == pytest.approx(1 / (4 * 48))
    assert found.peak_highest == pytest.approx(0.9)
    assert found.peak_mean == pytest.approx((0.9 + 3 * 0.1) / 4)
    assert found.cluster_peak == pytest.approx((0.9 + 3 * 0.1) / 4)
    assert found.on_time == 0.5
    assert found.waited == pytest.approx((200 + 3600) / 2 / 3600)
    assert (found.others_wait, found.pods, found.unplaced) == (60.0, 4, 1)


def test_what_jobs_use_is_added_where_and_while_they_run(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [run(created=3600.0 * 6, n_pods=3, latest_start=3600.0 * 12), run("plain", created=3600.0 * 7)]
    monkeypatch.setattr("benchmarks.job_day.drawn_day", lambda seed, size: jobs)
    found = job_day(made_up_day(), 0)
    assert tuple(found) == RULES
    for rule in RULES[1:]:
        one = found[rule]
        assert (one.pods, one.unplaced, one.on_time, one.others_wait) == (5, 0, 1.0, 0.0)
        assert one.cluster_peak > found["no jobs"].cluster_peak
    assert found["by requests"].waited == found["peak-aware"].waited == 0.0
    assert found["with the valley"].waited > 0.5
