"""The cluster of two_peaks.py on a real API server: Deployments with real controllers, pods that get ready, budgets.

with control_plane() as plane, LiveTwoPeaks(plane, world) as live:
    with live.process("rebalance", directory, ...) as rebalancer: ...
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from testing.processes.scorer_process import ROOT, ScorerProcess
from testing.processes.webhook_process import Api, Refused, manifests
from testing.rebalancing.two_peaks import CORES, N_NODES, NAMESPACE, REQUEST_CORES, Seat, TwoPeaks, node_name
from testing.servers.cluster_objects import ClusterWriter, Manifest, node
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.servers.controller_manager.controller_manager import ControllerManager
from testing.servers.shipped_extender import shipped_extender
from testing.servers.workload_kubelets import WorkloadKubelets, is_ready
from testing.waiting import eventually

PLANS: Final = "/apis/forecast-scheduler.io/v1alpha1/rebalanceplans"
OUR_NAMESPACE: Final = "forecast-scheduler"
"""In which the Leases of our processes are."""


def deployment(
    app: str,
    replicas: int,
    requests: Mapping[str, str],
    *,
    namespace: str = "default",
    annotations: Mapping[str, str] | None = None,
    scheduler_name: str = "default-scheduler",
) -> Manifest:
    """Return a Deployment of pods with one container and the label app."""
    container = {"name": "main", "image": "app:1", "resources": {"requests": dict(requests)}}
    template = {
        "metadata": {"labels": {"app": app}},
        "spec": {"schedulerName": scheduler_name, "containers": [container]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": app, "namespace": namespace, "annotations": dict(annotations or {})},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": app}}, "template": template},
    }


def budget(app: str, least: int, *, namespace: str = "default") -> Manifest:
    """Return a PodDisruptionBudget of the pods with the label app."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": namespace},
        "spec": {"minAvailable": least, "selector": {"matchLabels": {"app": app}}},
    }


class LiveTwoPeaks:
    """Context manager; on entry all pods are ready where `world` says, and nothing yet places new ones.

    scheduler_name : of all pods
    node_labels    : of all nodes
    """

    def __init__(
        self,
        plane: ControlPlane,
        world: TwoPeaks,
        *,
        scheduler_name: str = "default-scheduler",
        node_labels: Mapping[str, str] | None = None,
    ) -> None:
        self.plane, self.world = plane, world
        self._scheduler_name, self._node_labels = scheduler_name, dict(node_labels or {})
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.api = stack.enter_context(Api(self.plane))
            self.writer = stack.enter_context(ClusterWriter(self.plane, in_flight=8, patience_seconds=30))
            self.kubelets = stack.enter_context(WorkloadKubelets(self.plane))
            self.api.install_crds()
            for definition in manifests(ROOT / "deploy" / "crds" / "rebalanceplans"):
                self.api.create(definition)
            assert eventually(self._plans_are_served)
            stack.enter_context(ControllerManager(self.plane))
            self._furnish()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, traceback)

    def _plans_are_served(self) -> bool:
        try:
            return bool(self.api.request("GET", PLANS))
        except Refused:
            return False

    def _furnish(self) -> None:
        for name in (NAMESPACE, OUR_NAMESPACE):
            self.writer.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        self.writer.create_many(
            node(node_name(number), cpu=str(CORES), reserved_cpu="0m", labels=self._node_labels)
            for number in range(N_NODES)
        )
        requests = {"cpu": str(REQUEST_CORES), "memory": "1Gi"}
        self.writer.create_many(
            deployment(service, self.world.replicas, requests, namespace=NAMESPACE, scheduler_name=self._scheduler_name)
            for service in self.world.services
        )
        wanted = self.world.nodes_at_first()
        n_pods = sum(map(len, wanted.values()))
        assert eventually(lambda: len(self.pods()) == n_pods), len(self.pods())
        of_service: dict[str, list[str]] = defaultdict(list)
        for one in self.pods():
            of_service[one["metadata"]["labels"]["app"]].append(one["metadata"]["name"])
        places = [
            place for service, names in of_service.items() for place in zip(sorted(names), wanted[service], strict=True)
        ]
        self.writer.in_parallel(lambda place: self.writer.bind(*place, namespace=NAMESPACE), places)
        self.writer.create_many(budget(service, self.least, namespace=NAMESPACE) for service in self.world.services)
        assert eventually(lambda: all(map(is_ready, self.pods())))
        assert eventually(self._budgets_are_counted)
        self.kubelets.count_from_now()

    def _budgets_are_counted(self) -> bool:
        found = self.writer.list_all("poddisruptionbudgets")
        return all(one.get("status", {}).get("currentHealthy") == self.world.replicas for one in found)

    @property
    def least(self) -> int:
        """Return how many pods of each service its budget keeps."""
        return self.world.replicas - 1

    def pods(self) -> list[Manifest]:
        """Return the pods of the services, those that go left out."""
        return [
            one
            for one in self.writer.list_all("pods")
            if one["metadata"]["namespace"] == NAMESPACE and "deletionTimestamp" not in one["metadata"]
        ]

    def seats(self) -> list[Seat]:
        """Return the pods that have a node."""
        return [
            Seat(one["metadata"]["labels"]["app"], one["metadata"]["name"], one["spec"]["nodeName"])
            for one in self.pods()
            if one["spec"].get("nodeName")
        ]

    def is_settled(self) -> bool:
        """Return whether all pods that are wanted are ready."""
        pods = self.pods()
        return len(pods) == len(self.world.services) * self.world.replicas and all(map(is_ready, pods))

    def plans(self) -> list[Manifest]:
        """Return the RebalancePlans, oldest first."""
        return sorted(self.api.request("GET", PLANS)["items"], key=lambda one: str(one["spec"]["createdAt"]))

    def violations(self) -> dict[str, int]:
        """Return the services of which fewer pods than their budget keeps were ready at some time, and how many."""
        return {app: n for app, n in self.kubelets.fewest.items() if n < self.least}

    def process(
        self,
        command: str,
        directory: Path,
        *arguments: str | Path,
        settings: Mapping[str, Any],
        environment: Mapping[str, str] | None = None,
    ) -> ScorerProcess:
        """Return a command of ours on this cluster, to be entered. settings: beyond those that make it quick."""
        quick = {"usage_every": "1s", "model_every": "1s", "overview_every": "1s"}
        return ScorerProcess(
            directory,
            "--kubeconfig",
            self.plane.kubeconfig,
            *arguments,
            settings={"scorer": quick, **settings},
            command=command,
            environment=environment,
        )


@contextmanager
def by_extender(live: LiveTwoPeaks, directory: Path, models: Path) -> Iterator[ScorerProcess]:
    """kube-scheduler with the shipped configuration of our extender."""
    settings: dict[str, Any] = {"extender": {"deadline": "9s"}}
    with (
        live.process("extender", directory / "extender", "--models", models, settings=settings) as process,
        KubeScheduler(live.plane, [shipped_extender(process.url, httpTimeout="10s")]),
    ):
        yield process
