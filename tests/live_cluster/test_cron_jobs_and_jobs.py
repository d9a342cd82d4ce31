"""CronJobs and Jobs on a real API server: what is written there is what is read, listed or watched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import pytest

from admission.webhook.template_store import WEBHOOK_TIMING
from cluster.live_tables import LiveTables
from cluster.runs.expected import RunSource
from forecast.service_key import ServiceKey
from kube.client.kubernetes_client import api_client
from kube.client.kubernetes_source import KubernetesSource, ResourceSource
from kube.client.kubernetes_watcher import ResourceWatcher
from kube.decoding.decoding import Kind
from kube.decoding.jobs import JobInfo, JobOutcome
from profiles.job.cron.cron_jobs import WATCHED_CRON_JOBS, Concurrency, CronJobInfo, CronJobs
from testing.servers.cluster_objects import ClusterWriter, Manifest, job
from testing.servers.control_plane.control_plane import ControlPlane
from testing.waiting import eventually

LONG: Final = 60.0
STARTED, ENDED = "2026-11-21T01:00:00Z", "2026-11-21T01:05:00Z"


@dataclass
class World:
    """What follows the server."""

    writer: ClusterWriter
    cron_jobs: CronJobs
    tables: LiveTables

    def cron_job(self, name: str) -> CronJobInfo:
        assert eventually(lambda: self.cron_jobs.get("default", name) is not None)
        found = self.cron_jobs.get("default", name)
        assert found is not None
        return found

    def job(self, name: str) -> JobInfo:
        assert eventually(lambda: self._job(name) is not None)
        found = self._job(name)
        assert found is not None
        return found

    def expected(self, service: str) -> tuple[float, float, RunSource]:
        with self.tables.reading() as cluster:
            run = cluster.expected_runs.of_service(ServiceKey("default", "CronJob", service))
        return run.seconds, run.long, run.source

    def _job(self, name: str) -> JobInfo | None:
        with self.tables.reading() as cluster:
            return next((job for job in cluster.state.jobs.values() if job.name == name), None)

    def becomes_expected(self, service: str, *expected: object) -> bool:
        return eventually(lambda: self.expected(service) == expected)


@pytest.fixture(scope="module")
def world(plane: ControlPlane) -> Iterator[World]:
    api, tables, cron_jobs = api_client(plane.kubeconfig), LiveTables(), CronJobs()
    sources = (
        ResourceSource([ResourceWatcher(api, cron_jobs, WATCHED_CRON_JOBS, timing=WEBHOOK_TIMING)]),
        KubernetesSource(api, tables, kinds=(Kind.NODES, Kind.PODS, Kind.JOBS)),
    )
    with ClusterWriter(plane) as writer:
        writer.create(cron_job("early"))
        writer.create(job("early-1", cron_job="early"))
        for source in sources:
            source.start()
        assert all(source.wait_synced(LONG) for source in sources)
        yield World(writer, cron_jobs, tables)
        for source in sources:
            source.stop()


def cron_job(name: str, *, template: Manifest | None = None, **spec: Any) -> Manifest:
    pods = {"spec": {"containers": [{"name": "main", "image": "app:1"}], "restartPolicy": "Never"}}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedule": "0 * * * *", "jobTemplate": {"spec": {"template": pods} | (template or {})}} | spec,
    }


def test_a_cron_job_through_its_life(world: World) -> None:
    limits = {"requests": {"cpu": "500m"}, "limits": {"memory": "1Gi"}}
    pods = {"containers": [{"name": "main", "image": "app:1", "resources": limits}], "restartPolicy": "Never"}
    template = {"parallelism": 8, "completionMode": "Indexed", "completions": 20, "template": {"spec": pods}}
    written = cron_job("full", timeZone="Europe/Berlin", suspend=True, concurrencyPolicy="Replace", template=template)
    world.writer.create(written)
    full = world.cron_job("full")
    assert (full.schedule, full.time_zone, full.suspended) == ("0 * * * *", "Europe/Berlin", True)
    assert (full.concurrency, full.parallelism, full.completions) == (Concurrency.REPLACE, 8, 20)
    assert full.completion_mode == "Indexed" and full.template.requests == {"cpu": 0.5, "memory": 2.0**30}
    world.writer.patch(written, {"spec": {"suspend": False}})
    assert eventually(lambda: not world.cron_job("full").suspended)
    world.writer.patch_status(written, {"lastScheduleTime": STARTED})
    assert eventually(lambda: world.cron_job("full").last_scheduled == seconds(STARTED))
    world.writer.delete(written)
    assert eventually(lambda: world.cron_jobs.get("default", "full") is None)


def test_a_job_from_its_suspension_to_its_end(world: World) -> None:
    written = job("nightly-29000000", cron_job="nightly")
    written["spec"]["suspend"] = True
    world.writer.create(written)
    assert world.job("nightly-29000000").suspended
    world.writer.patch(written, {"spec": {"suspend": False}})
    world.writer.patch_status(written, {"startTime": STARTED, "active": 1, "ready": 1})
    assert eventually(lambda: world.job("nightly-29000000").ready == 1)
    run = world.job("nightly-29000000")
    assert (run.suspended, run.started, run.active, run.outcome) == (False, seconds(STARTED), 1, None)
    world.writer.patch_status(written, completed())
    assert eventually(lambda: world.job("nightly-29000000").outcome is JobOutcome.COMPLETE)
    run = world.job("nightly-29000000")
    assert (run.finished, run.succeeded, run.active) == (seconds(ENDED), 1, 0)
    assert world.becomes_expected("nightly", 300.0, 600.0, RunSource.BOUNDED)


def completed() -> Manifest:
    conditions = [
        {"type": kind, "status": "True", "lastProbeTime": ENDED, "lastTransitionTime": ENDED}
        for kind in ("SuccessCriteriaMet", "Complete")
    ]
    return {"completionTime": ENDED, "active": 0, "ready": 0, "succeeded": 1, "conditions": conditions}


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
