from __future__ import annotations

from dataclasses import replace

import pytest

from kube.objects.constraints import PodConstraints
from kube.objects.objects import PodInfo
from placement.cluster_events import ClusterEvent, EventKind
from tests.scheduler.queue.queue_world import FIT, World, a_pod, node_added


@pytest.mark.parametrize(
    "changed",
    [
        {"labels": {"zone": "y"}},
        {"requests": {"cpu": 0.5}},
        {"annotations": {"forecast-scheduler.io/policy": "spread"}},
        {"constraints": PodConstraints(node_selector=(("disk", "ssd"),))},
    ],
)
def test_a_change_of_what_matters_is_worth_another_attempt(changed: dict[str, object]) -> None:
    world = World()
    pod = a_pod("a")
    world.put(pod)
    world.reject(FIT)
    world.now += 20
    world.put(replace(pod, **changed))  # type: ignore[arg-type]
    assert world.parts() == {"a": "active"}


def test_a_plugin_that_raises_wakes_pods_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    def broken(pod: PodInfo, event: ClusterEvent) -> bool:
        raise KeyError("zone")

    world = World()
    world.fit.says = broken
    for name in ("a", "b"):
        world.put(a_pod(name))
        world.reject(FIT)
    world.after(20)
    world.queue.happened(node_added())
    assert world.parts() == {"a": "active", "b": "active"}
    assert len(caplog.records) == 1


def test_like_pods_of_a_unit_share_one_question() -> None:
    world = World()
    world.put(*(a_pod(f"x{i}", unit="u", zone="x") for i in range(50)))
    world.put(*(a_pod(f"y{i}", unit="u", zone="y") for i in range(50)))
    world.reject(FIT)
    world.after(20)
    world.queue.happened(node_added("y"))
    assert world.fit.asked == 2
    assert world.queue.lengths() == {"active": 50, "backoff": 0, "unschedulable": 50, "gated": 0}
    assert all(uid.startswith("y") for uid in world.popped())
    world.queue.happened(ClusterEvent(EventKind.POD_LEFT))
    assert world.fit.asked == 2  # it does not listen to that
    for uid in [f"x{i}" for i in range(50)]:
        world.queue.remove(uid)
    world.queue.happened(node_added("x"))
    assert world.fit.asked == 2  # nobody is left to ask about


def test_a_nominated_pod_is_asked_about_by_itself() -> None:
    world = World()
    pods = [a_pod(name, unit="u") for name in "abc"]
    world.put(*pods)
    world.reject(FIT)
    world.after(20)
    world.put(replace(pods[0], nominated_node="n1"))
    world.fit.says = lambda pod, event: pod.nominated_node == "n1"
    world.queue.happened(node_added())
    assert world.parts() == {"a": "active", "b": "unschedulable", "c": "unschedulable"}
