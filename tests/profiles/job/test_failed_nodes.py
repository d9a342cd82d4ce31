"""Which nodes a Job's next pods keep away from."""

from __future__ import annotations

from typing import Any

import pytest

from forecast.service_key import Owner
from kube.objects.objects import PodInfo, PodPhase
from profiles.job.failed_nodes import AVOIDED_SECONDS, FailedNodes
from tests.profiles.job.serverless.providers_world import World, job_pod, real_node


def world_of(*nodes: str) -> World:
    return World([real_node(name, cpu=100.0) for name in nodes])


def failed(world: World, node: str, name: str = "p", job: str = "job", **fields: Any) -> PodInfo:
    return world.run(job_pod(name, job=job), node, **{"phase": PodPhase.FAILED, "started": world.now} | fields)


def nodes_for(world: World, job: str = "job", *, count: int = 1) -> set[str]:
    placed = world.place([job_pod(f"next-{world.now}-{i}", job=job) for i in range(count)])
    assert len(placed) == count
    for pod in list(world.view.state.pods.values()):
        if pod.uid.startswith("next"):
            world.gone(pod)
    return set(placed)


def test_the_next_pod_goes_elsewhere_for_an_hour() -> None:
    world = world_of("a", "b")
    favourite = nodes_for(world).pop()
    failed(world, favourite)
    assert nodes_for(world) == {"a", "b"} - {favourite}
    assert nodes_for(world, "another-job") == {favourite}
    world.now += AVOIDED_SECONDS - 1.0
    assert nodes_for(world) == {"a", "b"} - {favourite}
    world.now += 1.0
    assert nodes_for(world) == {favourite}


@pytest.mark.parametrize(
    "fields",
    [
        {"phase": PodPhase.SUCCEEDED},
        {"terminating": True},
        {"owner": Owner("ReplicaSet", "web")},
        {"owner_uid": ""},
    ],
)
def test_only_failures_of_jobs_count(fields: dict[str, Any]) -> None:
    world = world_of("a", "b")
    pod = failed(world, "a", **fields)
    assert world.failed_nodes.tells_apart(pod) is None


def test_a_failure_long_ago_is_over() -> None:
    world = world_of("a")
    world.now = 1e6
    old = failed(world, "a", finished=1e6 - AVOIDED_SECONDS)
    assert world.failed_nodes.tells_apart(old) is None
    recent = failed(world, "a", name="q", job="other", finished=1e6 - AVOIDED_SECONDS + 1.0)
    assert world.failed_nodes.tells_apart(recent) == "uid-of-other"


def test_it_is_found_again_after_a_restart() -> None:
    world = world_of("a", "b")
    pod = failed(world, "a")
    again = FailedNodes(world.view.state, clock=lambda: world.now)
    assert again.tells_apart(pod) == pod.owner_uid
