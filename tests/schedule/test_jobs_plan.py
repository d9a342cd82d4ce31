"""Jobs that wait for the valley, and room that is kept for CronJobs, through a real API server."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forecast.calendar import SLOTS_PER_DAY
from forecast.resources import CPU
from testing.clusters.job_world import JOBS, JobsWorld, job_pod, jobs_process
from testing.clusters.large_cluster import LargeCluster, large_cluster
from testing.clusters.own_nodes import condition, our_node, our_pod
from testing.processes.scenery import publish
from testing.processes.scorer_process import ROOT
from testing.servers.cluster_objects import ClusterWriter, Manifest
from testing.servers.control_plane.control_plane import ControlPlane

CORES = 8
LOADED, IDLE = 0.6, 0.1
"""Of the node's CPU: now, and later."""

STORM_PODS = 7
STORM = {"lead": "40m", "threshold": STORM_PODS, "most_room": 1}


def _model(now: datetime) -> LargeCluster:
    """One node that is loaded for one and a half to two hours from now on, and hardly used for the rest of the day."""
    made = large_cluster(1, 1, 1, first_day=now.date())
    _, slot = made.model.calendar.day_and_slot(now)
    share = np.full(SLOTS_PER_DAY, IDLE)
    # Curves run from the middle of one half hour to that of the next.
    share[np.arange(slot - 1, slot + 4) % SLOTS_PER_DAY] = LOADED
    base = made.model.node_base.copy()
    base[:, CPU] = CORES * share
    return replace(made, model=replace(made.model, node_base=base))


@pytest.fixture(scope="module")
def world(module_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JobsWorld]:
    directory: Path = tmp_path_factory.mktemp("plan")
    truth = _model(datetime.now(UTC))
    publish(directory / "models", truth)
    node = our_node(truth.nodes[0].name, cpu=CORES)
    process = jobs_process(module_plane, directory, "--models", directory / "models", job={"storm": STORM})
    with ClusterWriter(module_plane) as writer, JobsWorld(writer, process) as world, world.nodes(node):
        world.awaits(lambda: process.get("/v1/status")["model"] is not None)
        yield world


@pytest.fixture(autouse=True)
def empty_cluster(world: JobsWorld) -> Iterator[None]:
    """No pods and no CronJobs are left by any test."""
    yield
    for plural in ("cronjobs", "pods"):
        world.writer.delete_many(world.writer.list_all(plural))
    world.awaits(lambda: world.process.get("/v1/queue")["total"] == 0 and _plan(world)["jobs"] == [])


def test_a_job_with_slack_is_held_for_the_valley_and_others_are_not(world: JobsWorld) -> None:
    made = world.writer.create(job_pod("patient", annotations={"latest-start": "8h", "expected-run": "30m"}))
    world.awaits(lambda: "starts " in _queued(world, "patient").get("message", ""), "not planned")
    world.writer.create(job_pod("says-nothing"))
    world.writer.create(our_pod("online"))
    world.awaits(lambda: _bound(world) == {"says-nothing", "online"})

    queued, (planned,) = _queued(world, "patient"), _plan(world)["jobs"]
    assert (queued["part"], queued["rejected_by"]) == ("gated", ["Valley"])
    created = datetime.fromisoformat(made["metadata"]["creationTimestamp"])
    start, latest = (datetime.fromisoformat(planned[name]) for name in ("start", "latest_start"))
    assert created + timedelta(hours=1) < start < latest == created + timedelta(hours=8)
    at, until = (rf"(\w+ )?{one:%H:%M}" for one in (start, latest))  # with the day unless it is today's
    # What is predicted for now may have changed since it was held: others have come.
    why = rf"starts {at}: cluster CPU is predicted at 1\d % then, [56]\d % now; may start until {until}"
    assert re.fullmatch(why, planned["why"]) and re.fullmatch(why, queued["message"])
    assert planned["owner"] == "Job/patient" and planned["run_seconds"] == 1800
    assert world.process.metric("forecast_job_held_pods") == 1

    # Who asks by the command is told the same.
    told = _command(world, "--hours", "12", "--namespace", "default")
    (job,) = told["jobs"]
    assert job | {"why": ""} == planned | {"why": ""} and re.fullmatch(why, job["why"])
    assert told["total_jobs"] == 1 and told["no_forecast_because"] is None
    assert _command(world, "--namespace", "reports")["jobs"] == []

    # Wanted sooner, it goes at once.
    assert _bound(world, "patient") == set()
    world.writer.patch(made, {"metadata": {"annotations": {"forecast-scheduler.io/latest-start": "50s"}}})
    world.awaits(lambda: _bound(world, "patient") == {"patient"})


