"""Who has to go from GPU nodes, and when: by what is foreseen, by what is measured, and no more than needed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest

from cluster.runs.expected import EXPECTED_RUN_ANNOTATION
from forecast.resources import CPU
from kube.client.eviction import Evicted, Eviction
from kube.objects.objects import PodInfo
from profiles.gpu.gpu_metrics import IdleCpuCollector
from profiles.gpu.idle_cpu.offline_eviction import OfflineEviction
from tests.profiles.gpu.idle_cpu.gpu_nodes import PROFILE, GpuNodes, gpu_node, gpu_pod, offline_pod
from tests.scorer.live_cluster import N_RESOURCES, pod_of

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
            ceiling=world.colocation.options.ceiling,
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
    options = {"ceiling": 0.5, "slack": 0.0, **options}
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


def test_without_evictions_it_tells_once_who_would_go() -> None:
    tested = Care(*offline_pods(3), evict=False)
    tested.measure(35.0)
    assert tested.step() == [] and tested.step() == [] and tested.care.n_strained == 1
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
        'forecast_gpu_offline_evictions_total{outcome="reported"} 0.0',
    ):
        assert f"\n{line}\n" in text, line
    assert tested.world.cluster.measured_usage()[0, CPU] == 36.5
