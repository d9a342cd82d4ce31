"""Who is let onto nodes with GPUs: beside the forecast, beside the GPUs that are idle, and who is never."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest

from forecast.arrays import Ints
from forecast.resources import CPU
from kube.eviction.eviction import Evicted, Eviction
from kube.objects.objects import PodInfo
from placement.cluster_events import ClusterEvent, EventKind
from placement.plugins import Hint
from scheduler.profiles.gpu.idle_cpu.gpu_node_pods import GpuNodePods
from scheduler.profiles.gpu.idle_cpu.gpu_reserve import PRIOR_GPUS, kept_for_idle, per_gpu
from scheduler.profiles.gpu.idle_cpu.metrics import IdleCpuCollector
from scheduler.profiles.gpu.idle_cpu.offline_eviction import OfflineEviction
from scheduler.profiles.gpu.idle_cpu.offline_pods import OfflinePods
from scorer.options import ScorerOptions
from scorer.runs.declared_run import EXPECTED_RUN_ANNOTATION
from scorer.tracking import TrackedCluster
from tests.scheduler.profiles.gpu.idle_cpu.gpu_nodes import (
    GPU,
    PROFILE,
    GpuNodes,
    gpu_node,
    gpu_pod,
    offline_pod,
    plain_pod,
)
from tests.scorer.live_cluster import N_RESOURCES, pod_of

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


MAKE = (gpu_pod, offline_pod, plain_pod)

steps = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from(MAKE), st.sampled_from(("", "node-0", "node-1")), st.integers(0, 3)),
    max_size=30,
)


def tables() -> tuple[TrackedCluster, GpuNodePods]:
    cluster = TrackedCluster(ScorerOptions(), now=0.0)
    pods = GpuNodePods(cluster, OfflinePods(lambda pod: GPU in pod.requests, PROFILE))
    cluster.listeners.append(pods.apply)
    for name in ("node-0", "node-1"):
        cluster.apply(cluster.state.put_node(gpu_node(name)))
    return cluster, pods


@given(steps)
@settings(deadline=None)
def test_as_from_the_pods_that_sit(of_steps: list[tuple[int, object, str, int]]) -> None:
    cluster, tested = tables()
    now: dict[int, PodInfo] = {}
    for number, make, on, cpu in of_steps:
        assert callable(make)
        if number in now and not on:
            cluster.apply(cluster.state.delete_pod(now.pop(number).uid))
        else:
            now[number] = make(f"p{number}", on, cpu=float(cpu))
            cluster.apply(cluster.state.put_pod(now[number]))
    fresh = GpuNodePods(cluster, OfflinePods(lambda pod: GPU in pod.requests, PROFILE))
    for name, row in cluster.state.row_of.items():
        there = [pod for pod in now.values() if pod.node == name]
        cores = sum(pod.requests["cpu"] for pod in there if GPU in pod.requests)
        offline = {pod.uid for pod in there if pod.annotations}
        for one in (tested, fresh):
            assert one.requested_with_gpus()[row, 0] == 1000 * cores
            assert set(one.offline_on(row)) == offline and (row in one.rows_with_offline) == bool(offline)
    tested.rebuild()
    assert (tested.requested_with_gpus() == fresh.requested_with_gpus()).all()


REFUSED = Eviction(Evicted.REFUSED, "The disruption budget b needs 2 healthy pods")
SERVICES = [pod_of(i, f"service-{i}-{n}", f"node-{n}") for i in range(3) for n in range(2)]


class Care:
    """And a made-up API server. show: whether evicted pods terminate at once."""

    def __init__(self, *pods: PodInfo, show: bool = True, **options: Any) -> None:
        self.world = GpuNodes(*pods, **options)
        self.live = self.world.live
        self.asked: list[str] = []
        self.answers: dict[str, Eviction] = {}
        self.told: list[tuple[str, str, str]] = []
        self.leads, self.show = True, show
        self.care = self.made()

    def made(self) -> OfflineEviction:
        """Return the eviction of a process that starts now, on the same cluster."""
        world = self.world
        return OfflineEviction(
            self.live.scorer.tables,
            world.pods,
            world.devices,
            world.colocation.bounds,
            world.options,
            PROFILE,
            evict=self.evict,
            tell=lambda pod, reason, note: self.told.append((pod.name, reason, note)),
            may_write=lambda: self.leads,
            clock=self.live.clock,
        )

    def evict(self, pod: PodInfo) -> Eviction:
        self.asked.append(pod.name)
        answer = self.answers.get(pod.name, Eviction(Evicted.GOING))
        if answer.outcome is Evicted.GOING and self.show:
            self.live.put(replace(pod, terminating=True))
        return answer

    def measure(self, cores: float, node: str = "node-0") -> None:
        self.live.measure({node: [cores, *([0.0] * (N_RESOURCES - 1))]})

    def step(self, seconds: float = 5.0) -> list[str]:
        """Who was asked to go, and then time passes."""
        before = len(self.asked)
        self.care.step()
        self.live.later(seconds)
        return self.asked[before:]


def offline_pods(n: int, on: str = "node-0", *, cpu: float = 2.0, **more: Any) -> list[PodInfo]:
    """The later the newer."""
    return [offline_pod(f"o{i}", on, cpu=cpu, created=float(i), started=float(i), **more) for i in range(n)]


# Measured


def test_nobody_goes_while_the_ceiling_holds() -> None:
    tested = Care(*offline_pods(4))
    for cores in (0.0, 32.0, 33.9):  # 80 % of 40, and the slack
        tested.measure(cores)
        assert tested.step() == []
    assert tested.care.n_strained == 0


def test_the_newest_go_until_the_load_is_down_to_the_ceiling() -> None:
    tested = Care(*offline_pods(6))
    tested.measure(35.5)
    assert tested.step() == ["o5", "o4"], "3.5 cores too many, of pods that take 2"
    assert [(name, reason) for name, reason, _ in tested.told] == [
        ("o5", "EvictedFromGpuNode"),
        ("o4", "EvictedFromGpuNode"),
    ]
    assert tested.told[0][2] == "offline, and the node uses 35.5 of its 40 cores, more than 80%"
    assert tested.care.evictions == {Evicted.GOING: 2}


# Foreseen


def evening(hour: float, **options: Any) -> Care:
    """Services that peak in the evening, on 10 cores, and offline pods that run beside them for a day from now on."""
    nodes = (gpu_node("node-0", cores=10.0), gpu_node("node-1", cores=40.0))
    pods = [pod for name in ("node-0", "node-1") for pod in offline_pods(3, name, cpu=0.05, uses=1.0)]
    lasts = {EXPECTED_RUN_ANNOTATION: "24h"}
    pods = [
        replace(
            pod,
            name=f"{pod.name}-{pod.node}",
            uid=f"{pod.name}-{pod.node}",
            started=None,
            annotations={**pod.annotations, **lasts},
        )
        for pod in pods
    ]
    options = {"ceiling": 0.5, "slack": 0.0, "hours": 6, **options}
    tested = Care(*SERVICES, *pods, nodes=nodes, hour=hour, **options)
    tested.world.with_model()
    return tested


def first_hour_of_evictions(**options: Any) -> float:
    for half_hour in range(8, 48):
        tested = evening(half_hour / 2, **options)
        if tested.step():
            assert {name[-6:] for name in tested.asked} == {"node-0"}
            return half_hour / 2
    raise AssertionError("nobody was ever evicted")


def test_they_go_before_the_evening_comes() -> None:
    at_once, ahead = first_hour_of_evictions(lead=0.0), first_hour_of_evictions(lead=7200.0)
    assert at_once - ahead == 2.0


def test_no_more_go_than_the_forecast_needs_and_none_for_its_sake_later() -> None:
    tested = evening(20.0)
    gone = tested.step()
    assert gone and tested.told[0][2].startswith("offline, and the node is expected to use, within 30 minutes, ")
    assert tested.step() == [], "their curves are gone with the first sign that they go"


# Who acts, and what is heeded


def test_a_replica_that_does_not_lead_evicts_nobody_and_another_goes_on() -> None:
    tested = Care(*offline_pods(6))
    tested.measure(35.5)
    tested.leads = False
    assert tested.step() == [] and tested.care.n_strained == 1
    tested.leads = True
    assert tested.step() == ["o5", "o4"]
    tested.care = tested.made()
    assert tested.step() == []


def test_who_would_not_be_made_anew_stays_and_so_do_pods_of_others() -> None:
    bare = offline_pod("bare", "node-0", owner_uid="")
    theirs = replace(offline_pod("theirs", "node-0"), scheduler_name="another")
    tested = Care(bare, theirs, gpu_pod("g", "node-0"))
    tested.measure(39.0)
    assert tested.step() == []


def test_it_can_be_switched_off() -> None:
    tested = Care(*offline_pods(3), evict=False)
    tested.measure(39.0)
    assert tested.step() == [] and tested.care.n_strained == 1


def test_a_dry_run_tells_once_and_evicts_nobody() -> None:
    tested = Care(*offline_pods(3), dry_run=True)
    tested.measure(35.0)
    assert tested.step() == [] and tested.step() == []
    assert sorted((name, reason) for name, reason, _ in tested.told) == [
        ("o1", "WouldBeEvicted"),
        ("o2", "WouldBeEvicted"),
    ]
    assert tested.care.n_would_go == 2


def test_figures() -> None:
    tested = Care(*offline_pods(3), gpu_pod("g", "node-0"), cores_per_gpu=5.0, memory_per_gpu=7.0 / 2**30)
    tested.measure(36.5)
    tested.step()
    registry = CollectorRegistry()
    registry.register(IdleCpuCollector(tested.live.scorer.tables, tested.world.filter, tested.care))
    text = generate_latest(registry).decode()
    for line in (
        "forecast_gpu_offline_pods 3.0",
        "forecast_gpu_offline_cpu_cores 6.0",
        "forecast_gpu_kept_cpu_cores 15.0",
        "forecast_gpu_kept_memory_bytes 21.0",
        "forecast_gpu_strained_nodes 1.0",
        "forecast_gpu_unrelieved_nodes 0.0",
        'forecast_gpu_offline_evictions_total{outcome="evicted"} 3.0',
        'forecast_gpu_offline_evictions_total{outcome="told"} 0.0',
    ):
        assert f"\n{line}\n" in text, line
    assert tested.world.cluster.measured_usage()[0, CPU] == 36.5
