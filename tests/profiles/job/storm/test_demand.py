"""What CronJobs will ask for, minute by minute, and the storms in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube.decoding.job_specs import PodTemplate
from profiles.job.cron.cron_jobs import Concurrency, CronJobInfo
from profiles.job.storm.job_demand import ExpectedBurst, JobDemand, demand_ahead
from profiles.job.storm.storms import keep_room, storms

MIDNIGHT = 1_790_035_200.0  # 2026-09-22, UTC


def cron_job(
    schedule: str, *, pods: int = 10, by: str = "job-scheduler", name: str = "job", **more: Any
) -> CronJobInfo:
    template = PodTemplate(
        requests={"cpu": 0.5, "memory": 100.0}, scheduler_name=by, annotations=more.pop("annotations", {})
    )
    return CronJobInfo(
        "shop",
        name,
        name,
        schedule,
        **{"parallelism": pods, "completions": pods, "template": template, **more},
    )


def demand(*jobs: CronJobInfo, runs: float = 90.0, bursts: tuple[ExpectedBurst, ...] = ()) -> JobDemand:
    return demand_ahead(jobs, bursts, lambda service: runs, MIDNIGHT + 30)


@pytest.mark.parametrize(
    ("job", "arrivals"),
    [
        (cron_job("0 * * * *", suspended=True), 0),
        (cron_job("0 * * * *", by="default-scheduler"), 0),
        (cron_job("0 * * * *", parallelism=0), 0),
        (cron_job("nonsense"), 0),
        (cron_job("0 * * * *", time_zone="Mars/Olympus"), 0),
        (cron_job("0 * * * *"), 24 * 10),
        (cron_job("0 * * * *", parallelism=10, completions=4), 24 * 4),
        (cron_job("0 * * * *", parallelism=10, completions=None), 24 * 10),
        (cron_job("* * * * *", concurrency=Concurrency.FORBID), 720 * 10),  # each lasts a minute and a half
        (cron_job("* * * * *", concurrency=Concurrency.REPLACE), 1440 * 10),
    ],
)
def test_pods_of_a_day(job: CronJobInfo, arrivals: int) -> None:
    assert demand(job).arrivals.sum() == arrivals


def test_what_others_place_is_listed_and_what_cannot_be_read_is_said() -> None:
    made = demand(cron_job("0 3 * * *", by="default-scheduler"), cron_job("61 * * * *", name="odd"))
    assert [(one.name, one.counts) for one in made.sources] == [("shop/CronJob/job", False)]
    assert len(made.unreadable) == 1
    assert "shop/odd" in made.unreadable[0]


def test_adjacent_minutes_are_one_storm_of_all_that_comes_in_them() -> None:
    found = storms(
        demand(
            cron_job("0,1 3 * * *", pods=60, name="a"),
            cron_job("0 3 * * *", pods=20, name="b", annotations={"forecast-scheduler.io/place": "cluster"}),
            cron_job("0 5 * * *", pods=49, name="c"),
            bursts=(ExpectedBurst(MIDNIGHT + 7 * 3600, "flows", None, 80, 30.0, {"cpu": 1.0}),),
        )
    )
    assert [(one.start - MIDNIGHT, one.until - one.start, one.pods) for one in found] == [
        (3 * 3600, 120, 140),
        (7 * 3600, 60, 80),
    ]
    first, second = found
    assert first.sources == ("shop/CronJob/a", "shop/CronJob/b")
    assert (first.cpu, first.may_leave, first.pod_request["cpu"]) == (70.0, 120, 0.5)
    assert second.groups == {"flows"}


rows = st.lists(st.tuples(st.integers(0, 30), st.booleans(), st.integers(0, 30)), min_size=1, max_size=8)


@settings(max_examples=50)
@given(rows, st.integers(0, 100))
def test_room_is_kept_for_as_many_pods_as_fit_and_where_it_was(of: list[tuple[int, bool, int]], pods: int) -> None:
    fits, eligible = np.array([one[0] for one in of]), np.array([one[1] for one in of])
    chosen = keep_room(fits, eligible, pods, np.array([one[2] for one in of]))
    assert (chosen <= np.where(eligible, fits, 0)).all()
    assert chosen.sum() == min(pods, np.where(eligible, fits, 0).sum())
    assert keep_room(fits, eligible, pods, chosen).tolist() == chosen.tolist()
