"""Who goes first, who gets how much, who waits for whom and what happens when pods end, through a real API server."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from testing.clusters.job_world import JobsWorld, job_pod, jobs_process, queue
from testing.clusters.own_nodes import our_node
from testing.servers.cluster_objects import ClusterWriter
from testing.servers.control_plane.control_plane import ControlPlane

TEAMS = {"team-cpu": (200, 100), "team-memory": (100, 1600), "team-both": (200, 800)}
"""Milli-cores and MiB of a pod."""

QUEUES = [queue("teams", "drf", namespaces=list(TEAMS)), queue("dates", "deadline")]


@pytest.fixture(scope="module")
def world(module_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JobsWorld]:
    directory: Path = tmp_path_factory.mktemp("jobs")
    job = {"valley": {"enabled": False}}
    with ClusterWriter(module_plane) as writer:
        for name in TEAMS:
            writer.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        with JobsWorld(writer, jobs_process(module_plane, directory, job=job, queues=QUEUES)) as world:
            yield world


def test_the_earliest_deadline_goes_first_and_misses_are_counted(world: JobsWorld) -> None:
    hours = list(range(1, 13))
    random.Random(8).shuffle(hours)
    missed = {"queue": "dates", "deadline": "1s"}

    def before() -> None:
        for hour in hours:  # one after the other: who came first would go first
            due = {"queue": "dates", "deadline": f"{hour}h"}
            world.writer.create(job_pod(f"due-{hour}h", cpu="1", annotations=due))

    with world.nodes(our_node("node-0", cpu=4), before=before):
        world.awaits(lambda: _bound(world, "due-") == {f"due-{hour}h" for hour in (1, 2, 3, 4)}, "no earliest first")
        counted = {name: world.process.metric(f"forecast_job_deadline_{name}_total") for name in ("met", "missed")}
        world.writer.create_many(job_pod(f"late-{i}", cpu="1", annotations=missed) for i in range(2))
        world.awaits(lambda: world.process.metric("forecast_job_deadline_missed_total") == counted["missed"] + 2)
        world.ends(world.pods()["due-1h"])
        world.awaits(lambda: world.process.metric("forecast_job_deadline_met_total") == counted["met"] + 1)
        # Whose deadline is over is not forgotten: it was the earliest.
        world.awaits(lambda: len(_bound(world, "late-") | _bound(world, "due-")) == 5)
        assert world.process.metric("forecast_job_deadline_missed_total") == counted["missed"] + 2


def test_pods_are_left_alone_until_their_gate_goes(world: JobsWorld) -> None:
    """As Kueue holds them; suspended Jobs have no pods at all."""
    with world.nodes(our_node("node-0")):
        held = world.writer.create(job_pod("held-0", gates=("kueue.x-k8s.io/admission",)))
        world.writer.create(job_pod("free-0"))
        world.awaits(lambda: _bound(world, "free-") == {"free-0"})
        now = world.pods()["held-0"]
        assert "nodeName" not in now["spec"] and now["status"]["conditions"][0]["reason"] == "SchedulingGated"
        world.writer.patch(held, {"spec": {"schedulingGates": None}})
        world.awaits(lambda: _bound(world, "held-") == {"held-0"})


def _bound(world: JobsWorld, prefix: str) -> set[str]:
    return {name for name, one in world.pods(prefix).items() if one["spec"].get("nodeName")}
