from __future__ import annotations

from dataclasses import replace

import pytest

from kube.objects.constraints import PodConstraints
from kube.objects.objects import PodInfo
from placement.cluster_events import ClusterEvent, EventKind
from scheduler.queue.options import QueueOptions
from tests.scheduler.queue.queue_world import FIT, SPREAD, STRANGE, World, a_pod, node_added


def test_a_pod_that_found_no_node_waits_for_an_event_its_plugins_listen_to() -> None:
    world = World()
    world.put(a_pod("a", zone="x"))
    world.reject(FIT)
    world.after(20)
    for event in (node_added("y"), ClusterEvent(EventKind.POD_LEFT), ClusterEvent(EventKind.FORECAST_CHANGED)):
        world.queue.happened(event)
        assert world.parts() == {"a": "unschedulable"}
    world.queue.happened(node_added("x"))
    assert world.parts() == {"a": "active"}


def test_one_of_several_plugins_is_enough() -> None:
    world = World()
    world.put(a_pod("a", zone="x"))
    world.reject(FIT, SPREAD)
    world.after(20)
    world.queue.happened(node_added("y"))
    assert world.parts() == {"a": "unschedulable"}
    world.queue.happened(ClusterEvent(EventKind.POD_LEFT))
    assert world.parts() == {"a": "active"}


@pytest.mark.parametrize("by", [(), (STRANGE,), (FIT, STRANGE)])
def test_every_event_wakes_where_a_plugin_cannot_say_what_helps(by: tuple[str, ...]) -> None:
    world = World()
    world.put(a_pod("a"))
    world.reject(*by)
    assert world.parts() == {"a": "unschedulable"}
    world.after(20)
    world.queue.happened(ClusterEvent(EventKind.STORAGE_CHANGED))
    assert world.parts() == {"a": "active"}


def test_a_pod_woken_before_its_backoff_is_over_waits_for_the_rest_of_it() -> None:
    world = World()
    world.put(a_pod("a"))
    world.reject(FIT)
    world.now += 0.4
    world.queue.happened(node_added())
    assert world.parts() == {"a": "backoff"}
    world.after(0.5)
    assert world.parts() == {"a": "backoff"}
    world.after(0.1)
    assert world.parts() == {"a": "active"}


def test_a_change_of_status_moves_no_pod() -> None:
    world = World(gated={"d": "no"})
    pods = [a_pod(name, unit="u") for name in "abcd"]
    for pod in pods[:2]:
        world.put(pod)
        world.reject(FIT)
    world.put(*pods[2:])
    asked = world.gate_asked
    for pod in pods:
        world.put(replace(pod, labels=dict(pod.labels), nominated_node="n1", created=5.0))
    assert world.parts() == {"a": "unschedulable", "b": "unschedulable", "c": "active", "d": "gated"}
    assert world.gate_asked == asked
    assert all(waiting.pod.nominated_node == "n1" for waiting in world.queue.waiting())
    world.after(20)
    world.queue.happened(node_added())
    assert world.parts() == {"a": "active", "b": "active", "c": "active", "d": "gated"}


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


def test_an_event_that_came_while_the_pod_was_in_flight_is_not_lost() -> None:
    world = World()
    world.put(a_pod("a", zone="x"), a_pod("b", zone="y"), a_pod("c", zone="x"))
    first = [world.pop(), world.pop()]
    world.queue.happened(node_added("x"))
    first.append(world.pop())  # after it
    for popped in first:
        assert popped is not None
        world.queue.rejected(popped.pods, frozenset({FIT}), "no room")
    assert world.parts() == {"a": "backoff", "b": "unschedulable", "c": "unschedulable"}
    assert len(world.queue._parts.in_flight) == 0  # nobody needs them any more


def test_more_events_than_are_kept_count_as_one_that_helps() -> None:
    world = World(QueueOptions(most_events=2))
    world.put(a_pod("a", zone="x"))
    first = world.pop()
    assert first is not None
    for _ in range(3):
        world.queue.happened(node_added("y"))
    assert len(world.queue._parts.in_flight) == 2
    world.queue.rejected(first.pods, frozenset({FIT}), "no room")
    assert world.parts() == {"a": "backoff"}


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


def test_like_pods_that_different_plugins_rejected_wait_for_different_events() -> None:
    world = World()
    world.put(a_pod("a", unit="u"), a_pod("b", unit="u"))
    for by in (FIT, SPREAD):
        first = world.pop(1)
        assert first is not None
        world.queue.rejected(first.pods, frozenset({by}), "no room")
    world.after(20)
    world.queue.happened(ClusterEvent(EventKind.POD_LEFT))
    assert world.parts() == {"a": "unschedulable", "b": "active"}


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
