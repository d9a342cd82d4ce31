"""Room that is reserved looks like a pod to the tables. Nothing that evicts, deletes or reports on pods touches it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kubernetes.client import ApiClient

from cluster.tables.state import ClusterState
from kube.client.eviction import Evicted, api_server_evict
from kube.events.event_recorder import EventRecorder
from kube.objects.objects import PodInfo
from placement.reservations.reservation import HIGHEST_PRIORITY
from profiles.gpu.tide.training_annotations import TIDE, Role
from scheduler.overcommit.repair_victims import is_evictable
from tests.profiles.gpu.idle_cpu.gpu_nodes import offline_pod
from tests.profiles.gpu.idle_cpu.test_gpu_node_pods import tables
from tests.profiles.gpu.tide.test_tide_table import some_pod, table_of
from tests.scheduler.overcommit.nodes import OURS, Scene
from tests.scheduler.overcommit.nodes import node as full_node
from tests.scheduler.overcommit.nodes import pod as pod_of_ours
from tests.scheduler.preemption.made_up import World, node, pod


def held(of: PodInfo) -> PodInfo:
    """The stand-in of a Reservation in the place of a pod."""
    return replace(of, stands_in=True, priority=HIGHEST_PRIORITY, may_preempt=False)


def test_preemption_takes_pods_before_it_and_it_never() -> None:
    room = held(pod("room", "a", cpu=4))
    high = pod("high", cpu=4, priority=2_000_001_000)
    assert World([node("a")], [room]).preempts(high) is None
    assert World([node("a"), node("b")], [room, pod("low", "b", cpu=4)]).preempts(high) == ("b", ["low"])


def test_not_even_one_of_low_priority_is_a_victim() -> None:
    """A tenant that takes back what it lent does not ask for priorities."""
    room = replace(pod("room", "a", cpu=4, priority=0), stands_in=True)
    assert World([node("a")], [room]).preempts(pod("high", cpu=4, priority=100)) is None
    gone = World([node("a")], [room])
    gone.delete(room.uid)
    gone.sitting.settle()
    assert not gone.sitting.stand_ins


def test_it_preempts_no_pod_while_it_waits() -> None:
    waiting = replace(pod("room", cpu=4, priority=0), stands_in=True, may_preempt=False)
    world = World([node("a")], [pod("lower", "a", cpu=4, priority=-5)])
    assert world.preempts(replace(waiting, may_preempt=True)) == ("a", ["lower"])
    assert world.preempts(waiting) is None


def test_repair_neither_counts_nor_evicts_it() -> None:
    scene = Scene([full_node(cpu=4)])
    scene.put(pod_of_ours("a pod", cpu=3))
    scene.put(held(pod_of_ours("room", cpu=3)))
    scene.after(0)
    assert scene.after(10) == [], "the pod fits, and would be evicted for nothing"
    assert is_evictable(pod_of_ours("a pod"), [OURS])
    assert not is_evictable(held(pod_of_ours("room")), [OURS])


def test_it_is_no_offline_pod_that_leaves_a_gpu_node() -> None:
    cluster, tested = tables()
    cluster.apply(cluster.state.put_pod(held(offline_pod("room", "node-0"))))
    assert not tested.rows_with_offline


def test_the_tide_counts_its_cards_and_moves_it_nowhere() -> None:
    training = some_pod(0, True, "node-0", False)
    assert training.annotations[TIDE] == Role.TRAINING.value
    state = ClusterState()
    table = table_of(state)
    table.apply(state.put_pod(held(training)))
    assert [one.role for one in table.pods.values()] == [Role.UNSAID]


def test_no_eviction_of_it_is_sent() -> None:
    """Not even to an API server that does not exist."""
    assert api_server_evict(ApiClient())(held(pod("room", "a"))).outcome is Evicted.REFUSED


@pytest.mark.parametrize(("one", "n_events"), [(pod("a pod"), 1), (held(pod("room")), 0)])
def test_no_event_is_written_about_it(one: PodInfo, n_events: int) -> None:
    posted: list[str] = []

    def post(path: str, body: bytes) -> int:
        posted.append(path)
        return 201

    events = EventRecorder(post, what="queues", instance="one")
    events.start()
    events.warn(one, "UnreadAnnotation", "what is wrong")
    events.stop()
    assert len(posted) == n_events
