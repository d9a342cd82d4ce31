"""Who is let onto nodes with GPUs: beside the forecast, beside the GPUs that are idle, and who is never."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecast.arrays import Ints
from forecast.service_key import Owner
from kube.decoding.decoding import Kind
from kube.objects.objects import PodInfo
from placement.cluster_events import ClusterEvent, EventKind
from placement.plugins import Hint
from placement.pod_groups.labels import GROUP_LABEL
from scheduler.cycle.order_dependence import is_asked_once
from scheduler.profiles.gpu.idle_cpu.gpu_reserve import PRIOR_GPUS, kept_for_idle, per_gpu
from scheduler.profiles.gpu.idle_cpu.options import PlainPods
from tests.scheduler.profiles.gpu.idle_cpu.gpu_nodes import GpuNodes, gpu_node, gpu_pod, offline_pod, plain_pod
from tests.scorer.live_cluster import pod_of

KEPT = "node(s) had no cpu left beside what is kept for idle GPUs"
PLAIN = "node(s) had GPUs, and the pod neither asks for any nor is offline"
UNKNOWN = "predicted load is not known"
MIXED = (gpu_node("node-0"), gpu_node("node-1", gpus=0))
BOTH = {"node-0", "node-1"}


# Who is meant


def test_pods_with_gpus_and_those_of_the_node_itself_go_anywhere() -> None:
    world = GpuNodes(nodes=MIXED, cores_per_gpu=100.0)
    assert world.passing(gpu_pod("g", cpu=40)) == BOTH
    assert world.passing(plain_pod("agent", owner=Owner("DaemonSet", "agent"))) == BOTH
    assert world.passing(offline_pod("agent", owner=Owner("DaemonSet", "agent"))) == BOTH


def test_plain_pods_stay_on_nodes_without_gpus() -> None:
    world = GpuNodes(nodes=MIXED)
    assert world.reasons(plain_pod("p")) == {"node-0": {PLAIN}, "node-1": frozenset()}
    assert GpuNodes(nodes=MIXED, plain_pods=PlainPods.ANYWHERE).passing(plain_pod("p")) == BOTH


def test_members_of_a_gang_belong_to_the_work_on_the_gpus() -> None:
    launcher = plain_pod("launcher", labels={GROUP_LABEL: "train"})
    assert GpuNodes(nodes=MIXED).passing(launcher) == BOTH


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


def test_as_many_as_leave_what_each_idle_gpu_needs() -> None:
    """40 cores, 4 GPUs: one is held, by a pod of 4 cores; 6 are kept for each of the other three."""
    world = GpuNodes(gpu_pod("g", "node-0"), cores_per_gpu=6.0, ceiling=1.0)
    assert world.filter.kept(world.cluster.state)[0, 0] == 18_000
    for n in range(18):
        assert world.passing(offline_pod(cpu=1.0)) == {"node-0"}, n
        world.live.put(offline_pod(f"o{n}", "node-0", cpu=1.0))
    assert world.reasons(offline_pod(cpu=1.0)) == {"node-0": {KEPT}}
    world.live.put(gpu_pod("h", "node-0", gpus=3, cpu=16))
    assert world.passing(offline_pod(cpu=2.0)) == {"node-0"}, "no GPU is idle any more, and they took less"
    assert world.reasons(offline_pod(cpu=2.1))["node-0"] >= {KEPT}


def test_shares_of_a_gpu_count() -> None:
    half = plain_pod("half", "node-0", cpu=2.0, annotations={"forecast-scheduler.io/gpu-milli": "500"})
    world = GpuNodes(half, cores_per_gpu=8.0, ceiling=1.0)
    assert world.filter.kept(world.cluster.state)[0, 0] == 28_000
    assert world.passing(offline_pod(cpu=10.0)) == {"node-0"} and not world.passing(offline_pod(cpu=10.1))


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

SERVICES = [pod_of(i, f"service-{i}-{n}", f"node-{n}") for i in range(3) for n in range(2)]


def test_no_further_than_the_predicted_peak_leaves_free() -> None:
    nodes = (gpu_node("node-0", cores=10.0), gpu_node("node-1", cores=40.0))
    world = GpuNodes(*SERVICES, nodes=nodes, cores_per_gpu=0.0, ceiling=0.5, hours=24).with_model()
    full = "predicted load of cpu would pass 50 % of capacity within 24 h"
    assert world.reasons(offline_pod(uses=0.5)) == {"node-0": {full}, "node-1": frozenset()}
    assert world.reasons(offline_pod(uses=20.0)) == {"node-0": {full}, "node-1": {full}}
    short = GpuNodes(*SERVICES, nodes=nodes, cores_per_gpu=0.0, ceiling=0.5, hours=2).with_model()
    assert short.passing(offline_pod(uses=0.5)) == {"node-0", "node-1"}, "at night, for a while"


def test_without_a_model_requests_decide() -> None:
    world = GpuNodes(gpu_pod("g", "node-0", gpus=4, cpu=20), ceiling=0.8)
    assert world.passing(offline_pod(cpu=12.0)) == {"node-0"} and not world.passing(offline_pod(cpu=12.1))


def test_a_node_of_which_nothing_is_predicted_yet() -> None:
    world = GpuNodes(cores_per_gpu=0.0).with_model()
    world.live.scorer.tables.put(Kind.NODES, gpu_node("node-7"))
    assert world.reasons(offline_pod()) == {"node-0": frozenset(), "node-7": {UNKNOWN}}


# In the framework


def test_pods_go_in_batches_where_what_lands_changes_nothing() -> None:
    world = GpuNodes(nodes=MIXED)
    for pod, at_once in ((gpu_pod("g"), True), (plain_pod("p"), True), (offline_pod(), False)):
        assert is_asked_once([world.filter], pod, world.view) is at_once


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


@given(rows)
def test_an_empty_cluster_keeps_all_of_its_nodes_and_a_full_one_nothing(of_rows: list[_Row]) -> None:
    _, _, model, devices, allocatable = columns(of_rows)
    nothing = np.zeros_like(allocatable)
    of_a_gpu = per_gpu(nothing, np.zeros_like(model), model, devices, allocatable, (None,))
    kept = kept_for_idle(1000 * devices, of_a_gpu)
    assert (kept == np.where(devices[:, None] > 0, allocatable, 0)).all()
    assert (kept_for_idle(np.zeros_like(devices), of_a_gpu) == 0).all()


@given(st.integers(0, 8000), st.floats(0, 1e12))
def test_what_is_kept_is_whole_and_rounded_up(idle: int, of_a_gpu: float) -> None:
    kept = int(kept_for_idle(np.array([idle]), np.array([[of_a_gpu]]))[0, 0])
    exact = idle * of_a_gpu / 1000
    assert kept >= math.floor(exact) and kept <= math.ceil(exact) + 1
