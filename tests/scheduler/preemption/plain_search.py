"""Preemption as SelectVictimsOnNode and pickOneNodeForPreemption do it: node by node, pod by pod, all filters asked
each time over a cluster that is made anew. Slow, and without anything of what makes the real search quick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kube.objects.objects import NodeInfo, PodInfo
from placement.disruption_budgets import DisruptionBudget
from placement.filters.catalogue import standard_filters
from placement.pod_importance import Cost, Standing, importance, priority_of
from testing.placement.views import view_of


@dataclass(frozen=True)
class Candidate:
    cost: Cost
    node: str
    victims: tuple[str, ...]


def passing(pod: PodInfo, nodes: Sequence[NodeInfo], pods: Sequence[PodInfo]) -> tuple[set[str], set[str]]:
    """Nodes that pass all filters, and those that could once pods are evicted."""
    view = view_of(nodes, pods)
    passes, helped = view.state.alive.copy(), view.state.alive.copy()
    for one in standard_filters():
        for rejection in one.filter(pod, view):
            passes &= ~rejection.nodes
            if not rejection.preemptible:
                helped &= ~rejection.nodes
    names = view.state.names
    return {names[row] for row in passes.nonzero()[0]}, {names[row] for row in (helped & ~passes).nonzero()[0]}


def candidates(
    pod: PodInfo,
    nodes: Sequence[NodeInfo],
    pods: Sequence[PodInfo],
    budgets: Sequence[DisruptionBudget],
    standing: Standing = priority_of,
) -> list[Candidate]:
    """All nodes that can be emptied for the pod, the best first."""
    _, helped = passing(pod, nodes, pods)
    found = []
    for row, node in enumerate(nodes):
        if node.name not in helped:
            continue
        candidate = _on_node(pod, node.name, row, nodes, pods, budgets, standing)
        if candidate is not None:
            found.append(candidate)
    return sorted(found, key=lambda one: one.cost)


def _on_node(
    pod: PodInfo,
    name: str,
    row: int,
    nodes: Sequence[NodeInfo],
    pods: Sequence[PodInfo],
    budgets: Sequence[DisruptionBudget],
    standing: Standing,
) -> Candidate | None:
    lower = (one for one in pods if one.node == name and one.priority < pod.priority)
    potential = sorted(lower, key=lambda one: importance(one, standing))
    there = [one for one in pods if one not in potential]
    if not potential or name not in passing(pod, nodes, there)[0]:
        return None
    violating, others = _by_budget(potential, budgets)
    victims, n_violating = [], 0
    for one in (*violating, *others):
        if name in passing(pod, nodes, [*there, one])[0]:
            there = [*there, one]
        else:
            victims.append(one)
            n_violating += one in violating
    if not victims:
        return None
    highest = max(map(standing, victims))
    starts = [one.started for one in victims if standing(one) == highest]
    earliest = min(float("inf") if start is None else start for start in starts)
    cost = Cost(n_violating, highest, sum(standing(one) + 2**31 for one in victims), len(victims), -earliest, row)
    return Candidate(cost, name, tuple(one.name for one in sorted(victims, key=lambda one: importance(one, standing))))


def _by_budget(pods: Sequence[PodInfo], budgets: Sequence[DisruptionBudget]) -> tuple[list[PodInfo], list[PodInfo]]:
    allowed = [one.allowed for one in budgets]
    violating: list[PodInfo] = []
    others: list[PodInfo] = []
    for pod in pods:
        is_violated = False
        for number, one in enumerate(budgets):
            if one.means(pod) and pod.name not in one.disrupted:
                allowed[number] -= 1
                is_violated = is_violated or allowed[number] < 0
        (violating if is_violated else others).append(pod)
    return violating, others
