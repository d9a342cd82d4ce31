"""Nodes that are too full, in a line each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from cluster.assuming_cluster import AssumingCluster
from forecast.service_key import Owner
from kube.objects.objects import NodeInfo, PodInfo, PodPhase
from placement.index.index import PlacementIndex
from scheduler.overcommit.overcommit import Overcommit, OvercommitCause, units_of
from scheduler.overcommit.overcommitted_nodes import OvercommitWatch
from scorer.options import ScorerOptions
from tests.placement.small_cluster import node_of, pod_of

OURS = "forecast-scheduler"
DOMAIN = "forecast-scheduler.io/domain"


def node(
    name: str = "n", *, cpu: float = 4.0, domain: str | None = None, pods: float = 110.0, **extended: float
) -> NodeInfo:
    """allocatable by name; `gpu` stands for example.com/gpu."""
    amounts = {"cpu": cpu, "memory": 2.0**34, "pods": pods} | {f"example.com/{kind}": n for kind, n in extended.items()}
    labels = {} if domain is None else {DOMAIN: domain}
    return replace(node_of(name, labels), capacity=amounts, allocatable=amounts)


def pod(
    name: str,
    on: str = "n",
    *,
    cpu: float = 1.0,
    scheduler: str = OURS,
    owner: str = "ReplicaSet",
    created: float = 0.0,
    started: float | None = None,
    terminating: bool = False,
    requests: Mapping[str, float] | None = None,
    **changed: Any,
) -> PodInfo:
    """A pod that runs, on whatever node it names."""
    made = pod_of(
        name,
        node=on,
        owner=Owner(owner, "set" if owner else ""),
        owner_uid="u" if owner else "",
        terminating=terminating,
    )
    return replace(
        made,
        requests=dict(requests) if requests is not None else {"cpu": cpu},
        scheduler_name=scheduler,
        created=created,
        started=started,
        **changed,
    )


def unanswered(name: str, *, bound_by_scheduler: bool = True, **changed: Any) -> PodInfo:
    """Its kubelet has said nothing of it; it was bound, or its creator has named the node."""
    return pod(name, phase=PodPhase.PENDING, scheduled=1000.0 if bound_by_scheduler else None, **changed)


def overcommit(
    pods: Sequence[PodInfo], allocatable: Mapping[str, int], *, cause: OvercommitCause = OvercommitCause.SHARED
) -> Overcommit:
    """Of these pods on a node with so many whole units; all kinds fit that are not named."""
    excess = {kind: units_of(pods, kind) - has for kind, has in allocatable.items()}
    return Overcommit("n", cause, {kind: units for kind, units in excess.items() if units > 0}, tuple(pods))


class Scene:
    """Tables, and a watch that looks at them."""

    def __init__(self, nodes: Sequence[NodeInfo], **options: Any) -> None:
        self.now = 1000.0
        self.cluster = AssumingCluster(ScorerOptions(), now=self.now)
        self.index = PlacementIndex(self.cluster.state)
        self.cluster.listeners.append(self.index.apply)
        self.told: list[Overcommit] = []
        for one in nodes:
            self.put_node(one)
        self.watch = OvercommitWatch(
            self, self.index.labels, clock=lambda: self.now, tell=self.told.append, **{"shared": [""]} | options
        )

    @contextmanager
    def reading(self) -> Iterator[AssumingCluster]:
        yield self.cluster

    def put_node(self, one: NodeInfo) -> None:
        self.cluster.apply(self.cluster.state.put_node(one))

    def put(self, *pods: PodInfo) -> None:
        for one in pods:
            self.cluster.put_pod(one)

    def gone(self, one: PodInfo) -> None:
        self.cluster.delete_pod(one.uid)

    def after(self, seconds: float) -> list[str]:
        """Nodes that stand so much later."""
        self.now += seconds
        return [one.node for one in self.watch.look()]
