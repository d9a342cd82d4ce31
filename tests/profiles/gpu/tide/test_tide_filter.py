"""Which training pods are placed into which GPUs, and how many at once."""

from __future__ import annotations

import numpy as np

from kube.objects.objects import PodInfo
from placement.cluster_events import ClusterEvent, EventKind, Hint
from placement.filters.filter import rejected
from placement.what_if import WithoutPods
from tests.profiles.gpu.tide.tide_api import FakeApi
from tests.profiles.gpu.tide.tide_made_up import demand
from tests.profiles.gpu.tide.tide_world import World, gpu_node, inference, trainer

SERVING = [inference(n, "node-0") for n in range(4)]
NODES = [gpu_node("node-0"), gpu_node("node-1"), gpu_node("node-2", gpus=2, product="T4"), gpu_node("node-3", gpus=0)]


def planned(hour: float, *pods: PodInfo, **rest: object) -> World:
    world = World(FakeApi(), hour, pods=[*SERVING, *pods], nodes=NODES, **rest)  # type: ignore[arg-type]
    world.tide.step()
    return world


def passes(world: World, pod: PodInfo) -> list[str]:
    with world.scorer.tables.reading():
        nodes = ~rejected(world.room.filter(pod, world.view), world.view.n_rows)
        return [world.view.state.names[row] for row in np.flatnonzero(nodes & world.view.state.alive)]


def test_a_training_is_kept_out_of_what_inference_needs_before_it_would_be_drained() -> None:
    """A100: 16 GPUs, inference 4 until the evening and 10 in it; training holds 8."""
    holding = [trainer(n, "node-1", gpus=1.0) for n in range(8)]
    pod = trainer(9, gpus=1.0)
    everywhere = ["node-0", "node-1", "node-2", "node-3"]
    assert passes(planned(12.0, *holding[:6]), pod) == everywhere
    assert passes(planned(17.4, *holding[:5]), pod) == everywhere
    assert passes(planned(17.4, *holding[:6]), pod) == ["node-2", "node-3"]
    patient = trainer(9, gpus=1.0, annotations={"checkpoint-grace": "1m"})
    assert passes(planned(17.4, *holding[:6]), patient) == everywhere


def test_evicting_other_training_helps_and_the_trial_sees_it() -> None:
    holding = [trainer(n, "node-1", gpus=1.0) for n in range(6)]
    world, pod = planned(17.4, *holding), trainer(9, gpus=1.0)
    with world.scorer.tables.reading():
        (rejection,) = world.room.filter(pod, world.view)
        assert rejection.preemptible
        with WithoutPods(world.view) as what_if:
            what_if.take(holding[0].uid)
            assert not world.room.filter(pod, world.view)
        assert world.room.filter(pod, world.view)
    alone, pod = planned(17.4), trainer(9, gpus=8.0)
    with alone.scorer.tables.reading():
        (rejection, *_) = alone.room.filter(pod, alone.view)
        assert not rejection.preemptible, "there is no training to evict"


def test_as_many_at_once_as_the_pool_takes_all_nodes_together() -> None:
    world, pod = planned(17.4), trainer(9, gpus=1.0)
    with world.scorer.tables.reading():
        state = world.view.state
        rows = np.array([state.row_of[name] for name in ("node-0", "node-1")])
        assert world.room.room(pod, world.view, rows).tolist() == [6, 6]
        assert world.room.prefer(pod, 100, world.view, rows).most == 6
        assert world.room.prefer(pod, 3, world.view, rows).most == 3
        elsewhere = np.array([state.row_of["node-3"]])
        assert world.room.room(pod, world.view, elsewhere)[0] > 10**6
        assert world.room.room(inference(9), world.view, rows).min() > 10**6


def test_without_a_forecast_the_last_gpus_are_left_to_inference() -> None:
    holding = [trainer(n, "node-1", gpus=1.0) for n in range(8)]
    late = [inference(n, "node-0") for n in range(4, 7)]
    pod = trainer(9, gpus=1.0)
    assert "node-0" in passes(planned(17.4, *holding, without_model=True), pod)
    world = planned(17.4, *holding, *late, without_model=True)
    assert "node-0" not in passes(world, pod), "one GPU is free, and a tenth of seven is kept"


def test_hints() -> None:
    world = planned(12.0)
    pod = trainer(9)
    left = ClusterEvent(EventKind.POD_LEFT, pod=inference(0))
    assert world.room.hint(pod, left) is Hint.QUEUE
    plain = inference(0, gpus=0.0)
    assert world.room.hint(pod, ClusterEvent(EventKind.POD_LEFT, pod=plain)) is Hint.SKIP
    assert world.room.hint(pod, ClusterEvent(EventKind.NAMESPACE_CHANGED)) is Hint.SKIP


def test_pods_that_wait_are_asked_again_where_there_is_more_room() -> None:
    world = planned(20.0)
    before = len(world.queue.events)
    world.tide.step()
    assert len(world.queue.events) == before
    world.at(23.6)
    world.tide.step()
    assert [event.kind for event in world.queue.events[before:]] == [EventKind.FORECAST_CHANGED]


def test_more_room_in_the_hours_ahead_is_more_room() -> None:
    """For pods that take long to drain; now there is as much as before."""
    room = World(FakeApi()).room
    assert room.use(demand([4, 4, 12, 12])), "the first"
    assert not room.use(demand([4, 4, 12, 12]))
    assert room.use(demand([4, 4, 8, 8]))
    assert not room.use(demand([4, 4, 8, 4])), "beyond what is as tight as before"
    assert not room.use(demand([4, 6, 8, 8]))
    assert not room.use(demand([4, 6, 8, 8], forecast=False))
    assert room.use(demand([4, 6, 8, 8])), "a forecast"


def test_an_old_plan_counts_as_none() -> None:
    """16 GPUs: inference has 4 and is expected to need 10; without a forecast it keeps a tenth more than it has."""
    pod = trainer(9, gpus=1.0)
    eight = planned(20.0, *[trainer(n, "node-1", gpus=1.0) for n in range(8)])
    assert "node-0" not in passes(eight, pod)
    eight.clock.now += 599
    assert "node-0" not in passes(eight, pod)
    eight.clock.now += 2
    assert "node-0" in passes(eight, pod)
    eight.put(*(trainer(n, "node-0", gpus=1.0) for n in range(8, 11)))
    assert "node-0" not in passes(eight, pod)
    with eight.scorer.tables.reading():
        assert {"planned for a while" in one.reason for one in eight.room.filter(pod, eight.view)} == {True}
    before = len(eight.queue.events)
    eight.tide.step()
    assert len(eight.queue.events) == before + 1, "a new plan is asked"

    slow = planned(20.0, *[trainer(n, "node-1", gpus=1.0) for n in range(8)], every=120.0)
    slow.clock.now += 1199
    assert "node-0" not in passes(slow, pod)
