"""What is done about pods that do not start, step by step."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from forecast.service_key import NO_OWNER, Owner, ServiceKey
from kube.client.api_answer import ApiAnswer, answered, unanswered
from kube.decoding.job_specs import Failing, OnDisruption
from kube.decoding.jobs import JobInfo
from kube.objects.objects import PodInfo
from placement.virtual_node_settings import Provider
from profiles.job.serverless.pod_takeback import Affording, TakebackOutcome, pods_to_spare
from profiles.job.serverless.serverless_parts import ServerlessCollector
from profiles.job.serverless.start_watch import ProviderWatch
from tests.kube.job_table import JobTable
from tests.profiles.job.serverless.providers_world import OURS, World, job_pod, provider_node

ACI = Provider(name="aci", start_timeout=100.0)


class MadeUpSession:
    """Answers every patch with the pod as it is sent for, and does what it is told at once."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.is_silent = self.is_over = False

    async def request(
        self, method: str, path: str, body: bytes | None, *, content_type: str = "", seconds: float
    ) -> ApiAnswer:
        self.asked.append((method, path.rpartition("/pods/")[2]))
        if self.is_silent:
            return unanswered(TimeoutError())
        name = path.rpartition("/pods/")[2].split("/")[0]
        return answered(200, msgspec.json.encode({"kind": "Pod", "metadata": {"name": name, "resourceVersion": "7"}}))

    def submit(self, work: Coroutine[Any, Any, None]) -> Future[None]:
        if self.is_over:
            raise RuntimeError("it is over")
        done: Future[None] = Future()
        done.set_result(asyncio.run(work))
        return done

    @property
    def deleted(self) -> list[str]:
        return [what for method, what in self.asked if method == "DELETE"]


class Scene:
    def __init__(self, jobs: JobTable | None = None) -> None:
        self.world = World([provider_node("v", "aci")], ACI)
        self.session, self.leads = MadeUpSession(), True
        self.told: list[tuple[str, str]] = []
        self._lock = threading.RLock()
        self.watch = ProviderWatch(
            self.world.tables,
            self.session,
            [OURS],
            locked=self._locked,
            tell=lambda pod, reason, note: self.told.append((pod.name, reason)),
            may_write=lambda: self.leads,
            affording=None if jobs is None else Affording(jobs),
            clock=lambda: self.world.now,
        )

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._lock:
            yield

    def stalled(self, count: int = 1, **fields: Any) -> list[PodInfo]:
        pods = [self.world.run(job_pod(f"p-{i}", **fields), "v") for i in range(count)]
        self.world.now += 100.0
        return pods


def test_a_stalled_pod_is_taken_back_once() -> None:
    scene = Scene()
    (pod,) = scene.stalled()
    scene.watch.step()
    assert scene.session.asked == [("PATCH", "p-0/status"), ("DELETE", "p-0")]
    assert scene.told == [("p-0", "TakenBack")]
    scene.watch.step()
    assert scene.session.deleted == ["p-0"]
    scene.world.run(replace(pod, terminating=True), "v")
    scene.world.now += 1_000.0
    scene.watch.step()
    assert scene.session.deleted == ["p-0"]
    assert scene.watch.outcomes == {("aci", TakebackOutcome.TAKEN_BACK): 1}


def test_thousands_go_at_a_bounded_rate() -> None:
    scene = Scene()
    scene.stalled(300)
    scene.watch.step()
    assert len(scene.session.deleted) == 100
    scene.world.now += 1.0
    scene.watch.step()
    assert len(scene.session.deleted) == 120
    for _ in range(9):
        scene.world.now += 1.0
        scene.watch.step()
    assert len(set(scene.session.deleted)) == 300


@pytest.mark.parametrize(
    "fields",
    [{"owner": NO_OWNER, "owner_uid": ""}, {"owner": replace(NO_OWNER, kind="DaemonSet", name="d")}],
)
def test_a_pod_that_nobody_makes_anew_is_told_once_and_left(fields: dict[str, Any]) -> None:
    scene = Scene()
    scene.stalled(**fields)
    scene.watch.step()
    scene.watch.step()
    assert scene.session.asked == [] and scene.told == [("p-0", "NotStarted")]


