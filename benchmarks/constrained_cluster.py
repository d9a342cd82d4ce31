"""A large cluster whose pods say where they want to be: labels, taints, neighbours, volumes; all made up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from cluster.predicted.node_capacity import KnownCapacities
from cluster.predicted.pod_profiles import Profiles
from cluster.tables_anew import predict
from cluster.tracking import TrackedCluster
from kube.decoding.decoding import Kind
from kube.objects.constraints import (
    LabelSelector,
    NodeSelectorTerm,
    Operator,
    PodAffinityTerm,
    PodConstraints,
    PodVolume,
    PreferredNodeTerm,
    PreferredPodTerm,
    Requirement,
    Toleration,
    TopologySpreadConstraint,
)
from kube.objects.objects import NodeImage, NodeInfo, PodInfo, PodPhase, Taint
from kube.objects.storage_objects import (
    BindingMode,
    ClaimReference,
    CsiNodeInfo,
    StorageClassInfo,
    VolumeClaimInfo,
    VolumeInfo,
    VolumeSource,
)
from placement.filters.filter import ClusterView
from placement.index.index import PlacementIndex
from scorer.options import ScorerOptions
from testing.clusters.large_cluster import GIB, LargeCluster, large_cluster
from testing.placement.per_node import OneNode

KINDS: Final = ("plain", "nodes", "spread", "pods", "volumes")
"""Of new pods: what their constraints are about."""

_HOSTNAME, _ZONE, _RACK, _TYPE = (
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "example.com/rack",
    "node.kubernetes.io/instance-type",
)
_N_RACKS, _N_TYPES, _N_ZONES = 200, 40, 3
_DRIVER, _FAST, _LATER = "disk.csi.example", "fast", "when-needed"


@dataclass(slots=True)
class ConstrainedCluster:
    """view: in which the pods that sit are; new pods come from `pod` and go in by `bind`."""

    made: LargeCluster
    view: ClusterView

    def pod(self, kind: str, number: int) -> PodInfo:
        """The `number`-th new pod of a kind, of a service of its own, with constraints that no other pod has."""
        offset = number * len(KINDS) + KINDS.index(kind)
        n_services = len(self.made.model.services)
        like, other = self.made.pods[offset], self.made.pods[n_services // 2 + offset]
        pod = replace(
            like,
            uid=f"new-{kind}-{number}",
            name=f"{like.name}-new",
            node="",
            phase=PodPhase.PENDING,
            images=(f"registry.example/app-{offset % 60}:1",),
        )
        match kind:
            case "nodes":
                return replace(pod, constraints=_about_nodes(number))
            case "spread":
                return replace(pod, constraints=_about_spread(pod, number))
            case "pods":
                return replace(pod, constraints=_about_pods(pod, other, number))
            case "volumes":
                claims = (f"data-{number}", f"later-{number}")
                for one in (_volume(number, claims[0], pod.namespace), *_claims(pod.namespace, claims, number)):
                    self.view.index.put(Kind.VOLUMES if isinstance(one, VolumeInfo) else Kind.CLAIMS, one)
                return replace(pod, volumes=tuple(map(PodVolume, claims)))
            case _:
                return pod

    def bind(self, pod: PodInfo, row: int) -> None:
        """The pod sits on the node of a row from now on."""
        bound = replace(pod, node=self.view.state.names[row])
        self.view.cluster.apply(self.view.state.put_pod(bound))

    def on_nodes(self) -> list[OneNode]:
        """Nodes and what sits on them, by row; all rows are taken."""
        state = self.view.state
        pods: list[list[PodInfo]] = [[] for _ in range(state.n_rows)]
        for uid, seat in state.seat_of.items():
            pods[seat.node].append(state.pods[uid])
        return [OneNode(node, on) for node, on in zip(state.nodes, pods, strict=True) if node is not None]


def constrained_cluster(n_nodes: int, n_pods: int, n_services: int, now: datetime) -> ConstrainedCluster:
    """In tables, seen through its model."""
    made = large_cluster(n_nodes, n_pods, n_services, first_day=now.date())
    cluster = TrackedCluster(ScorerOptions(), now=now.timestamp())
    cluster.apply(cluster.state.replace(Kind.NODES, [_node(i, one) for i, one in enumerate(made.nodes)]))
    cluster.apply(cluster.state.replace(Kind.PODS, list(_sitting(made, n_services))))
    index = PlacementIndex(cluster.state)
    index.replace(Kind.CSI_NODES, [CsiNodeInfo(one.name, {_DRIVER: 40}) for one in made.nodes])
    classes = {_FAST: BindingMode.IMMEDIATE, _LATER: BindingMode.WAIT_FOR_FIRST_CONSUMER}
    index.replace(Kind.STORAGE_CLASSES, [StorageClassInfo(name, _DRIVER, mode) for name, mode in classes.items()])
    stored = [(i, one.namespace) for i, one in enumerate(made.pods) if _has_volume(i)]
    index.replace(Kind.VOLUMES, [_volume(i, f"sits-{i}", namespace) for i, namespace in stored])
    index.replace(Kind.CLAIMS, [_bound_claim(i, f"sits-{i}", namespace) for i, namespace in stored])
    cluster.listeners.append(index.apply)
    capacities = KnownCapacities(made.model)
    profiles = Profiles(made.model)
    cluster.install(predict(profiles, capacities, cluster.snapshot(profiles), now), capacities)
    return ConstrainedCluster(made, ClusterView(cluster, index))


def _node(i: int, one: NodeInfo) -> NodeInfo:
    """In one of three zones and 200 racks; every tenth is tainted, every 50th cordoned."""
    labels = {
        _HOSTNAME: one.name,
        _ZONE: f"zone-{i % _N_ZONES}",
        _RACK: f"rack-{i % _N_RACKS}",
        _TYPE: f"type-{i % _N_TYPES}",
    }
    taints: tuple[Taint, ...] = ()
    if i % 10 == 9:
        taints = (Taint("dedicated", f"team-{i % 7}", "NoSchedule"),)
    elif i % 20 == 3:
        taints = (Taint("slow", "", "PreferNoSchedule"),)
    images = tuple(NodeImage((f"registry.example/app-{(i + k) % 60}:1",), 200 * 2**20) for k in range(20))
    return replace(one, labels=labels, taints=taints, unschedulable=i % 50 == 49, images=images)


def _sitting(made: LargeCluster, n_services: int) -> Iterator[PodInfo]:
    for i, pod in enumerate(made.pods):
        service = i % n_services
        if service % 5 == 0:
            pod = replace(pod, constraints=PodConstraints(anti_affinity=(_near(pod, _HOSTNAME),)))
        elif service % 5 == 1:
            near = PreferredPodTerm(10, _near(made.pods[(service + 7) % n_services], _ZONE))
            pod = replace(pod, constraints=PodConstraints(preferred_affinity=(near,)))
        yield replace(pod, volumes=(PodVolume(f"sits-{i}"),)) if _has_volume(i) else pod


def _has_volume(i: int) -> bool:
    return i % 5 == 2


def _about_nodes(number: int) -> PodConstraints:
    types = tuple(f"type-{(number + k) % _N_TYPES}" for k in range(10))
    racks = (f"rack-{number % _N_RACKS}", f"rack-{(7 * number + 1) % _N_RACKS}")
    avoided = Requirement(_RACK, Operator.NOT_IN, racks)
    preferred = NodeSelectorTerm((Requirement(_RACK, Operator.IN, (f"rack-{(number + 3) % _N_RACKS}",)),))
    return PodConstraints(
        required_node_terms=(NodeSelectorTerm((Requirement(_TYPE, Operator.IN, types), avoided)),),
        preferred_node_terms=(PreferredNodeTerm(50, preferred),),
        tolerations=(
            Toleration("dedicated", "Equal", f"team-{number % 7}", "NoSchedule"),
            Toleration(f"odd-{number}", "Exists", "", ""),
        ),
    )


def _about_spread(pod: PodInfo, number: int) -> PodConstraints:
    own = LabelSelector((Requirement("app", Operator.IN, (pod.labels["app"],)),))
    return PodConstraints(
        spread=(
            TopologySpreadConstraint(2 + number % 3, _ZONE, hard=True, selector=own),
            TopologySpreadConstraint(1, _RACK, hard=True, selector=own, honor_node_taints=True),
            TopologySpreadConstraint(1, _HOSTNAME, hard=False, selector=own),
        )
    )


def _about_pods(pod: PodInfo, other: PodInfo, number: int) -> PodConstraints:
    return PodConstraints(
        affinity=(_near(other, _ZONE),),
        anti_affinity=(_near(pod, _HOSTNAME),),
        preferred_affinity=(PreferredPodTerm(1 + number % 100, _near(other, _RACK)),),
        preferred_anti_affinity=(PreferredPodTerm(50, _near(pod, _RACK)),),
    )


def _near(pod: PodInfo, key: str) -> PodAffinityTerm:
    """Pods of the service of one."""
    selector = LabelSelector((Requirement("app", Operator.IN, (pod.labels["app"],)),))
    return PodAffinityTerm(selector, key, frozenset({pod.namespace}))


def _volume(i: int, claim: str, namespace: str) -> VolumeInfo:
    """Bound to a claim, and reachable in one zone."""
    zone = Requirement(_ZONE, Operator.IN, (f"zone-{i % _N_ZONES}",))
    return VolumeInfo(
        name=f"volume-of-{claim}",
        labels={},
        storage_class=_FAST,
        capacity=10 * GIB,
        access_modes=frozenset({"ReadWriteOnce"}),
        claim=ClaimReference(namespace, claim),
        node_terms=(NodeSelectorTerm((zone,)),),
        source=VolumeSource("kubernetes.io/csi", _DRIVER, f"handle-of-{claim}"),
    )


def _bound_claim(i: int, name: str, namespace: str) -> VolumeClaimInfo:
    return VolumeClaimInfo(
        namespace,
        name,
        uid=f"{name}-{i}",
        storage_class=_FAST,
        access_modes=frozenset({"ReadWriteOnce"}),
        requested=10 * GIB,
        volume=f"volume-of-{name}",
        is_bound=True,
    )


def _claims(namespace: str, names: tuple[str, str], number: int) -> tuple[VolumeClaimInfo, VolumeClaimInfo]:
    """One that is bound, and one whose volume is made where the pod goes."""
    bound = _bound_claim(number, names[0], namespace)
    waits = replace(bound, name=names[1], uid=f"{names[1]}-{number}", storage_class=_LATER, volume="", is_bound=False)
    return bound, waits
