"""Who is let onto nodes with GPUs: beside the forecast, beside the GPUs that are idle, and who is never."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from base.arrays import Ints
from kube.objects.objects import PodInfo
from placement.cluster_events import ClusterEvent, EventKind, Hint
from profiles.gpu.idle_cpu.idle_cpu import PRIOR_GPUS, kept_for_idle, per_gpu
from tests.profiles.gpu.idle_cpu.gpu_nodes import GpuNodes, gpu_node, gpu_pod, offline_pod, plain_pod

KEPT = "node(s) had no cpu left beside what is kept for idle GPUs"
PLAIN = "node(s) had GPUs, and the pod neither asks for any nor is offline"
MIXED = (gpu_node("node-0"), gpu_node("node-1", gpus=0))


# Who is meant


def test_offline_by_annotation_or_by_priority() -> None:
    world = GpuNodes(nodes=MIXED, cores_per_gpu=100.0, priority_below=-5)
    for pod in (offline_pod(), plain_pod("low", priority=-6)):
        assert world.reasons(pod) == {"node-0": {KEPT}, "node-1": frozenset()}
    assert world.reasons(plain_pod("p", priority=-5))["node-0"] == {PLAIN}
    denies = offline_pod(annotations={"forecast-scheduler.io/offline": "false"})
    assert world.reasons(denies)["node-0"] == {PLAIN}


def test_victims_are_offline_pods_first_the_least_important_before_others() -> None:
    offline = GpuNodes().offline
    pods = [
        gpu_pod("g", gpus=1),
        replace(gpu_pod("low"), priority=-(2**30)),
        plain_pod("p", priority=-(2**31)),
        offline_pod("o", priority=50),
        offline_pod("lower", priority=-3),
        offline_pod("lowest", priority=-(2**31)),
    ]
    assert offline.is_offline(pods[2]), "by its priority"
    by_standing = sorted(pods, key=lambda pod: (offline.standing(pod), pod.name))
    assert [pod.name for pod in by_standing] == ["lowest", "p", "lower", "o", "low", "g"]
    elsewhere = replace(pods[3], scheduler_name="another")
    assert offline.standing(elsewhere) == 50, "no business of ours"
    assert [pod.name for pod in pods if offline.may_preempt(pod)] == ["g", "low"]
    assert offline.standing(pods[0]) == 100


# Beside idle GPUs


def test_what_pods_with_such_cards_request_is_measured() -> None:
    nodes = (*(gpu_node(f"node-{i}") for i in range(3)), gpu_node("node-9", model="T4"))
    pods = [gpu_pod(f"g{i}{j}", f"node-{i}", cpu=2.0) for i in range(2) for j in range(4)]
    world = GpuNodes(*pods, nodes=nodes, ceiling=1.0)
    rows = world.cluster.state.row_of
    kept = world.filter.kept(world.cluster.state)[:, 0]
    assert kept[rows["node-0"]] == 0, "all of its GPUs are in use"
    assert kept[rows["node-2"]] == 4 * (8 * 2000 + 8 * 10_000) / 16, "half their mean, half the node's own share"
    assert kept[rows["node-9"]] == 40_000, "of a T4 nothing is known"
    world.live.delete(pods[0])
    assert world.filter.kept(world.cluster.state)[rows["node-0"], 0] > 0


# Beside the forecast


def test_without_a_model_requests_decide() -> None:
    world = GpuNodes(gpu_pod("g", "node-0", gpus=4, cpu=20), ceiling=0.8)
    assert world.passing(offline_pod(cpu=12.0)) == {"node-0"} and not world.passing(offline_pod(cpu=12.1))


# In the framework


@pytest.mark.parametrize(
    ("kind", "about", "helps"),
    [
        (EventKind.POD_LEFT, plain_pod("x"), True),
        (EventKind.FORECAST_CHANGED, None, True),
        (EventKind.POD_BOUND, gpu_pod("x"), True),
        (EventKind.POD_BOUND, plain_pod("x"), False),
        (EventKind.STORAGE_CHANGED, None, False),
    ],
)
def test_what_wakes_an_offline_pod(kind: EventKind, about: PodInfo | None, helps: bool) -> None:
    hint = GpuNodes().filter.hint(offline_pod(), ClusterEvent(kind, pod=about))
    assert hint is (Hint.QUEUE if helps else Hint.SKIP)


_Row = tuple[int, int, int, int, int]  # milli-cores requested, thousandths held, model, devices, allocatable

rows = st.lists(
    st.tuples(
        st.integers(0, 64_000), st.integers(0, 8000), st.integers(-1, 2), st.integers(0, 8), st.integers(0, 96_000)
    ),
    min_size=1,
    max_size=12,
)


def columns(of_rows: list[_Row]) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    whole = np.array(of_rows, dtype=np.int64)
    requested, held, model, devices, allocatable = whole.T
    held = np.minimum(held, 1000 * devices)
    return requested[:, None], held, np.where(devices > 0, model, -1), devices, allocatable[:, None]


@given(rows, st.one_of(st.none(), st.integers(0, 20_000)))
def test_as_node_by_node(of_rows: list[_Row], said: int | None) -> None:
    requested, held, model, devices, allocatable = columns(of_rows)
    found = per_gpu(requested, held, model, devices, allocatable, (said,))
    for row in range(len(of_rows)):
        if not devices[row]:
            expected = 0.0
        elif said is not None:
            expected = float(said)
        else:
            like = [one for one in range(len(of_rows)) if model[one] == model[row]]
            gpus = sum(held[one] for one in like) / 1000 + PRIOR_GPUS
            expected = (sum(requested[one, 0] for one in like) + PRIOR_GPUS * allocatable[row, 0] / devices[row]) / gpus
        assert found[row, 0] == pytest.approx(expected)


@given(st.integers(0, 8000), st.floats(0, 1e12))
def test_what_is_kept_is_whole_and_rounded_up(idle: int, of_a_gpu: float) -> None:
    kept = int(kept_for_idle(np.array([idle]), np.array([[of_a_gpu]]))[0, 0])
    exact = idle * of_a_gpu / 1000
    assert kept >= math.floor(exact) and kept <= math.ceil(exact) + 1
