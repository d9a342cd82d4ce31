"""Room for a storm: kept before it, out of reach for others, less with every pod that comes, and none after it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from extender.filters.filter import ClusterView, rejected
from extender.index.index import PlacementIndex
from extender.job.objects.cron_jobs import CronJobInfo
from extender.job.objects.templates import PodTemplate
from extender.job.storm.options import StormOptions
from extender.job.storm.watch import StormWatch
from forecast.service_key import Owner
from scorer.cluster.decoding import Kind
from scorer.cluster.objects import PodInfo
from tests.scorer.live_cluster import node, pod_of
from tests.scorer.scorer_at import LiveScorer

HOUR = 17
PODS = 60


def cron_job(name: str = "report", *, pods: int = PODS, cpu: float = 0.5, **more: Any) -> CronJobInfo:
    """At every full hour."""
    template = PodTemplate(requests={"cpu": cpu, "memory": 0.5}, scheduler_name="job-scheduler")
    return CronJobInfo(
        "shop", name, f"uid-{name}", "0 * * * *", parallelism=pods, completions=pods, template=template, **more
    )


class Scene:
    """node-0 to node-3 of 40 cores each, minutes before 17:00."""

    def __init__(self, *jobs: CronJobInfo, minutes: float = -10.0, **more: Any) -> None:
        self.live = LiveScorer(HOUR + minutes / 60, without_model=True)
        self.jobs = list(jobs)
        self.told = 0
        options = StormOptions(**{"threshold": 50, "lead": 300.0, "grace": 120.0, **more.pop("options", {})})
        self.watch = StormWatch(
            self.live.scorer, lambda: self.jobs, lambda service: 90.0, options, clock=self.live.clock, **more
        )
        self.watch.listeners.append(self.hear)
        self.cluster = self.live.scorer._cluster
        self.index = PlacementIndex(self.cluster.state)
        self.cluster.listeners.append(self.index.apply)
        self.watch.keep_up()

    def hear(self) -> None:
        self.told += 1

    def at(self, minutes: float) -> None:
        self.live.at(HOUR + minutes / 60)
        self.watch.keep_up()

    @property
    def kept(self) -> int:
        return sum(held.pods for held in self.watch.headroom.held)

    def passes(self, pod: PodInfo) -> set[str]:
        view = ClusterView(self.cluster, self.index)
        out = rejected(self.watch.filter.filter(pod, view), view.n_rows)
        return {name for name, row in self.cluster.state.row_of.items() if not out[row]}

    def come(self, n: int, on: str, *, first: int = 0) -> None:
        """Pods of the storm are given a node."""
        pods = [of_storm(f"storm-{first + i}", self.live.clock.now) for i in range(n)]
        for pod in pods:
            self.live.put(pod)
        with self.live.scorer.changing() as cluster:
            cluster.assume_all(pods, [cluster.state.row_of[on]] * n, self.live.clock.now + 600)


def of_storm(name: str, created: float, job: str = "report") -> PodInfo:
    made = replace(pod_of(None, name, cpu=0.5, memory=0.5), created=created, owner_uid=f"job-{job}")
    return replace(made, owner=Owner("Job", f"{job}-29650260"), scheduler_name="job-scheduler")


def other(cpu: float = 0.5, **more: Any) -> PodInfo:
    return replace(pod_of(None, "other", cpu=cpu, memory=0.5), **more)


EVERYWHERE = {f"node-{i}" for i in range(4)}


def test_room_is_kept_shrinks_as_pods_come_and_is_let_go() -> None:
    scene = Scene(cron_job(pods=100, cpu=1.0))
    assert scene.kept == 0
    assert scene.watch.filter.filter(other(), ClusterView(scene.cluster, scene.index)) == ()

    scene.at(-4.9)
    assert scene.kept == 100  # 40 on each of two nodes, 20 on the third
    assert len(scene.passes(other(cpu=20.0))) == 2
    assert len(scene.passes(other(cpu=20.5))) == 1
    assert scene.passes(of_storm("storm-x", scene.live.clock.now)) == EVERYWHERE

    scene.at(0.1)
    scene.come(30, "node-0")
    assert scene.kept == 70
    scene.come(30, "node-3", first=30)  # elsewhere than expected
    assert scene.kept == 40
    scene.at(0.2)
    assert scene.kept == 40
    told = scene.told

    scene.at(2.1)
    assert scene.kept == 0
    assert scene.told == told + 1
    assert scene.passes(other()) == EVERYWHERE
    assert scene.watch.metrics.arrived_pods._value.get() == 60
    assert scene.watch.metrics.expected_pods._value.get() == 100


def test_nothing_is_kept_once_all_have_come() -> None:
    scene = Scene(cron_job())
    scene.at(-1)
    assert scene.kept == PODS
    scene.at(0.1)
    scene.come(PODS, "node-1")
    assert scene.kept == 0
    scene.at(0.2)
    assert scene.kept == 0
    assert "has come" in [report.state for report in scene.watch.storm_reports()]


def test_a_pod_that_is_taken_back_is_awaited_again() -> None:
    scene = Scene(cron_job())
    scene.at(0.1)
    scene.come(10, "node-1")
    assert scene.kept == PODS - 10
    for uid in list(scene.cluster.assumed.uids())[:4]:
        scene.live.scorer.forget(uid)
    scene.at(0.2)
    assert scene.kept == PODS - 6


@pytest.mark.parametrize(
    ("pod", "is_free"),
    [
        (other(cpu=30.0), False),
        (other(cpu=30.0, priority=1), True),
        (other(cpu=30.0, owner=Owner("DaemonSet", "agent")), True),
    ],
)
def test_who_may_use_kept_room(pod: PodInfo, is_free: bool) -> None:
    scene = Scene(cron_job(pods=150, cpu=1.0))
    scene.at(-1)
    view = ClusterView(scene.cluster, scene.index)
    assert scene.watch.headroom.is_idle(pod, view) == is_free
    assert (scene.passes(pod) == EVERYWHERE) == is_free


def test_a_job_that_has_to_start_before_the_storm_is_over_is_let_in() -> None:
    scene = Scene(cron_job(pods=150, cpu=1.0), due_of=lambda pod: pod.created)
    scene.at(-1)
    soon, late = scene.live.clock.now + 30, scene.live.clock.now + 3600
    assert scene.passes(other(cpu=30.0, created=soon)) == EVERYWHERE
    assert scene.passes(other(cpu=30.0, created=late)) != EVERYWHERE


def test_what_virtual_nodes_take_needs_no_room() -> None:
    scene = Scene(cron_job(), serverless_room=lambda storm: 45)
    scene.at(-1)
    assert scene.kept == PODS - 45


def test_a_storm_that_is_called_off_is_not_waited_for() -> None:
    scene = Scene(cron_job())
    scene.at(-4)
    assert scene.kept == PODS
    scene.jobs = [cron_job(suspended=True)]
    scene.at(-2.9)
    assert scene.kept == 0
    assert scene.told == 1
    assert scene.watch.metrics.storms._value.get() == 0


def test_no_more_is_kept_than_there_is_and_more_as_room_comes_free() -> None:
    scene = Scene(cron_job(pods=200, cpu=1.0))
    scene.at(-4)
    assert scene.kept == 160
    scene.live.scorer.put(Kind.NODES, node("node-4"))
    scene.at(-3.9)
    assert scene.kept == 200


def test_storms_are_only_foreseen_where_no_room_is_to_be_kept() -> None:
    scene = Scene(cron_job(), options={"reserve": False})
    scene.at(-1)
    assert scene.kept == 0
    assert len(scene.watch.ahead) == 24
    points = scene.watch.demand_points()
    assert sum(point.pods for point in points) == 24 * PODS
    assert scene.watch.storm_reports()[0].pods == PODS


def test_a_node_that_goes_takes_its_room_with_it() -> None:
    scene = Scene(cron_job(pods=150, cpu=1.0))
    scene.at(-1)
    row = next(iter(scene.watch.headroom.held[0].on))
    name = scene.cluster.state.names[row]
    gone = scene.cluster.state.nodes[row]
    assert gone is not None
    scene.live.scorer.delete(Kind.NODES, gone)
    assert name not in scene.cluster.state.row_of
    assert row not in scene.watch.headroom.held[0].on
    scene.at(-0.9)
    assert scene.kept == 120
