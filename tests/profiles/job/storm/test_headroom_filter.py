"""Room for a storm: kept before it, out of reach for others, less with every pod that comes, and none after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from forecast.service_key import Owner
from kube.decoding.decoding import Kind
from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView
from profiles.job.storm.headroom_filter import ReservedHeadroom
from profiles.job.storm.recurring_starts import PastBursts
from profiles.job.storm.storms import Storm
from tests.profiles.job.storm.storm_scene import EVERYWHERE, HOUR, PODS, Scene, cron_job, of_storm, other
from tests.scorer.live_cluster import pod_of
from tests.scorer.scorer_at import LiveScorer


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


def test_a_pod_that_is_taken_back_is_awaited_again() -> None:
    scene = Scene(cron_job())
    scene.at(0.1)
    scene.come(10, "node-1")
    assert scene.kept == PODS - 10
    for uid in list(scene.cluster.assumed.uids())[:4]:
        scene.live.scorer.tables.forget(uid)
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
    assert (not scene.watch.headroom.tells_apart(pod)) == is_free
    assert (scene.passes(pod) == EVERYWHERE) == is_free


def test_a_job_that_has_to_start_before_the_storm_is_over_is_let_in() -> None:
    scene = Scene(cron_job(pods=150, cpu=1.0), due_of=lambda pod: pod.created)
    scene.at(-1)
    soon, late = scene.live.clock.now + 30, scene.live.clock.now + 3600
    assert scene.passes(other(cpu=30.0, created=soon)) == EVERYWHERE
    assert scene.passes(other(cpu=30.0, created=late)) != EVERYWHERE


def two_storms(room: Callable[[Storm], int], **first: Any) -> Scene:
    """A minute before the first of two of 60 pods each, the second two minutes later."""
    jobs = cron_job("first", **first), cron_job("second", schedule="2 * * * *")
    scene = Scene(*jobs, serverless_room=room)
    scene.at(-1)
    return scene


@pytest.mark.parametrize(("room", "kept"), [(40, (20, 60)), (75, (0, 45)), (130, (0, 0)), (0, (60, 60))])
def test_what_virtual_nodes_take_of_one_storm_they_do_not_take_of_the_next(room: int, kept: tuple[int, int]) -> None:
    scene = two_storms(lambda storm: room)
    assert [held.pods for held in scene.watch.headroom.held] == list(kept)
    scene.watch.headroom.held.reverse()
    scene.at(-0.9)
    by_start = sorted(scene.watch.headroom.held, key=lambda held: held.storm.start)
    assert [held.pods for held in by_start] == list(kept), "whichever was held first"


def test_two_storms_that_are_near_at_once_have_room_of_their_own() -> None:
    scene = Scene(
        cron_job("first", pods=60, cpu=1.0), cron_job("second", pods=70, cpu=1.0, schedule="2 * * * *"), minutes=-10
    )
    scene.at(-4)
    assert scene.kept == 60
    scene.at(-2.5)
    first, second = scene.watch.headroom.held
    assert (first.pods, second.pods) == (60, 70)
    kept = scene.watch.headroom.reserved("cpu")
    assert kept.sum() == 130_000
    assert kept.max() <= 40_000
    assert (kept == sum(_kept_on(scene, held) for held in (first, second))).all()
    left = sorted((40_000 - kept).tolist())
    assert left == [0, 0, 10_000, 20_000]
    for cpu, nodes in ((10.0, 2), (20.0, 1), (21.0, 0)):
        assert len(scene.passes(replace(other(), requests={"cpu": cpu}))) == nodes
    one_of_first = replace(of_storm("storm-x", 0.0, "first"), requests={"cpu": 31.0})
    assert scene.passes(one_of_first) == {
        name for name, row in scene.cluster.state.row_of.items() if second.on.get(row, 0) <= 9
    }, "room of the other storm is not for it"

    scene.at(0.1)
    on = scene.cluster.state.names[next(iter(first.on))]
    assert on is not None
    scene.come(25, on, job="first")
    assert (first.pods, second.pods) == (35, 70)
    scene.at(2.01)  # the first is over
    assert scene.watch.headroom.held == [second]
    assert scene.kept == 70
    scene.come(15, on, job="second")
    assert scene.kept == 55
    assert len(second.arrived) == 15


def _kept_on(scene: Scene, held: ReservedHeadroom) -> np.ndarray:
    """(n_rows,) milli-cores."""
    made = np.zeros(scene.cluster.state.n_rows, dtype=np.int64)
    for row, n in held.on.items():
        made[row] = 1000 * n
    return made


def test_a_burst_of_the_days_before_has_room_and_its_pods_take_it() -> None:
    live = LiveScorer(HOUR - 49, without_model=True)
    with live.scorer.tables.reading() as cluster:
        bursts = PastBursts(cluster.state, lambda service: 90.0, clock=live.clock)
        live.scorer.tables.attach((), bursts)
    for day in (-2, -1):
        live.at(HOUR, day)
        for pod in flow(PODS, live.clock.now + 5, day):
            live.put(pod)
            live.delete(pod)
    live.at(HOUR - 1, 0)
    scene = Scene(live=live, bursts=bursts.expected, group_of=bursts.group_of)
    assert scene.kept == 0
    scene.at(-4)
    assert scene.kept == PODS
    today = flow(20, live.clock.now + 4 * 60 + 10, 0)
    assert not scene.watch.headroom.tells_apart(today[0])
    assert scene.watch.headroom.tells_apart(other())
    scene.at(0.2)
    scene.seat(today, "node-1")
    assert scene.kept == PODS - 20
    [storm] = [report for report in scene.watch.storm_reports() if "have come" in report.state]
    assert tuple(storm.services) == ("shop/Workflow/nightly",)
    scene.at(2.1)
    assert scene.kept == 0


def flow(n: int, created: float, day: int) -> list[PodInfo]:
    """Pods of a workflow, which has another name every day."""
    owner = Owner("Workflow", f"nightly-{created:.0f}")
    pods = [replace(pod_of(None, f"flow{day}-{i}"), created=created, owner=owner) for i in range(n)]
    return [replace(pod, scheduler_name="job-scheduler", owner_uid=f"flow-{day}") for pod in pods]


def test_a_storm_that_is_called_off_is_not_waited_for() -> None:
    scene = Scene(cron_job())
    scene.at(-4)
    assert scene.kept == PODS
    scene.jobs = [cron_job(suspended=True)]
    scene.at(-2.9)
    assert scene.kept == 0
    assert scene.told == 1
    assert scene.watch.metrics.storms._value.get() == 0


def test_storms_are_only_foreseen_where_no_room_is_to_be_kept() -> None:
    scene = Scene(cron_job(), options={"enabled": False})
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
    scene.live.scorer.tables.delete(Kind.NODES, gone)
    assert name not in scene.cluster.state.row_of
    assert row not in scene.watch.headroom.held[0].on
    scene.at(-0.9)
    assert scene.kept == 120
