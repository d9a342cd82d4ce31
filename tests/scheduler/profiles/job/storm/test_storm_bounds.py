"""What storms may not do: last for ever, close the cluster, outlive their time, be forgotten when more is learned."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from scheduler.profiles.job.storm.demand import Demand, demand_ahead
from scheduler.profiles.job.storm.options import StormOptions
from scheduler.profiles.job.storm.storms import storms
from tests.scheduler.profiles.job.storm.storm_scene import EVERYWHERE, PODS, Scene, cron_job, of_storm, other

MIDNIGHT = 1_790_035_200.0  # 2026-09-22, UTC


def demand(*jobs: Any, runs: float = 90.0) -> Demand:
    return demand_ahead(jobs, (), lambda service: runs, MIDNIGHT + 30)


def starts(made: Demand) -> list[int]:
    """Minutes of the day."""
    return [round(one.start - MIDNIGHT) // 60 for one in storms(made)]


# Storms

STEADY = [cron_job(f"tick-{i}", pods=1, cpu=1.0, schedule="* * * * *") for i in range(60)]


def test_what_comes_at_a_steady_rate_keeps_nobody_out() -> None:
    scene = Scene(*STEADY)
    for minutes in (-9, -4, 0.1, 3):
        scene.at(minutes)
        assert (scene.watch.ahead, scene.kept) == ((), 0)
        assert scene.passes(other(cpu=40.0)) == EVERYWHERE


@pytest.mark.parametrize("schedule", ["* * * * *", "*/2 * * * *", "1-59/2 * * * *", "* 6-18 * * *"])
def test_steady_is_what_comes_in_many_of_the_minutes_around(schedule: str) -> None:
    assert starts(demand(cron_job(pods=200, schedule=schedule))) == []


def test_what_comes_beyond_it_is_a_storm() -> None:
    made = demand(*STEADY, cron_job("hourly", pods=500, schedule="0 3,4 * * *"), cron_job("few", schedule="0 6 * * *"))
    assert starts(made) == [180, 240, 360]
    assert [one.pods for one in storms(made)] == [560, 560, 120]
    assert starts(demand(*STEADY, cron_job("too-few", pods=49, schedule="0 3 * * *"))) == []


@pytest.mark.parametrize(("minutes", "is_storm"), [("30-44", True), ("30-45", False)])
def test_a_storm_is_of_a_quarter_of_an_hour_at_most(minutes: str, is_storm: bool) -> None:
    assert starts(demand(cron_job(schedule=f"{minutes} 5 * * *"))) == ([330] if is_storm else [])


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

TEN_MINUTES = cron_job(schedule="0-9 17 * * *", cpu=1.0)


def test_room_is_kept_for_pods_side_by_side_less_those_that_run() -> None:
    scene = Scene(TEN_MINUTES)  # of 60 pods a minute, each of which runs for 90 s
    scene.at(-4.9)
    assert scene.watch.headroom.held[0].storm.pods == 600
    assert scene.kept == 120
    scene.at(1.1)
    scene.come(40, "node-0")
    scene.come(30, "node-1", first=40)
    assert scene.kept == 50
    scene.at(1.2)
    assert scene.kept == 50
    for i in range(20):
        scene.live.delete(replace(of_storm(f"storm-report-{i}", 0.0), node="node-0"))
    scene.at(1.3)
    assert scene.kept == 70, "those that have ended make room for the next"
    assert len(scene.watch.headroom.held[0].arrived) == 70


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


def test_a_share_of_what_is_free_is_for_everybody() -> None:
    assert StormOptions().most_room == 0.5
    scene = Scene(cron_job(pods=200, cpu=1.0), options={"most_room": 0.5})
    scene.at(-4)
    assert scene.kept == 80
    # Others fill what is left: nothing more is left over for them bit by bit.
    for i in range(80):
        scene.live.put(replace(other(cpu=1.0), uid=f"x-{i}", name=f"x-{i}", node="node-3" if i < 40 else "node-2"))
    scene.at(-3.9)
    assert scene.kept == 80
    assert scene.passes(other(cpu=1.0)) == {"node-2", "node-3"}, "which are full"


def test_the_share_is_that_of_all_storms_together() -> None:
    scene = Scene(
        cron_job("first", cpu=1.0), cron_job("second", cpu=1.0, schedule="2 * * * *"), options={"most_room": 0.5}
    )
    scene.at(-2.5)
    assert [held.pods for held in scene.watch.headroom.held] == [60, 20]


def test_a_cron_job_counts_for_no_more_than_the_cluster_has_places_for() -> None:
    scene = Scene(cron_job(pods=1_000_000, cpu=1.0))
    assert scene.watch.ahead[0].pods == 4 * 110


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
