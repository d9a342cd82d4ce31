"""What storms may not do: last for ever, close the cluster, outlive their time, be forgotten when more is learned."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from profiles.job.storm.job_demand import JobDemand, demand_ahead
from profiles.job.storm.storms import storms
from tests.profiles.job.storm.storm_scene import EVERYWHERE, PODS, Scene, cron_job, of_storm, other

MIDNIGHT = 1_790_035_200.0  # 2026-09-22, UTC


def demand(*jobs: Any, runs: float = 90.0) -> JobDemand:
    return demand_ahead(jobs, (), lambda service: runs, MIDNIGHT + 30)


def starts(made: JobDemand) -> list[int]:
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
