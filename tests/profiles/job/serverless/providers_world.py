"""Small clusters with virtual nodes, and jobs that are placed in them as the scheduling cycle places them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cluster.assuming_cluster import AssumingCluster
from cluster.degradation import Level
from forecast.service_key import Owner
from kube.objects.objects import NodeInfo, PodInfo, PodPhase, Taint
from placement.filters.catalogue import standard_filters
from placement.filters.filter import ClusterView, Filter
from placement.index.index import PlacementIndex
from placement.policies.policy import Policy
from placement.virtual_node_settings import Provider, ServerlessOptions
from profiles.job.job_annotations import PLACE_ANNOTATION
from profiles.job.serverless.serverless_parts import serverless_plugins
from scheduler.cycle.placing import Placed, UnitPlacer
from scorer.options import ScorerOptions
from scorer.scoring_policy import scoring_policy
from testing.objects import pod_info
from testing.placement.views import node_named

OURS = "job-scheduler"
GIB = 2.0**30


def real_node(name: str = "real", *, cpu: float = 4.0, pods: float = 110.0) -> NodeInfo:
    return node_named(name, allocatable={"cpu": cpu, "memory": 1_000 * GIB, "pods": pods})


def provider_node(
    name: str, provider: str = "", *, labels: Mapping[str, str] | None = None, cpu: float = 10_000.0, ready: bool = True
) -> NodeInfo:
    """As virtual-kubelet makes them; '' = without the taint."""
    taints = (Taint("virtual-kubelet.io/provider", provider, "NoSchedule"),) if provider else ()
    node = node_named(
        name,
        labels={"type": "virtual-kubelet", **(labels or {})},
        taints=taints,
        allocatable={"cpu": cpu, "memory": 100_000 * GIB, "pods": 100_000.0},
    )
    return replace(node, ready=ready)


def job_pod(
    name: str, *, cpu: float = 1.0, memory: float = GIB, place: str = "", job: str = "job", **fields: Any
) -> PodInfo:
    """A pod of ours that waits."""
    pod = pod_info(
        name,
        annotations={PLACE_ANNOTATION: place} if place else {},
        owner=Owner("Job", job),
        owner_uid=f"uid-of-{job}",
        requests={kind: amount for kind, amount in (("cpu", cpu), ("memory", memory)) if amount},
        scheduler_name=OURS,
    )
    return replace(pod, **fields)


class World:
    """Tables that follow a cluster, with the plugins as a process has them; `now` is what everybody takes for it."""

    def __init__(self, nodes: Sequence[NodeInfo], *providers: Provider, **options: Any) -> None:
        self.now = 1_000.0
        self.options = ServerlessOptions(providers=providers, **options)
        self.cluster = AssumingCluster(ScorerOptions(), now=self.now)
        self.view = ClusterView(self.cluster, PlacementIndex(self.cluster.state))
        made = serverless_plugins(
            self.cluster.state,
            self.options,
            is_ours=lambda pod: pod.scheduler_name == OURS,
            is_assumed=self.cluster.assumed.__contains__,
            clock=lambda: self.now,
        )
        self.tables, self.serverless, self.failed_nodes = made.tables, made.serverless, made.failed_nodes
        self.cluster.listeners += [self.view.index.apply, self.tables.apply, self.failed_nodes.apply]
        self.told = 0
        self.tables.on_room.append(self._tell)
        instead = {made.toleration.name: made.toleration}
        self.filters: tuple[Filter, ...] = (
            *(instead.get(one.name, one) for one in standard_filters()),
            self.serverless,
        )
        for node in nodes:
            self.put(node)

    def _tell(self) -> None:
        self.told += 1

    def put(self, *objects: NodeInfo | PodInfo) -> None:
        for one in objects:
            self.cluster.put(one)

    def place(self, pods: Sequence[PodInfo], *, one_by_one: bool = False) -> list[str]:
        """Nodes of those that got one, the first ones; they are assumed there."""
        self.cluster.now = self.now
        return [self.view.state.names[row] for row in self._placed(pods, one_by_one).rows]

    def _placed(self, pods: Sequence[PodInfo], one_by_one: bool) -> Placed:
        for pod in pods:
            self.cluster.put(pod)
        placer = UnitPlacer(self.view, self.cluster, Level.REQUESTS, until=self.now + 1e9, one_by_one=one_by_one)
        placer.preferences = (self.failed_nodes, self.serverless)
        return placer.place(pods, self.filters, Policy(scoring_policy(ScorerOptions())))

    def run(self, pod: PodInfo, node: str, **fields: Any) -> PodInfo:
        """The watch says that it is bound there, and how it is."""
        bound = replace(pod, node=node, **fields)
        self.cluster.now = self.now
        self.cluster.put_pod(bound)
        return bound

    def started(self, pod: PodInfo, node: str) -> PodInfo:
        return self.run(pod, node, phase=PodPhase.RUNNING, started=self.now)

    def rejected(self, pod: PodInfo, node: str, *, for_good: bool = True) -> PodInfo:
        """As virtual-kubelet says it of a pod that is never restarted, or of another one."""
        phase = PodPhase.FAILED if for_good else PodPhase.PENDING
        return self.run(pod, node, phase=phase, status_reason="ProviderFailed")

    def gone(self, pod: PodInfo) -> None:
        self.cluster.delete_pod(pod.uid)

    def reasons(self, pod: PodInfo) -> dict[str, str]:
        """Why the plugin rejects which nodes; each for one reason."""
        found: dict[str, str] = {}
        for rejection in self.serverless.filter(pod, self.view):
            for row in (rejection.nodes & self.view.state.alive).nonzero()[0].tolist():
                assert self.view.state.names[row] not in found
                found[self.view.state.names[row]] = rejection.reason
        return found

    def use(self, provider: str) -> tuple[int, float, float, int]:
        """Pods, cores, GiB, starting."""
        (use,) = (one for one in self.tables.uses if one.provider.name == provider)
        return use.pods, use.cpu / 1000, use.memory / GIB, len(use.starting)
