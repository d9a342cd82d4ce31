"""A tide over a live cluster in memory: two nodes of eight cards, and a service that is forecast."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import lru_cache
from typing import Any

import numpy as np

from cluster.model_watch import LoadedModel
from cluster.state_source import StateSource
from forecast.model import PeakModel
from forecast.service_key import Owner
from kube.decoding.decoding import Kind
from kube.objects.objects import NodeInfo, PodInfo
from kube.session.session_calls import Session
from placement.cluster_events import ClusterEvent
from placement.devices.declared_devices import node_gpus, pod_gpus
from placement.filters.filter import ClusterView
from placement.index.index import PlacementIndex
from placement.node_rule_settings import DeviceOptions
from placement.pod_groups.pod_group import PodGroupInfo
from profiles.gpu.gpu_settings import TideOptions
from profiles.gpu.tide.gpu_holders import TideTable, pool_of
from profiles.gpu.tide.tide_controller import Tide
from profiles.gpu.tide.tide_filter import TideRoom
from profiles.gpu.tide.tide_metrics import TideMetrics
from profiles.gpu.tide.training_annotations import TIDE
from profiles.gpu.tide.workloads import WorkloadState
from scheduler.gangs.directory import GangDirectory
from scorer.scorer import Scorer
from testing.clusters.large_cluster import large_cluster
from testing.constants import with_constants
from testing.settable_clock import SettableClock
from tests.scorer.live_cluster import node, pod_of

GPU = "nvidia.com/gpu"
FIRST_DAY = date(2026, 5, 19)
JUST_NOW = 4e9
"""Made after any hour of a test: a pod that waits has not waited for long."""
CARDS = DeviceOptions()
OPTIONS = with_constants(
    TideOptions(), margin=0.0, spread=0.0, notice=0.0, every=30.0, grace=570.0, dwell=3600.0, dead_band=0.0
)
"""Ten minutes until GPUs are free."""


def gpu_node(name: str, gpus: int = 8, product: str = "A100", **changes: Any) -> NodeInfo:
    made = node(name)
    amounts = {**made.allocatable, GPU: float(gpus)}
    return replace(made, labels={"nvidia.com/gpu.product": product}, allocatable=amounts, capacity=amounts, **changes)


def inference(
    number: int, on: str = "", *, service: int = 0, gpus: float = 1.0, said: str = "inference", **changes: Any
) -> PodInfo:
    """A pod of a service that the model knows."""
    made = pod_of(None, f"rank-{service}-{number}", on, annotations={TIDE: said} if said else {})
    owner = Owner("ReplicaSet", f"service-{service:05d}-7d9f")
    made = replace(
        made, namespace="ns-000", owner=owner, owner_uid=f"rs-{service}", labels={"pod-template-hash": "7d9f"}
    )
    return replace(made, requests={**made.requests, GPU: gpus}, **{"created": JUST_NOW, **changes})


def trainer(
    number: int,
    on: str = "",
    *,
    of: str = "train",
    kind: str = "StatefulSet",
    gpus: float = 2.0,
    annotations: Mapping[str, str] | None = None,
    **changes: Any,
) -> PodInfo:
    """A pod of a training in the namespace lab. annotations: without their prefix."""
    said = {f"forecast-scheduler.io/{key}": value for key, value in (annotations or {}).items()}
    made = pod_of(None, f"{of}-{number}", on, annotations={TIDE: "training", **said})
    made = replace(made, namespace="lab", owner=Owner(kind, of), owner_uid=f"uid-{of}")
    return replace(made, requests={**made.requests, GPU: gpus}, **changes)


@lru_cache(maxsize=1)
def evening_model() -> PeakModel:
    """service-00000 has 4 pods until 18:00, and 10 from then until 23:00; the other service is not autoscaled."""
    known = large_cluster(2, 2, 2, first_day=FIRST_DAY).model
    autoscaled = np.zeros_like(known.autoscaled)
    autoscaled[0] = 1.0
    replicas = np.full_like(known.replicas_dated, 4.0)
    replicas[0, :, 36:46] = 10.0
    return replace(known, autoscaled=autoscaled, replicas_dated=replicas)


def moment(hour: float, day: int = 0) -> float:
    """Unix seconds so many hours into the model's first day."""
    return evening_model().calendar.midnight(FIRST_DAY).timestamp() + 3600 * hour + 86_400 * day


class Queue:
    """Counts."""

    def __init__(self) -> None:
        self.events: list[ClusterEvent] = []

    def happened(self, event: ClusterEvent) -> None:
        self.events.append(event)


class World:
    """At some hour of the model's first day."""

    def __init__(
        self,
        session: Session,
        hour: float = 12.0,
        *,
        pods: Sequence[PodInfo] = (),
        nodes: Sequence[NodeInfo] = (),
        groups: Sequence[PodGroupInfo] = (),
        without_model: bool = False,
        may_write: Callable[[], bool] = lambda: True,
        **options: Any,
    ) -> None:
        self.clock = SettableClock(moment(hour))
        source = StateSource(lambda: (True, self.clock.now, {}))
        self.scorer, self.options = Scorer(clock=self.clock, source=source), with_constants(OPTIONS, **options)
        self.queue, self.metrics = Queue(), TideMetrics()
        self.told: list[tuple[str, str, str]] = []
        self.table = self._table(groups)
        gpus = pod_gpus(CARDS)
        self.room = TideRoom(self.table, gpus, self.options, clock=self.clock)
        self.tide = Tide(
            self.scorer.tables,
            self.table,
            self.room,
            self.queue,
            session,
            self.options,
            gpus,
            metrics=self.metrics,
            tell=self._tell,
            may_write=may_write,
            clock=self.clock,
        )
        self.scorer.tables.replace(Kind.NODES, list(nodes) or [gpu_node("node-0"), gpu_node("node-1")])
        if not without_model:
            self.scorer.tables.install(LoadedModel("v1", evening_model(), {}))
        self.put(*pods)

    def _table(self, groups: Sequence[PodGroupInfo]) -> TideTable:
        with self.scorer.tables.reading() as cluster:
            gangs = GangDirectory(cluster.state, clock=self.clock)
            gangs.replace_groups(groups)
            self.scorer.tables.attach((), gangs)
            table = TideTable(
                cluster.state,
                pod_gpus=pod_gpus(CARDS),
                node_gpus=node_gpus(CARDS),
                pool_of=pool_of(CARDS, "", lambda node: True),
                gangs=gangs,
            )
            self.scorer.tables.attach((), table)
            index = PlacementIndex(cluster.state)
            cluster.listeners.append(index.apply)
            self.view = ClusterView(cluster, index, (table,))
        return table

    def _tell(self, state: WorkloadState, reason: str, note: str) -> None:
        self.told.append((str(state.key), reason, note))

    def put(self, *pods: PodInfo) -> None:
        for pod in pods:
            self.scorer.tables.put(Kind.PODS, pod)

    def delete(self, *pods: PodInfo) -> None:
        for pod in pods:
            self.scorer.tables.delete(Kind.PODS, pod)

    def at(self, hour: float, day: int = 0) -> None:
        """Time passes."""
        self.clock.now = moment(hour, day)
        self.scorer.tables.tick()
        self.scorer.tables.rebuild_if_needed()

    def later(self, seconds: float) -> None:
        self.at((self.clock.now + seconds - moment(0)) / 3600)
