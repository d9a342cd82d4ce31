"""Shapes that are remembered are those that a pod would be given anew."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from kube.decoding.decoding import Kind
from kube.objects.objects import PodInfo
from kube.objects.pod_shape import on_node
from scheduler.profiles.gpu.fragmentation.pod_shapes import PodShapes
from tests.kube.api_objects import GIB, node
from tests.scheduler.profiles.gpu.fragmentation.gpu_world import GpuWorld, card_node, card_pod

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
