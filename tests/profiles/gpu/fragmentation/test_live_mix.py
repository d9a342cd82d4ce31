"""The mix of shapes follows the pods that come, whoever is still there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube.decoding.decoding import Kind
from kube.objects.objects import PodInfo
from kube.objects.pod_shape import on_node
from profiles.gpu.fragmentation.live_mix import LiveMix, MixOptions, rounded
from profiles.gpu.fragmentation.pod_shapes import PodShape, PodShapes
from tests.kube.api_objects import GIB, node
from tests.profiles.gpu.fragmentation.gpu_world import NOW, GpuWorld, card_node, card_pod

DAY = 86_400.0


class Mixed:
    def __init__(self, **options: Any) -> None:
        self.now = NOW
        self.world = GpuWorld(card_node("a", cards=8))
        self.mix = LiveMix(self.world.state, self.world.shapes.of, MixOptions(**options), clock=lambda: self.now)
        self.world.scorer.tables.attach((), self.mix)

    def weights(self) -> dict[tuple[int, int], float]:
        self.now += 10.0
        mix = self.mix.mix()
        assert mix is not None
        return {(s.count, s.milli): float(w) for s, w in zip(mix.shapes, mix.weight, strict=True)}


def test_old_pods_fade() -> None:
    mixed = Mixed()
    mixed.world.put(card_pod("old", milli=500))
    mixed.now += DAY
    mixed.world.put(replace(card_pod("new", whole=2), created=mixed.now))
    assert mixed.weights() == pytest.approx({(2, 1000): 2 / 3, (1, 500): 1 / 3})
    mixed.now += 400 * DAY  # and numbers neither overflow nor vanish
    mixed.world.put(replace(card_pod("much-later", whole=4), created=mixed.now))
    assert mixed.weights() == pytest.approx({(4, 1000): 1.0})


def test_the_mix_is_the_same_object_until_it_has_moved() -> None:
    mixed = Mixed(drift=0.2)
    mixed.world.put(*(card_pod(f"s{i}", milli=500) for i in range(10)))
    mixed.now += 10
    before = mixed.mix.mix()
    mixed.world.put(card_pod("w1", whole=1))
    mixed.now += 10
    assert mixed.mix.mix() is before
    mixed.world.put(*(card_pod(f"w{i}", whole=1) for i in range(2, 9)))
    assert mixed.mix.mix() is before, "it is looked at every ten seconds"
    mixed.now += 10
    assert mixed.mix.mix() is not before


def test_shapes_that_nobody_wants_again_do_not_pile_up() -> None:
    mixed = Mixed(most_shapes=2)
    mixed.world.put(*(card_pod(f"common-{i}", whole=8) for i in range(2)))
    mixed.world.put(*(replace(card_pod(f"p{i}", milli=10 * i), created=NOW + i) for i in range(1, 100)))
    assert len(mixed.mix._weights) <= 32
    assert (8, 1000) in mixed.weights()


def test_a_restart_finds_the_mix_of_the_pods_that_are_there() -> None:
    mixed = Mixed()
    mixed.world.put(card_pod("s", milli=500, node="a"), card_pod("w", whole=2))
    again = LiveMix(mixed.world.state, mixed.world.shapes.of, clock=lambda: mixed.now)
    mix = again.mix()
    assert mix is not None and {s.count * s.milli for s in mix.shapes} == {500, 2000}


@given(st.integers(0, 10**6), st.integers(0, 10**7), st.integers(1, 1000))
def test_rounding_never_makes_a_shape_smaller_nor_much_larger(cpu: int, memory: int, milli: int) -> None:
    shape = PodShape(cpu, memory, 1, milli)
    counted = rounded(shape)
    for asked, counts in ((cpu, counted.cpu_milli), (memory, counted.memory_mib)):
        assert asked * 0.8 <= counts <= asked  # it fits wherever the pod fits
    assert milli <= counted.milli < milli + 10
    assert rounded(counted) == counted


TYPE = "forecast-scheduler.io/gpu-type"


def with_memory(name: str, units: int) -> PodInfo:
    plain = card_pod(name)
    return replace(plain, requests={**plain.requests, "aliyun.com/gpu-mem": float(units)})


PODS = (
    card_pod("whole", whole=2),
    card_pod("share", milli=300),
    card_pod("typed", milli=300, annotations={TYPE: "A10,H100"}),
    card_pod("large", whole=2, cpu=8.0),
    with_memory("memory", 4),
    card_pod("plain"),
)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["", "H100", "A10", "memory"]), st.sampled_from(PODS)), max_size=30))
def test_shapes_follow_pods_and_nodes(steps: list[tuple[str, PodInfo]]) -> None:
    world = GpuWorld(card_node("a", model="T4"))
    for number, (change, pod) in enumerate(steps):
        world.shapes.of(pod)
        if change == "memory":
            amounts = {"aliyun.com/gpu-count": 2.0, "aliyun.com/gpu-mem": float(2 * (8 + number))}
            world.scorer.tables.put(Kind.NODES, node(f"n{number}", cpu=16.0, memory=64 * GIB, **amounts))
        elif change:
            world.scorer.tables.put(Kind.NODES, card_node(f"n{number}", model=change))
        for one in (pod, on_node(pod, "a"), pod):
            assert world.shapes.of(one) == PodShapes(world.devices).of(one)
