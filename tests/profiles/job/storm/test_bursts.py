"""Bursts that come at the same time every day without a CronJob: what is remembered of them, and what is expected."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.assuming_cluster import AssumingCluster
from forecast.service_key import Owner, ServiceKey
from kube.decoding.job_specs import PodTemplate
from kube.decoding.jobs import JobInfo
from kube.objects.objects import PodInfo
from profiles.job.storm.job_demand import demand_ahead
from profiles.job.storm.recurring_starts import PastBursts
from profiles.job.storm.remembered_starts import AROUND, around, expected_arrivals, group_named
from profiles.job.storm.storms import storms
from scorer.options import ScorerOptions
from tests.kube.api_objects import node, pod

MIDNIGHT = 1_790_035_200.0  # 2026-09-22, UTC
DAY = 86_400.0
EIGHT = 8 * 3600.0


# Names


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("load", "load"),
        ("load-20261122t0800", "load"),
        ("load-28391040", "load"),
        ("load-x7k2p", "load"),
        ("load-2026-11-22t08-00-00", "load"),
        ("load.6d5191b91782409082d46dd3b0ea97f9", "load"),
        ("load-ab3kd92x", "load"),
        ("load-1f0e3dad-9990-4f34-9d1c-0a2b3c4d5e6f", "load"),
        ("spark-pi-8a3b2c1d9e4f5a6b-driver", "spark-pi-driver"),
        ("etl-v2-version2024", "etl-v2-version2024"),
        ("mysql-html-decade", "mysql-html-decade"),
        ("28391040", "28391040"),
        ("x7k2p-28391040", "x7k2p"),
        ("", ""),
    ],
)
def test_generated_parts_are_left_out_of_names(name: str, group: str) -> None:
    assert group_named("shop", "Job", name) == f"shop/Job/{group}"


# Days


some_days = st.lists(st.lists(st.integers(0, 9), min_size=30, max_size=30), min_size=1, max_size=7)


@settings(max_examples=50)
@given(some_days)
def test_pods_around_a_minute(of: list[list[int]]) -> None:
    came = np.array(of)
    slow = [[sum(day[max(0, at - AROUND) : at + AROUND + 1]) for at in range(30)] for day in of]
    assert around(came).tolist() == slow


@settings(max_examples=50)
@given(some_days, st.integers(1, 20))
def test_no_more_is_expected_than_ever_came_and_no_minute_twice(of: list[list[int]], min_pods: int) -> None:
    came = np.array(of)
    total, until = 0, 0
    for first, pods in expected_arrivals(came, np.ones(came.shape, dtype=bool), min_pods):
        assert first >= until
        assert pods.min() >= 0
        assert pods.sum() >= min_pods
        until, total = first + len(pods), total + int(pods.sum())
    assert until <= 30
    assert total <= came.max(axis=0).sum() * len(of)


# What is remembered


class World:
    """Tables of one node, and what remembers bursts beside them."""

    def __init__(self, now: float = MIDNIGHT, **more: Any) -> None:
        self.now = now
        self.cluster = AssumingCluster(ScorerOptions(), now=now)
        self.cluster.put(node("n1", cpu=1000.0))
        self.bursts = PastBursts(
            self.cluster.state, more.pop("run_seconds", lambda service: 60.0), clock=lambda: self.now, **more
        )
        self.cluster.listeners.append(self.bursts.apply)

    def come(self, at: float, n: int, name: str = "task", **more: Any) -> list[PodInfo]:
        self.now = max(self.now, at)
        pods = [job_pod(f"{name}-{at:.0f}-{i}", at, **more) for i in range(n)]
        for one in pods:
            self.cluster.put(one)
        return pods

    def expected(self, now: float | None = None) -> list[tuple[float, str, int]]:
        """Seconds from now, group, pods."""
        self.now = self.now if now is None else now
        return [(one.at - self.now, one.name, one.pods) for one in self.bursts.expected(self.now)]


def job_pod(name: str, created: float, *, by: str = "job-scheduler", **more: Any) -> PodInfo:
    return replace(pod(name, created=created, **more), scheduler_name=by)


def job(name: str, started: float, *, pods: int = 40, by: str = "job-scheduler", **more: Any) -> JobInfo:
    template = PodTemplate(requests={"cpu": 0.5}, scheduler_name=by)
    made = JobInfo("shop", name, f"uid-{name}", ServiceKey("shop", "Job", name), created=started - 1, started=started)
    return replace(made, **{"parallelism": pods, "completions": pods, "template": template, **more})


def daily_jobs(n_days: int, **more: Any) -> list[JobInfo]:
    """load, at 08:00 and a little."""
    return [job(f"load-{28_391_040 + 1440 * day}", MIDNIGHT + day * DAY + EIGHT + 20, **more) for day in range(n_days)]


def test_pods_of_a_workflow_engine_are_expected_when_they_came_before() -> None:
    world = World()
    for day in range(2):
        world.come(MIDNIGHT + day * DAY + EIGHT + 30, 60, labels={"dag_id": "prices"})
        assert len(world.expected(world.now + 3600)) == day, "two days make a habit"
    ahead = world.expected(MIDNIGHT + 2 * DAY + 30)
    assert ahead == [(EIGHT - 30, "shop/DAG/prices", 60)]
    assert world.expected(MIDNIGHT + 2 * DAY + EIGHT + 59) == [(-59.0, "shop/DAG/prices", 60)], "the minute under way"

    [storm] = storms(demand_ahead((), world.bursts.expected(world.now), lambda service: 1.0, world.now))
    assert (storm.pods, storm.cpu) == (60, 30.0)
    next_day = job_pod("another", world.now, labels={"dag_id": "prices"})
    assert storm.groups == {world.bursts.group_of(next_day)}


def test_one_that_misses_a_day_is_still_expected_and_one_that_ended_is_not_for_long() -> None:
    world = World()
    for day in range(5):
        world.come(MIDNIGHT + day * DAY + EIGHT, 20)
    at = MIDNIGHT + EIGHT - 60
    assert [len(world.expected(at + day * DAY)) for day in (5, 6, 7, 8, 9, 10)] == [1, 1, 1, 1, 0, 0]
    assert len(world.bursts) == 1
    world.expected(at + 14 * DAY)
    assert len(world.bursts) == 0


def test_a_job_counts_once_with_the_pods_it_runs_side_by_side() -> None:
    world, jobs = World(MIDNIGHT + 2 * DAY), daily_jobs(2, completions=400)
    for _ in range(3):
        world.bursts.learn_from_jobs(jobs)
    for one in jobs:
        assert one.started is not None
        world.come(one.started + 1, 40, owner=Owner("Job", one.name))
        world.bursts.learn_from_jobs([replace(one, succeeded=1)])
    assert world.expected(MIDNIGHT + 2 * DAY) == [(EIGHT, "shop/Job/load", 40)]
    assert world.bursts.group_of(job_pod("x", 0.0, owner=Owner("Job", "load-28393920"))) == "shop/Job/load"
    assert world.bursts.group_of(job_pod("x", 0.0, by="default-scheduler", owner=Owner("Job", "load-1"))) == ""


@pytest.mark.parametrize(
    "more",
    [
        {"service": ServiceKey("shop", "CronJob", "load")},
        {"by": "default-scheduler"},
        {"started": None},
        {"suspended": True},
        {"parallelism": 0},
    ],
)
def test_jobs_that_do_not_count(more: dict[str, Any]) -> None:
    world = World(MIDNIGHT + 3 * DAY)
    by = {"by": more.pop("by")} if "by" in more else {}
    world.bursts.learn_from_jobs([replace(one, **more) for one in daily_jobs(3, **by)])
    assert world.expected() == []


def test_after_a_restart_it_is_learned_again_from_what_is_still_there() -> None:
    world, jobs = World(), daily_jobs(3)
    for day, one in enumerate(jobs):
        world.come(MIDNIGHT + day * DAY + 3600, 20)
        world.now = MIDNIGHT + day * DAY + 2 * EIGHT
        world.bursts.learn_from_jobs([one])
    before = world.expected(MIDNIGHT + 3 * DAY)
    assert [name for _, name, _ in before] == ["shop/Pod/task", "shop/Job/load"]

    again = PastBursts(world.cluster.state, lambda service: 60.0, clock=lambda: world.now)
    again.learn_from_jobs(jobs[::-1])
    again.rebuild()
    assert again.expected(world.now) == world.bursts.expected(world.now)


def test_what_is_told_of_again_counts_once() -> None:
    world = World()
    for day in range(2):
        for one in world.come(MIDNIGHT + day * DAY + EIGHT, 20):
            world.cluster.put(replace(one, labels={"changed": "since"}))
    world.bursts.rebuild()
    for one in list(world.cluster.state.pods.values()):
        world.cluster.delete(one)
    assert [pods for _, _, pods in world.expected(MIDNIGHT + 2 * DAY)] == [20]


def test_groups_of_one_do_not_push_out_bursts() -> None:
    world = World(groups=2)
    for day in range(2):
        world.come(MIDNIGHT + day * DAY + EIGHT, 20)
        for n in range(700):
            world.come(MIDNIGHT + day * DAY + EIGHT + 600, 1, name=f"only{n}x")
    assert [name for _, name, _ in world.expected()] == ["shop/Pod/task"]
    assert len(world.bursts) <= 600

    for name in ("second", "third", "fourth"):
        world.come(MIDNIGHT + DAY + 2 * EIGHT, 20, name=name)
    assert [name for _, name, _ in world.expected()] == ["shop/Pod/task"], "it is daily, and they are not yet"


def test_odd_requests_are_left_out() -> None:
    world = World()
    odd = {"cpu": float("inf"), "memory": 1e300, "nan": float("nan"), **{f"kind-{i}": 1.0 for i in range(40)}}
    jobs = daily_jobs(2, template=PodTemplate(requests=odd, scheduler_name="job-scheduler"), parallelism=10**9)
    world.now = MIDNIGHT + 2 * DAY
    world.bursts.learn_from_jobs([replace(one, completions=None) for one in jobs])
    [one] = world.bursts.expected(world.now)
    assert one.pods == 65_535
    assert len(one.requests) == 16
    assert set(one.requests.values()) == {1.0}
