"""The job profile's tables as a process puts them together from its settings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from forecast.resources import CPU
from forecast.service_key import Owner, ServiceKey
from kube.decoding.decoding import Kind
from kube.decoding.job_specs import PodTemplate
from kube.decoding.jobs import JobInfo
from kube.objects.objects import PodInfo
from placement.node_rule_settings import NodeRuleOptions
from profiles.job.job_tables import JobTables, job_tables
from profiles.schedule_settings import ScheduleSettings
from profiles.schedule_tables import profile_handle
from tests.profiles.job.storm.storm_scene import cron_job
from tests.profiles.job.valley.waiting_pods import job_pod
from tests.scorer.live_cluster import at, loaded
from tests.scorer.nightly_jobs import NIGHTLY, RUN_SECONDS, nightly_model
from tests.scorer.scorer_at import LiveScorer

SETTINGS = ScheduleSettings.model_validate({"profiles": ["online", "job"]})


def made() -> tuple[LiveScorer, JobTables]:
    live = LiveScorer(without_model=True)
    return live, the_tables(live)


def the_tables(live: LiveScorer) -> JobTables:
    with live.scorer.tables.reading() as cluster:
        handle = profile_handle(live.scorer, cluster, SETTINGS, NodeRuleOptions())
        tables = job_tables(handle, SETTINGS.job, handle.starts, SETTINGS.colocation.ceiling)
        for follower in (tables.serverless.tables, tables.serverless.failed_nodes, tables.bursts, tables.punctuality):
            live.scorer.tables.attach((), follower)
        return tables


def of_a_job(created: float) -> PodInfo:
    pod = job_pod("pod", created=created, run="10m", deadline="1h")
    return replace(pod, owner=Owner("Job", "work"), owner_uid="u", scheduler_name="job-scheduler")


def test_a_pod_that_is_made_anew_is_due_when_the_first_one_was() -> None:
    live, tables = made()
    pod = of_a_job(created=2_000.0)
    assert tables.due_of(pod) == 2_000.0 + 3_000.0
    service = ServiceKey(pod.namespace, "Job", "work")
    live.scorer.tables.put(Kind.JOBS, JobInfo(pod.namespace, "work", "u", service, created=500.0))
    assert tables.due_of(pod) == tables.due_of(replace(pod, created=3_000.0)) == 500.0 + 3_000.0


def test_a_process_that_starts_minutes_before_a_storm_knows_how_long_its_pods_run() -> None:
    live = LiveScorer(1 + 54 / 60, without_model=True)
    tables = the_tables(live)
    live.scorer.tables.install(loaded(nightly_model()))
    tables.cron_jobs.put(cron_job("nightly", schedule="0 2 * * *"))
    tables.storms.keep_up()
    assert [one.start.timestamp() for one in tables.storms.storm_reports()] == [at(2)]
    ends = at(2) + RUN_SECONDS
    cores = tables.storms.expected_use(np.array([at(1.95), at(2.1), ends - 120, ends + 120]))[CPU]
    np.testing.assert_allclose(cores, [0.0, 30.0, 30.0, 0.0])


@pytest.mark.parametrize(("has_model", "is_expected"), [(True, [at(2)]), (False, [])])
def test_one_night_that_is_still_there_and_a_model_are_enough_to_expect_a_burst_after_a_restart(
    has_model: bool, is_expected: list[float]
) -> None:
    """A script makes Job shop/load anew every night: the API server has last night's, the model more of them."""
    load = ServiceKey("shop", "Job", "load")
    known = nightly_model()
    row = known.services.index(NIGHTLY)
    starts = known.run_starts.copy()
    starts[row, :, 4] = 60.0
    services = (*known.services[:row], load)
    live = LiveScorer(1 + 54 / 60, without_model=True)
    template = PodTemplate(requests={"cpu": 0.5}, scheduler_name="job-scheduler")
    last_night = JobInfo("shop", "load", "u", load, created=at(2, -1), started=at(2, -1))
    tables = the_tables(live)
    live.scorer.tables.put(Kind.JOBS, replace(last_night, parallelism=60, completions=60, template=template))
    if has_model:
        live.scorer.tables.install(loaded(replace(known, services=services, run_starts=starts)))
    assert [one.at for one in tables.bursts.expected(live.clock.now)] == is_expected
