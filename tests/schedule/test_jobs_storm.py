"""Thousands of job pods at once, on nodes where a service is being rolled out, by one process over one cache."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from testing.clusters.job_world import PodHistory, assert_sound, job_pod, jobs_process
from testing.clusters.own_nodes import LONG, our_node, our_pod, reported
from testing.processes.scorer_process import eventually
from testing.servers.cluster_objects import ClusterWriter, replica_set
from testing.servers.control_plane.control_plane import ControlPlane

N_JOB_PODS, N_ONLINE = 3000, 500
N_WAITING = 2500
N_CRON_JOBS, PODS_OF_A_JOB = 30, 10
ROOM = 42 * 10
"""Cores: the pods request 400."""


@pytest.mark.long
def test_a_storm_of_jobs_during_a_rollout(module_plane: ControlPlane, tmp_path: Path) -> None:
    with (
        ClusterWriter(module_plane, in_flight=16) as of_jobs,
        ClusterWriter(module_plane, in_flight=16) as of_services,
        PodHistory(module_plane) as history,
        ExitStack() as opened,
    ):
        of_jobs.create_many(our_node(f"node-{i}", cpu=10) for i in range(ROOM // 10))
        owner = of_services.create(replica_set("shop-7d9f", deployment="shop"))
        # Most of the storm waits already when the rollout begins: who came first would go first.
        made = of_jobs.create_many(map(_job_pod, range(N_WAITING)))
        with ThreadPoolExecutor(2) as threads:
            later = threads.submit(of_jobs.create_many, map(_job_pod, range(N_WAITING, N_JOB_PODS)))
            rollout = (our_pod(f"shop-{i}", cpu="200m", owner=owner) for i in range(N_ONLINE))
            rolled_out = threads.submit(of_services.create_many, rollout)
            process = opened.enter_context(jobs_process(module_plane, tmp_path))
            made += later.result() + rolled_out.result()

            assert eventually(lambda: len(history.bound) == N_JOB_PODS + N_ONLINE, LONG), process.log[-3000:]
            pods = assert_sound(module_plane, of_jobs, process, history)
            assert {one["metadata"]["uid"] for one in made} == {one["metadata"]["uid"] for one in pods}
            assert len(pods) == N_JOB_PODS + N_ONLINE and all(one["spec"].get("nodeName") for one in pods)
            # Counted by the process: none was bound twice, of either profile.
            assert process.metric("forecast_pod_scheduling_seconds_count") == N_JOB_PODS + N_ONLINE
            # The rollout is done long before the storm is, which was there first and is six times as large.
            order = history.order()
            last_online = max(place for place, name in enumerate(order) if name.startswith("shop-"))
            assert last_online < 0.8 * len(order), f"the last online pod was bound as number {last_online}"
            for cause in ("own", "shared"):
                assert reported(process, "forecast_overcommits_total", cause=cause) == 0


def _job_pod(number: int) -> dict[str, object]:
    cron_job, job = number % N_CRON_JOBS, number // N_CRON_JOBS // PODS_OF_A_JOB
    return job_pod(f"job-{number}", owner=f"report-{cron_job}-{29_300_000 + job}")