def a_job(failing: Failing | None = None, **counts: Any) -> JobInfo:
    service = ServiceKey("shop", "Job", "job")
    return JobInfo("shop", "job", "uid-of-job", service, failing=failing or Failing(), **counts)


def test_a_job_loses_no_more_pods_than_it_can_afford() -> None:
    jobs = JobTable()
    scene = Scene(jobs)
    pods = scene.stalled(12)
    jobs.put(a_job(failed=1))
    for _ in range(3):
        scene.watch.step()
    assert len(scene.session.deleted) == 4
    assert sorted(reason for _, reason in scene.told) == ["NotTakenBack"] * 8 + ["TakenBack"] * 4
    for pod in pods:
        if pod.name in scene.session.deleted:
            scene.world.gone(pod)
    jobs.put(a_job(failed=5))
    scene.world.now += 100.0
    scene.watch.step()
    assert len(scene.session.deleted) == 4
    jobs.put(a_job(Failing(on_disruption=OnDisruption.IGNORED), failed=5))
    scene.watch.step()
    assert len(scene.session.deleted) == 12


def test_a_replica_that_does_not_lead_only_looks_and_goes_on_when_it_leads() -> None:
    scene = Scene()
    scene.leads = False
    scene.stalled()
    scene.watch.step()
    assert scene.session.asked == [] and sum(scene.world.tables.failures.values()) == 1
    scene.leads = True
    scene.watch.step()
    assert scene.session.deleted == ["p-0"]


def test_figures_are_exported() -> None:
    scene = Scene()
    registry = CollectorRegistry()
    registry.register(ServerlessCollector(scene.world.tables, scene.watch, clock=lambda: scene.world.now))
    scene.stalled(3, cpu=2.0)
    scene.watch.step()

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"forecast_job_provider_{name}", {"provider": "aci"} | labels)

    assert (value("pods"), value("starting"), value("cpu_cores"), value("memory_gib")) == (3.0, 3.0, 6.0, 3.0)
    assert value("backoff_seconds") == 30.0
    assert value("failures_total", failure="stalled") == 3.0 and value("failures_total", failure="lost") == 0.0
    assert value("taken_back_total", outcome="taken_back") == 3.0
    scene.world.now += 40.0
    assert value("backoff_seconds") == 0.0


SERVICE = ServiceKey("shop", "Job", "job")


def a_run(failing: Failing | None = None, *, uid: str = "uid-of-job", **counts: Any) -> JobInfo:
    return JobInfo("shop", "job", uid, SERVICE, failing=failing or Failing(), **counts)


@pytest.mark.parametrize(
    ("failing", "counts", "expected"),
    [
        (Failing(), {}, 5),
        (Failing(), {"failed": 3, "uncounted_failed": 1}, 1),
        (Failing(), {"failed": 6}, 0),
        (Failing(limit=0), {}, 0),
        (Failing(), {"terminating": 2}, 5),
        (Failing(replaces_only_ended=True), {"terminating": 2}, 3),
        (Failing(on_disruption=OnDisruption.IGNORED), {"failed": 6}, None),
        (Failing(on_disruption=OnDisruption.FATAL), {}, 0),
    ],
)
def test_one_failure_is_left_to_a_job(failing: Failing, counts: dict[str, Any], expected: int | None) -> None:
    assert pods_to_spare(a_run(failing, **counts)) == expected


def test_a_job_that_is_not_known_loses_nothing_and_others_than_jobs_are_not_limited() -> None:
    jobs = JobTable()
    affording = Affording(jobs)
    jobs.put(a_run(uid="of an earlier one of this name"))
    affording.begin(0.0)
    assert "not known" in affording.refusal(job_pod("p"))
    replica = job_pod("r", owner=Owner("ReplicaSet", "job"))
    assert affording.refusal(replica) == ""
    affording.takes(replica, 0.0)
    assert not affording._taken
