"""Pods that finish in the tables: each counts once, with the time it ran."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cluster.assuming_cluster import AssumingCluster
from cluster.runs import run_times
from cluster.runs.expected import is_job_pod
from cluster.runs.run_times import ObservedRuns, RunTimes
from forecast.job_runs import RunEstimate
from forecast.service_key import NO_OWNER, Owner, ServiceKey
from kube.decoding.jobs import JobInfo
from kube.objects.objects import PodInfo, PodPhase
from scorer.options import ScorerOptions
from tests.cluster.runs.made_up import REPORT
from tests.kube.api_objects import node, pod

NOW = 10_000.0


class World:
    """Tables with one node, and what follows them."""

    def __init__(self) -> None:
        self.cluster = AssumingCluster(ScorerOptions(), now=NOW)
        self.times = RunTimes()
        self.observed = ObservedRuns(self.cluster, self.times, is_job_pod)
        self.cluster.listeners.append(self.observed.apply)
        self.cluster.put(node("n1", cpu=1000.0))
        self.cluster.put(JobInfo("shop", "report-1", "j", REPORT))

    def expected(self, service: ServiceKey = REPORT) -> RunEstimate | None:
        return self.times.expected(service)


@pytest.fixture
def world() -> World:
    return World()


def running(name: str = "a", **changes: Any) -> PodInfo:
    one = pod(name, node="n1", owner=Owner("Job", "report-1"), owner_uid="j")
    return replace(one, **{"started": NOW - 500.0} | changes)


def done(name: str = "a", *, seconds: float = 60.0, phase: PodPhase = PodPhase.SUCCEEDED, **changes: Any) -> PodInfo:
    return running(name, phase=phase, finished=NOW - 500.0 + seconds, **changes)


def test_one_that_had_finished_before_anybody_looked(world: World) -> None:
    world.cluster.put(done())
    assert world.expected() == RunEstimate(60.0, 120.0, 1)
    other = World()
    other.cluster.listeners.clear()
    other.cluster.put(done())
    other.observed.rebuild()
    assert other.expected() == RunEstimate(60.0, 120.0, 1)


def test_a_pod_that_ended_counts_once_from_its_start_to_its_end_or_now(world: World) -> None:
    world.cluster.put(running())
    assert world.expected() is None
    world.cluster.put(done())
    assert world.expected() == RunEstimate(60.0, 120.0, 1)
    world.cluster.put(running())
    world.cluster.put(done())
    world.cluster.put(done(labels={"changed": "since"}))
    world.observed.rebuild()
    world.cluster.put(done(annotations={"changed": "again"}))
    world.cluster.delete(done())
    assert world.expected() == RunEstimate(60.0, 120.0, 1)
    world.cluster.put(done("a", uid="another", seconds=100.0))
    assert world.expected() == RunEstimate(80.0, 150.0, 2)
    world = World()
    world.cluster.put(running())
    world.cluster.put(running(phase=PodPhase.SUCCEEDED))
    assert world.expected() == RunEstimate(500.0, 1000.0, 1)
    late = World()
    late.cluster.put(running(phase=PodPhase.SUCCEEDED))
    assert late.expected() is None, "it may have ended long ago"


@pytest.mark.parametrize("changes", [{"phase": PodPhase.FAILED}, {"terminating": True}])
def test_one_that_was_cut_short_says_nothing(world: World, changes: dict[str, Any]) -> None:
    world.cluster.put(done("a", seconds=60.0))
    world.cluster.put(done("b", seconds=20.0, **changes))
    assert world.expected() == RunEstimate(60.0, 120.0, 1)
    world.cluster.put(done("c", seconds=100.0, **changes))
    assert world.expected() == RunEstimate(80.0, 150.0, 2)


@pytest.mark.parametrize(
    "one",
    [
        done(started=None),
        replace(done(), started=NOW + 100.0),
        replace(done(), owner=Owner("ReplicaSet", "cart-1"), owner_uid=""),
        running(phase=PodPhase.RUNNING, finished=NOW),
    ],
)
def test_what_says_nothing(world: World, one: PodInfo) -> None:
    world.cluster.put(one)
    world.cluster.delete(one)
    assert len(world.times) == 0


def test_what_is_remembered_of_pods_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_times, "_REMEMBERED", 5)
    for number in range(40):
        world.cluster.put(done(f"p{number}"))
        assert len(world.observed._counted) == min(number + 1, 5)
    for number in range(40):
        world.cluster.delete(done(f"p{number}"))
    assert not world.observed._counted


@pytest.mark.parametrize(
    ("owner", "scheduler", "is_job"),
    [
        (Owner("Job", "a"), "default-scheduler", True),
        (Owner("Job", "a"), "job-scheduler", True),
        (NO_OWNER, "job-scheduler", True),
        (Owner("Workflow", "a"), "job-scheduler", True),
        (NO_OWNER, "default-scheduler", False),
        (Owner("ReplicaSet", "a"), "job-scheduler", False),
        (Owner("DaemonSet", "a"), "job-scheduler", False),
    ],
)
def test_which_pods_run_and_end(owner: Owner, scheduler: str, is_job: bool) -> None:
    assert is_job_pod(replace(pod("a", owner=owner), scheduler_name=scheduler), {"job-scheduler"}) == is_job
