"""A tide over a live cluster in memory: two nodes of eight cards, and a service that is forecast."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Any

import numpy as np

from forecast.model import PeakModel
from forecast.service_key import Owner
from kube.client.api_answer import NO_ANSWER, Answer, answered
from kube.decoding.decoding import Kind
from kube.objects.objects import NodeInfo, PodInfo
from kube.session.request_retries import Session
from placement.cluster_events import ClusterEvent
from placement.devices.options import DeviceOptions
from placement.filters.filter import ClusterView
from placement.index.index import PlacementIndex
from placement.pod_groups.pod_group import PodGroupInfo
from scheduler.gangs.directory import GangDirectory
from scheduler.profiles.gpu.tide.cards import node_gpus, pod_gpus, pool_of
from scheduler.profiles.gpu.tide.controller import Tide
from scheduler.profiles.gpu.tide.demand import Demand
from scheduler.profiles.gpu.tide.gpu_holders import TideTable
from scheduler.profiles.gpu.tide.metrics import TideMetrics
from scheduler.profiles.gpu.tide.options import TideOptions
from scheduler.profiles.gpu.tide.tide_filter import TideRoom
from scheduler.profiles.gpu.tide.tide_plan import Training
from scheduler.profiles.gpu.tide.training_annotations import TIDE
from scheduler.profiles.gpu.tide.workloads import WorkloadState
from scorer.model_watch import LoadedModel
from scorer.scorer import Scorer
from testing.clusters.large_cluster import large_cluster
from testing.settable_clock import SettableClock
from tests.scorer.live_cluster import node, pod_of

Objects = dict[str, Any]

_PLURALS = {"Deployment": "deployments", "StatefulSet": "statefulsets", "ReplicaSet": "replicasets", "Job": "jobs"}


def workload(
    kind: str,
    name: str,
    replicas: int,
    *,
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    gpus: int = 2,
    **spec: Any,
) -> Objects:
    """annotations: without their prefix."""
    said = {f"forecast-scheduler.io/{key}": value for key, value in (annotations or {}).items()}
    container = {"name": "main", "image": "app:1", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
    template = {
        "metadata": {"labels": {"app": name}, "annotations": {TIDE: "training"}},
        "spec": {"containers": [container]},
    }
    number = {"parallelism": replicas} if kind == "Job" else {"replicas": replicas}
    return {
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": "lab",
            "uid": f"uid-{name}",
            "generation": 1,
            "labels": labels or {},
            "annotations": said,
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {**number, "template": template, **spec},
    }


class FakeApi:
    """Implements Session. before: called with method and path before every request, may change objects or answer."""

    def __init__(self, *objects: Objects, groups: dict[str, list[Objects]] | None = None) -> None:
        self.objects: dict[str, Objects] = {}
        self.groups = groups or {}
        self.written: list[tuple[str, Objects]] = []
        self.before: Callable[[str, str], Answer | None] = lambda method, path: None
        self._version = 0
        for one in objects:
            self.put(one)

    def put(self, one: Objects, *, group_version: str = "", plural: str = "") -> None:
        """Add an object, or put another in its place."""
        root = group_version or ("batch/v1" if one["kind"] == "Job" else "apps/v1")
        plural = plural or _PLURALS[one["kind"]]
        self.objects[f"/apis/{root}/namespaces/lab/{plural}/{one['metadata']['name']}"] = one
        self._touch(one)

    def spec(self, name: str) -> Objects:
        return dict(self.named(name)["spec"])

    def named(self, name: str) -> Objects:
        return next(one for one in self.objects.values() if one["metadata"]["name"] == name)

    def change(self, name: str, **spec: Any) -> None:
        """Change the spec as another controller does."""
        one = self.named(name)
        self._set_spec(one, spec)
        self._touch(one)

    def submit(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Run the coroutine now and return what came of it."""
        future: Future[Any] = Future()
        try:
            future.set_result(asyncio.run(work))
        except BaseException as error:
            future.set_exception(error)
        return future

    async def request(
        self, method: str, path: str, body: bytes | None, *, content_type: str = "", seconds: float
    ) -> Answer:
        said = self.before(method, path)
        if said is not None:
            return said
        plain, _, query = path.partition("?")
        if method == "GET":
            return self._get(plain, query)
        assert method == "PATCH" and body is not None and content_type == "application/merge-patch+json"
        return self._patch(plain, json.loads(body))

    def _get(self, path: str, query: str) -> Answer:
        if path in ("/apis", *(f"/apis/{version}" for version in self.groups)):
            return _ok(self._discovery(path))
        found = self.objects.get(path.removesuffix("/scale"))
        if found is not None:
            return _ok(_scale(found) if path.endswith("/scale") else found)
        if "labelSelector" in query:
            root, plural = path.rsplit("/", 1)
            items = [
                one
                for at, one in self.objects.items()
                if at.startswith(f"{root}/namespaces/")
                and f"/{plural}/" in at
                and one["metadata"]["labels"].get(TIDE) == "training"
            ]
            return _ok({"kind": "List", "items": items})
        return answered(404, json.dumps({"message": f"{path} not found"}).encode())

    def _discovery(self, path: str) -> Objects:
        if path == "/apis":
            versions = [{"preferredVersion": {"groupVersion": version}} for version in self.groups]
            return {"kind": "APIGroupList", "groups": versions}
        return {"kind": "APIResourceList", "resources": self.groups[path.removeprefix("/apis/")]}

    def _patch(self, path: str, patch: Objects) -> Answer:
        found = self.objects.get(path.removesuffix("/scale"))
        if found is None:
            return answered(404, b'{"message": "not found"}')
        version = patch["metadata"].pop("resourceVersion")
        if version != found["metadata"]["resourceVersion"]:
            return answered(409, b'{"message": "the object has been modified"}')
        self.written.append((path, patch))
        for part in ("annotations", "labels"):
            found["metadata"][part] |= patch["metadata"].get(part, {})
        self._set_spec(found, patch.get("spec", {}))
        self._touch(found)
        return _ok(_scale(found) if path.endswith("/scale") else found)

    def _set_spec(self, one: Objects, spec: Objects) -> None:
        """Each change of what is asked for is a generation."""
        before = dict(one["spec"])
        one["spec"] |= spec
        one["metadata"]["generation"] += one["spec"] != before

    def _touch(self, one: Objects) -> None:
        self._version += 1
        one["metadata"]["resourceVersion"] = str(self._version)


