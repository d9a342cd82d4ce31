"""Random clusters with a model, on which like pods find nodes that differ in everything that counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import numpy as np

from cluster.model_watch import LoadedModel
from cluster.state_source import StateSource
from forecast.service_key import Owner, ServiceKey
from kube.decoding.decoding import Kind
from kube.objects.constraints import (
    UNCONSTRAINED,
    LabelSelector,
    NodeSelectorTerm,
    Operator,
    PodAffinityTerm,
    PodConstraints,
    PreferredNodeTerm,
    PreferredPodTerm,
    Requirement,
    TopologySpreadConstraint,
)
from kube.objects.objects import NodeImage, NodeInfo, PodInfo, PodPhase, Taint
from placement.filters.catalogue import standard_filters
from placement.filters.domain import Domain
from placement.filters.filter import ClusterView
from placement.index.index import INDEXED_KINDS, PlacementIndex
from placement.policies.policy import OnePolicyForAll, Policy
from scheduler.binding.binding_plugins import BindingPlugins
from scheduler.cycle.decisions import NodeChoice
from scheduler.cycle.like_pods import Likeness
from scheduler.cycle.placing import UnitPlacer
from scheduler.profile import SchedulingProfile
from scorer.options import ScorerOptions
from scorer.scorer import Scorer
from scorer.scoring_policy import scoring_policy
from testing.clusters.large_cluster import large_cluster

NOW = datetime(2026, 3, 4, 4, 10, tzinfo=UTC).timestamp()

FILTERS = (Domain(""), *standard_filters())


@dataclass(frozen=True)
class VariedCluster:
    """pods: those that wait, in the order in which they are placed; choices: by UID, of those that were placed."""

    scorer: Scorer
    view: ClusterView
    policy: Policy
    pods: list[PodInfo]
    choices: dict[str, NodeChoice] = field(default_factory=dict)

    def runs(self) -> Iterator[slice]:
        """Of pods that go together; to be asked for while the lock is held."""
        names = {pod.scheduler_name for pod in self.pods}
        bindings = BindingPlugins(bind=())
        profiles = {name: SchedulingProfile("any", name, OnePolicyForAll(self.policy), bindings) for name in names}
        return Likeness(self.view, profiles).runs(self.pods)

    def place(self, *, one_by_one: bool, most: int = 64) -> list[str]:
        """Place all pods; the node of each, '' = none."""
        nodes: dict[str, str] = {}
        with self.scorer.tables.reading() as cluster:
            for run in self.runs():
                for start in range(run.start, run.stop, most):
                    level, _ = self.scorer.tables.level()
                    some = self.pods[start : min(start + most, run.stop)]
                    placer = UnitPlacer(
                        self.view,
                        cluster,
                        level,
                        until=NOW + 100,
                        one_by_one=one_by_one,
                    )
                    placed = placer.place(some, FILTERS, self.policy)
                    self.choices.update(placer.choices)
                    names = [self.view.state.names[row] for row in placed.rows]
                    nodes |= dict(zip([pod.uid for pod in some], names, strict=False))
        return [nodes.get(pod.uid, "") for pod in self.pods]


def varied_cluster(
    seed: int,
    *,
    n_nodes: int = 40,
    n_pods: int = 150,
    with_model: bool = True,
    run_of: Callable[[PodInfo, ServiceKey], float | None] | None = None,
) -> VariedCluster:
    """The same seed makes the same cluster. run_of: of TrackedCluster; None = as it is."""
    rng = np.random.default_rng(seed)
    n_services = 6
    made = large_cluster(n_nodes, 6 * n_nodes, n_services, first_day=datetime.fromtimestamp(NOW, UTC).date(), seed=seed)
    scorer = Scorer(ScorerOptions(), clock=lambda: NOW, source=StateSource(lambda: (True, NOW, {})))
    with scorer.tables.reading() as cluster:
        view = ClusterView(cluster, PlacementIndex(cluster.state))
        if run_of is not None:
            cluster.run_of = run_of
        scorer.tables.attach(INDEXED_KINDS, view.index)
    scorer.tables.replace(Kind.NODES, [_varied(node, rng) for node in made.nodes])
    # The cluster is anything from a third to nearly full by requests.
    request = float(rng.choice([0.2, 0.5, 1.1]))
    owners = [f"owner-{service}" for service in range(n_services)]
    pods = [
        replace(
            pod,
            owner_uid=owners[i % n_services],
            requests={"cpu": request, "memory": request * 2.0**31},
            constraints=_keeping_jobs_away(i % 3) if i % 40 == 0 else pod.constraints,
        )
        for i, pod in enumerate(made.pods)
    ]
    scorer.tables.replace(Kind.PODS, pods)
    if with_model:
        scorer.tables.install(LoadedModel("1", made.model, {}))
    waiting: list[PodInfo] = []
    while len(waiting) < n_pods:
        waiting += _like(pods[int(rng.integers(n_services))], int(rng.integers(1, 60)), len(waiting), rng)
    for pod in waiting:
        scorer.tables.put(Kind.PODS, pod)
    return VariedCluster(scorer, view, Policy(scoring_policy(scorer.options)), waiting)


def _keeping_jobs_away(number: int) -> PodConstraints:
    """Of a pod that sits: nothing of some Jobs on its node."""
    jobs = LabelSelector((Requirement("job-name", Operator.IN, (f"job-{number}",)),))
    return replace(UNCONSTRAINED, anti_affinity=(PodAffinityTerm(jobs, "kubernetes.io/hostname", frozenset({"shop"})),))


def _varied(node: NodeInfo, rng: np.random.Generator) -> NodeInfo:
    labels = dict(node.labels) | {"topology.kubernetes.io/zone": f"zone-{rng.integers(3)}"}
    if rng.random() < 0.1:
        del labels["topology.kubernetes.io/zone"]
    if rng.random() < 0.4:
        labels["disk"] = "ssd"
    taints: tuple[Taint, ...] = ()
    if rng.random() < 0.3:
        taints = (Taint("slow", "", "PreferNoSchedule"),)
    elif rng.random() < 0.1:
        taints = (Taint("gone", "", "NoSchedule"),)
    images = (NodeImage(("registry.example/app:1",), 800 * 2**20),) if rng.random() < 0.3 else ()
    memory = node.allocatable["memory"] * float(rng.choice([0.05, 0.5, 1.0]))
    allocatable = dict(node.allocatable) | {"memory": memory, "pods": float(rng.integers(8, 30))}
    return replace(node, labels=labels, taints=taints, images=images, capacity=allocatable, allocatable=allocatable)


def _like(base: PodInfo, count: int, first: int, rng: np.random.Generator) -> Sequence[PodInfo]:
    """Pods of one service that wait, all alike, and different in some way from those before."""
    said = base.constraints
    if rng.random() < 0.4:
        ssd = NodeSelectorTerm((Requirement("disk", Operator.IN, ("ssd",)),))
        said = replace(said, preferred_node_terms=(PreferredNodeTerm(int(rng.integers(1, 101)), ssd),))
    kind = rng.random()
    if kind < 0.2:
        own = LabelSelector((Requirement("app", Operator.IN, (base.labels["app"],)),))
        zones = TopologySpreadConstraint(1, "topology.kubernetes.io/zone", hard=bool(rng.random() < 0.3), selector=own)
        said = replace(said, spread=(zones,))
    elif kind < 0.3:
        own = LabelSelector((Requirement("app", Operator.IN, (base.labels["app"],)),))
        term = PodAffinityTerm(own, "kubernetes.io/hostname", frozenset({base.namespace}))
        said = replace(said, preferred_anti_affinity=(PreferredPodTerm(50, term),))
    requests = {"cpu": float(rng.choice([0.1, 0.25, 2.0])), "memory": float(rng.choice([0.1, 0.5, 3.0])) * 2.0**30}
    like = replace(
        base,
        node="",
        phase=PodPhase.PENDING,
        started=None,
        created=NOW,
        owner_uid="" if rng.random() < 0.2 else base.owner_uid,
        requests=requests,
        nonzero_requests=(requests["cpu"], requests["memory"]),
        constraints=said,
        images=("registry.example/app:1",) if rng.random() < 0.5 else (),
    )
    pods = [replace(like, uid=f"new-{first + i}", name=f"new-{first + i}") for i in range(count)]
    return pods if rng.random() < 0.7 else [_of_a_job(pod, int(rng.integers(5))) for pod in pods]


def _of_a_job(pod: PodInfo, number: int) -> PodInfo:
    """One of a Job of its own, as all runs of a CronJob are."""
    name = f"job-{number}"
    labels = dict(pod.labels) | {"job-name": name, "batch.kubernetes.io/job-completion-index": pod.uid}
    return replace(pod, namespace="shop", labels=labels, owner=Owner("Job", name), owner_uid=f"uid-of-{name}")
