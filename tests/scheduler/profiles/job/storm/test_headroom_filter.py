"""Room for a storm: kept before it, out of reach for others, less with every pod that comes, and none after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from forecast.service_key import Owner
from kube.decoding.decoding import Kind
from kube.objects.objects import PodInfo
from placement.filters.catalogue import standard_filters
from placement.filters.filter import ClusterView
from placement.policies.policy import OnePolicy, Policy
from scheduler.binding.binding_plugins import BindingPlugins
from scheduler.cycle.batch_plan import BatchPlan
from scheduler.cycle.equivalence import Likeness
from scheduler.cycle.placing import Placed, Placer
from scheduler.profile import SchedulingProfile
from scheduler.profiles.job.storm.bursts import PastBursts
from scheduler.profiles.job.storm.demand import Demand, demand_ahead
from scheduler.profiles.job.storm.headroom_filter import ReservedHeadroom
from scheduler.profiles.job.storm.storms import Storm, storms
from scorer.policy import scoring_policy
from tests.scheduler.profiles.job.storm.storm_scene import EVERYWHERE, HOUR, PODS, Scene, cron_job, of_storm, other
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


MIDNIGHT = 1_790_035_200.0  # 2026-09-22, UTC


def demand(*jobs: Any, runs: float = 90.0) -> Demand:
    return demand_ahead(jobs, (), lambda service: runs, MIDNIGHT + 30)


def starts(made: Demand) -> list[int]:
    """Minutes of the day."""
    return [round(one.start - MIDNIGHT) // 60 for one in storms(made)]


# Storms


@pytest.mark.parametrize("schedule", ["* * * * *", "*/2 * * * *", "1-59/2 * * * *", "* 6-18 * * *"])
def test_steady_is_what_comes_in_many_of_the_minutes_around(schedule: str) -> None:
    assert starts(demand(cron_job(pods=200, schedule=schedule))) == []


@pytest.mark.parametrize("seed", range(5))
def test_pods_side_by_side_are_those_of_the_demand(seed: int) -> None:
    rng = np.random.default_rng(seed)
    jobs = [
        cron_job(
            f"job-{i}",
            pods=int(rng.integers(30, 90)),
            schedule=f"{','.join(map(str, 10 + rng.permutation(9)[:4]))} 4 * * *",
        )
        for i in range(6)
    ]
    jobs.append(cron_job("each-minute", schedule="10-18 4 * * *"))
    made = demand(*jobs, runs=float(rng.integers(10, 400)))
    [storm] = storms(made)
    first = round(storm.start - made.start) // 60
    assert list(storm.side_by_side) == made.pods[first : first + len(storm.side_by_side)].tolist()
    assert storm.most_at_once(storm.start, storm.until) == made.pods[first : first + len(storm.side_by_side)].max()
    assert storm.most_at_once(storm.start - 600, storm.start) == storm.side_by_side[0]
    assert storm.most_at_once(storm.until, storm.until + 60) == storm.side_by_side[-1]


# Room


def test_no_more_is_kept_than_is_still_to_come() -> None:
    scene = Scene(cron_job(schedule="0-1 17 * * *", cpu=0.1))
    scene.at(-1)
    scene.at(1.5)
    scene.come(55, "node-0")
    scene.come(55, "node-1", first=55)
    for i in range(110):
        on = "node-0" if i < 55 else "node-1"
        scene.live.delete(replace(of_storm(f"storm-report-{i}", 0.0), node=on))
    scene.at(1.6)
    assert scene.kept == 10


def test_the_share_is_that_of_all_storms_together() -> None:
    scene = Scene(
        cron_job("first", cpu=1.0), cron_job("second", cpu=1.0, schedule="2 * * * *"), options={"most_room": 0.5}
    )
    scene.at(-2.5)
    assert [held.pods for held in scene.watch.headroom.held] == [60, 20]


# Time


def test_nothing_is_kept_after_its_time_whoever_sees_to_it() -> None:
    scene = Scene(cron_job(pods=150, cpu=1.0))
    scene.at(-1)
    scene.at(1)
    pod = other(cpu=30.0)
    assert scene.passes(pod) != EVERYWHERE
    scene.live.clock.now += 59
    assert scene.passes(pod) != EVERYWHERE
    scene.live.clock.now += 2
    assert scene.kept == 150
    assert scene.passes(pod) == EVERYWHERE
    assert scene.watch.headroom.tells_apart(pod) == ()


def test_what_is_overdue_is_let_go_before_anybody_looks_ahead() -> None:
    scene = Scene(cron_job())
    scene.at(-1)
    scene.jobs = cast(Any, None)  # whoever asks for them fails
    scene.live.clock.now += 3.5 * 60
    told = scene.told
    with pytest.raises(TypeError):
        scene.watch.keep_up()
    assert scene.watch.headroom.held == []
    assert scene.told == told + 1


def test_a_cron_job_that_nobody_thought_of_costs_itself_only(caplog: pytest.LogCaptureFixture) -> None:
    odd = replace(cron_job("odd"), schedule=cast(Any, None))
    scene = Scene(odd, cron_job())
    scene.at(-4)
    scene.at(-2.9)
    assert scene.kept == PODS
    assert scene.watch.demand is not None
    assert "CronJob shop/odd" in scene.watch.demand.unreadable[0]
    assert len([one for one in caplog.get_records("call") if "cannot be foreseen" in one.message]) == 1


# What is learned meanwhile


def test_a_storm_of_which_more_is_known_is_the_same_one() -> None:
    runs = [90.0]
    scene = Scene(cron_job(cpu=1.0), run_seconds=lambda service: runs[0])
    scene.at(-2)
    [held] = scene.watch.headroom.held
    scene.live.clock.now += 100
    scene.come(5, "node-0")  # the clock of the API server is ahead
    rows = dict(held.on)
    runs[0] = 45.0
    scene.jobs.append(cron_job("another", pods=20, cpu=1.0))
    scene.at(-0.2)
    assert scene.watch.headroom.held == [held]
    assert (held.storm.lasts, held.storm.pods, len(held.arrived)) == (45.0, 80, 5)
    assert scene.kept == 75
    assert all(held.on[row] >= n for row, n in rows.items())
    assert scene.told == 0


def test_two_storms_that_become_one_are_one() -> None:
    scene = Scene(cron_job(schedule="0,2 17 * * *"))
    scene.at(-2.5)
    assert len(scene.watch.headroom.held) == 2
    scene.jobs.append(cron_job("between", schedule="1 17 * * *"))
    scene.at(-1.4)
    [held] = scene.watch.headroom.held
    assert (held.storm.pods, scene.kept) == (180, 120)


def policy(scene: Scene) -> Policy:
    return Policy(scoring_policy(scene.live.scorer.tables.options))


def runs(scene: Scene, pods: Sequence[PodInfo]) -> list[slice]:
    filters = (*standard_filters(), scene.watch.filter)
    profile = SchedulingProfile("job", "job-scheduler", OnePolicy(policy(scene)), BindingPlugins(bind=()), filters)
    return list(Likeness(ClusterView(scene.cluster, scene.index), {"job-scheduler": profile}).runs(pods))


def place(scene: Scene, pods: Sequence[PodInfo], *, one_by_one: bool = False) -> Placed:
    for pod in pods:
        scene.live.put(pod)
    with scene.live.scorer.tables.changing() as cluster:
        placer = Placer(
            ClusterView(cluster, scene.index),
            cluster,
            scene.live.scorer.tables.level()[0],
            until=scene.live.clock.now + 600,
            one_by_one=one_by_one,
        )
        return placer.place(pods, (*standard_filters(), scene.watch.filter), policy(scene))


def pods(n: int, name: str = "x", **more: Any) -> list[PodInfo]:
    made = replace(other(cpu=1.0), scheduler_name="job-scheduler", owner=Owner("Job", name), owner_uid=name)
    return [replace(made, uid=f"{name}-{i}", name=f"{name}-{i}", **more) for i in range(n)]


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    made: list[BatchPlan] = []
    begin = BatchPlan.__init__

    def counted(plan: BatchPlan, *arguments: Any, **others: Any) -> None:
        made.append(plan)
        begin(plan, *arguments, **others)

    monkeypatch.setattr(BatchPlan, "__init__", counted)
    return lambda: len(made)


def test_jobs_whose_room_is_kept_do_not_go_with_those_it_is_kept_from() -> None:
    scene = Scene(cron_job())
    now = scene.live.clock.now
    strangers = [replace(of_storm(f"other-{i}", now, "other")) for i in range(3)]
    mixed = [*strangers, *(of_storm(f"storm-{i}", now) for i in range(3)), *strangers[:1]]
    assert runs(scene, mixed) == [slice(0, 7)], "while nothing is kept"
    scene.at(-1)
    assert runs(scene, mixed) == [slice(0, 3), slice(3, 6), slice(6, 7)]


@pytest.mark.parametrize("kept_for", [60, 100, 150])
def test_others_are_placed_together_in_what_is_left_as_one_by_one(kept_for: int, plans: Callable[[], int]) -> None:
    found = []
    for one_by_one in (False, True):
        scene = Scene(cron_job(pods=kept_for, cpu=1.0))
        scene.at(-1)
        assert scene.kept == kept_for
        placed = place(scene, pods(180), one_by_one=one_by_one)
        found.append(placed.rows)
        assert len(placed.rows) == 160 - kept_for
        assert placed.why_not is not None
        assert "StormHeadroom" in [name for name, _ in placed.why_not.rejections]
    assert found[0] == found[1]
    assert 1 <= plans() <= 8