def no_answer() -> Answer:
    return Answer(NO_ANSWER, text="no answer: the connection was lost")


def _scale(one: Objects) -> Objects:
    replicas = one["spec"].get("replicas", 1)
    spec = {"replicas": replicas} if replicas else {}  # as Go writes it
    return {"kind": "Scale", "metadata": one["metadata"], "spec": spec}


def _ok(body: Objects) -> Answer:
    return Answer(200, json.dumps(body).encode())


NOON = datetime(2026, 5, 19, 12, tzinfo=UTC).timestamp()
SLOT = 1800.0
PLAIN = TideOptions(margin=0.0, spread=0.0, notice=0.0, grace=600.0, dwell=3600.0, dead_band=0.0)


def training(key: str = "lab/StatefulSet/train", **changes: Any) -> Training:
    """Four replicas of two GPUs, from one to eight, ten minutes to drain."""
    made: dict[str, Any] = {"pool": 0, "gpus": 2.0, "replicas": 4, "least": 1, "most": 8, "lead": 600.0}
    return Training(key, **{**made, **changes})


def demand(
    need: Sequence[float] | Sequence[Sequence[float]],
    *,
    capacity: float | Sequence[float] = 16.0,
    waiting: float = 0.0,
    forecast: bool = True,
    now: float = NOON,
) -> Demand:
    """need: GPUs by half hours from now on, of one pool or of several; all of one service, shop/Deployment/rank."""
    of_pools = np.atleast_2d(np.array(need, dtype=np.float64))
    n_pools = len(of_pools)
    return Demand(
        starts=now + SLOT * np.arange(of_pools.shape[1] + 1),
        capacity=np.broadcast_to(np.array(capacity, dtype=np.float64), (n_pools,)),
        need=of_pools,
        expected=of_pools,
        waiting=np.full(n_pools, waiting),
        waits=("shop/Deployment/rank" if waiting else "",) * n_pools,
        services=("shop/Deployment/rank",),
        by_service=of_pools[None],
        unmoved=np.zeros(n_pools),
        forecast=forecast,
    )


GPU = "nvidia.com/gpu"
FIRST_DAY = date(2026, 5, 19)
JUST_NOW = 4e9
"""Made after any hour of a test: a pod that waits has not waited for long."""
CARDS = DeviceOptions()
OPTIONS = TideOptions(margin=0.0, spread=0.0, notice=0.0, every=30.0, grace=570.0, dwell=3600.0, dead_band=0.0)
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
        self.scorer, self.options = Scorer(clock=self.clock), OPTIONS.replace(**options)
        self.scorer.tables.follow(lambda: (True, self.clock.now, {}))
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
