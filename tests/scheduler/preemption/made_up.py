"""Small clusters full of pods, and preemption in them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cluster.assumed_pods import AssumedPods
from kube.objects.constraints import (
    UNCONSTRAINED,
    HostPort,
    LabelSelector,
    Operator,
    PodConstraints,
    Requirement,
)
from kube.objects.objects import NodeInfo, PodInfo
from placement.disruption_budgets import DisruptionBudget, DisruptionBudgets
from placement.filters.catalogue import standard_filters
from placement.filters.filter import ClusterView, Filter
from placement.plugins import Nomination
from placement.pod_importance import Standing, priority_of
from placement.status import Status
from scheduler.loop_settings import PreemptionOptions
from scheduler.preemption.default_preemption import DefaultPreemption
from scheduler.preemption.nominated import NominatedPods
from scheduler.preemption.sitting_pods import SittingPods
from testing.objects import pod_info
from testing.placement.views import node_named, view_of

NOW = 1_000_000.0
OLD = 500_000.0


def node(name: str, *, cpu: float = 4.0, memory: float = 2.0**34, pods: float = 110.0) -> NodeInfo:
    return node_named(name, allocatable={"cpu": cpu, "memory": memory, "pods": pods}, labels={"host": name})


def pod(
    name: str,
    on: str = "",
    *,
    cpu: float = 1.0,
    memory: float = 0.0,
    priority: int = 0,
    started: float | None = OLD,
    created: float = OLD,
    labels: Mapping[str, str] | None = None,
    ports: Iterable[int] = (),
    constraints: PodConstraints = UNCONSTRAINED,
    terminating: bool = False,
    may_preempt: bool = True,
    nominated_node: str = "",
) -> PodInfo:
    requests = {kind: amount for kind, amount in (("cpu", cpu), ("memory", memory)) if amount}
    return pod_info(
        name,
        node=on,
        labels=labels or {},
        requests=requests,
        terminating=terminating,
        started=started if on else None,
        created=created,
        priority=priority,
        host_ports=tuple(HostPort("0.0.0.0", "TCP", port) for port in ports),
        constraints=constraints,
        may_preempt=may_preempt,
        nominated_node=nominated_node,
    )


def budget(name: str, *, allowed: int, disrupted: Collection[str] = (), **labels: str) -> DisruptionBudget:
    """Of pods with these labels."""
    selector = LabelSelector(tuple(Requirement(key, Operator.IN, (value,)) for key, value in labels.items()))
    return DisruptionBudget("shop", name, selector, allowed, frozenset(disrupted))


@dataclass
class MadeUpGangs:
    """By label gang; sitting members are those of the view."""

    minimum: Mapping[str, int]
    members: list[PodInfo] = field(default_factory=list)

    def group_of(self, pod: PodInfo) -> str | None:
        return pod.labels.get("gang")

    def sitting(self, group: str) -> Sequence[PodInfo]:
        return [one for one in self.members if one.labels.get("gang") == group]

    def breaks_without(self, group: str, uids: Collection[str]) -> bool:
        return sum(one.uid not in uids for one in self.sitting(group)) < self.minimum.get(group, 1)


class World:
    """Tables with everything that follows them, as the program puts it together."""

    def __init__(
        self,
        nodes: Sequence[NodeInfo],
        pods: Sequence[PodInfo],
        budgets: Sequence[DisruptionBudget] = (),
        *,
        gangs: MadeUpGangs | None = None,
        options: PreemptionOptions | None = None,
        further_filters: Sequence[Filter] = (),
        standing_of: Standing = priority_of,
        may_preempt: Callable[[PodInfo], bool] = lambda pod: True,
        is_ours: Callable[[PodInfo], bool] = lambda pod: True,
    ) -> None:
        self.view: ClusterView = view_of(nodes, pods)
        self.budgets = DisruptionBudgets()
        self.budgets.replace(budgets)
        if gangs is not None:
            gangs.members = [one for one in pods if one.node]
        self.ended: list[tuple[str, str]] = []
        state = self.view.state
        self.sitting = SittingPods(state, self.budgets, gangs, standing_of=standing_of)
        self.nominated = NominatedPods(
            state, is_ours=is_ours, ended=lambda pod, node: self.ended.append((pod.uid, node))
        )
        self.assumed = AssumedPods()
        self.now = NOW
        self.preemption = DefaultPreemption(
            self.sitting,
            self.budgets,
            self.nominated,
            clock=lambda: self.now,
            gangs=gangs,
            assumed=self.assumed,
            options=options,
            may_preempt=may_preempt,
        )
        self.view.cluster.listeners += [self.view.index.apply, self.sitting.apply, self.nominated.apply]
        self.filters: tuple[Filter, ...] = (*standard_filters(), *further_filters, self.nominated)

    def put(self, pod: PodInfo) -> None:
        self.view.cluster.apply(self.view.state.put_pod(pod))

    def delete(self, uid: str) -> None:
        self.view.cluster.apply(self.view.state.delete_pod(uid))

    def feasible(self, pod: PodInfo) -> set[str]:
        """Nodes that pass all filters."""
        passes = self.view.state.alive.copy()
        for one in self.filters:
            for rejection in one.filter(pod, self.view):
                passes &= ~rejection.nodes
        return {self.view.state.names[row] for row in passes.nonzero()[0].tolist()}

    def asked(self, pod: PodInfo) -> Nomination | Status:
        rejections = [rejection for one in self.filters for rejection in one.filter(pod, self.view)]
        return self.preemption.post_filter(pod, self.view, self.filters, rejections)

    def preempts(self, pod: PodInfo) -> tuple[str, list[str]] | None:
        """Node and names of the victims; None = preemption does not help."""
        answer = self.asked(pod)
        if isinstance(answer, Status):
            return None
        return answer.node, [victim.name for victim in answer.victims]