def test_room_is_kept_for_a_cron_job(world: JobsWorld) -> None:
    """A node of 8 cores, and 7 pods of a core that are to come within minutes."""
    due = datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(minutes=20)
    cron_job = world.writer.create(_cron_job("report", f"{due.minute} {due.hour} * * *", pods=STORM_PODS))
    world.awaits(lambda: _reserved(world) == STORM_PODS, "no room is kept")
    plan = _plan(world)
    (storm,) = [one for one in plan["storms"] if one["reserved_cpu_cores"]]
    assert datetime.fromisoformat(storm["start"]) == due and storm["pods"] == STORM_PODS
    assert storm["services"] == ["default/CronJob/report"]
    assert sum(one["pods"] for one in plan["demand"]) == STORM_PODS

    world.writer.create(job_pod("fits-beside", cpu="1"))
    world.awaits(lambda: _bound(world) == {"fits-beside"})
    world.writer.create(job_pod("low", cpu="2"))
    world.awaits(lambda: _queued(world, "low").get("part") == "unschedulable")
    assert "StormHeadroom" in _queued(world, "low")["rejected_by"]
    world.awaits(lambda: "kept room for jobs that are expected" in condition(world.pods()["low"])[1])
    # Of those who may use the room none is kept out: people wait for services, and some jobs cannot wait.
    world.writer.create(our_pod("online", cpu="2"))
    world.writer.create(job_pod("urgent", cpu="1", annotations={"latest-start": "2m"}))
    world.writer.create(job_pod("early", owner="report-29300000", cpu="1"))  # somebody started the CronJob by hand
    world.awaits(lambda: _bound(world) == {"fits-beside", "online", "urgent", "early"})
    assert "nodeName" not in world.pods()["low"]["spec"]

    world.writer.patch(cron_job, {"spec": {"suspend": True}})
    world.awaits(lambda: "low" in _bound(world), "the storm was called off")
    assert _plan(world)["storms"] == []


def _cron_job(name: str, schedule: str, *, pods: int) -> Manifest:
    spec = job_pod("template", cpu="1")["spec"]
    job = {"parallelism": pods, "completions": pods, "template": {"spec": spec}}
    assert spec["schedulerName"] == JOBS
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedule": schedule, "timeZone": "Etc/UTC", "jobTemplate": {"spec": job}},
    }


def _bound(world: JobsWorld, prefix: str = "") -> set[str]:
    return {name for name, one in world.pods(prefix).items() if one["spec"].get("nodeName")}


def _plan(world: JobsWorld) -> dict[str, Any]:
    return world.process.get("/v1/jobs/plan?hours=12&namespace=default&limit=100")


def _reserved(world: JobsWorld) -> float:
    return sum(float(one["reserved_cpu_cores"]) for one in _plan(world)["storms"])


def _queued(world: JobsWorld, name: str) -> dict[str, Any]:
    """As /v1/queue tells; empty = it does not wait."""
    return next((one for one in world.process.get("/v1/queue")["pods"] if one["name"] == name), {})


def _command(world: JobsWorld, *arguments: str) -> dict[str, Any]:
    """What `forecast-scheduler jobs` writes."""
    command = [sys.executable, "-m", "forecast_scheduler", "jobs", "--server", world.process.url, "--json", "-"]
    done = subprocess.run([*command, *arguments], cwd=ROOT, capture_output=True, check=True, timeout=120)
    return dict(json.loads(done.stdout))
