"""Victims of one node, some of which belong to gangs: exact, gang by gang, one node at a time.

A preemption that takes so many members of a gang that it cannot go on evicts all of it, here and on other nodes. What
that frees on this node is free for the others, which are looked at again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from kube.objects.objects import PodInfo
from placement.disruption_budgets import DisruptionBudgets
from placement.pod_importance import NodeVictims, Standing, cost_of, importance, priority_of
from scheduler.preemption.victim_gangs import VictimGangs, broken_gangs, others_of_broken_gangs


@dataclass(frozen=True, slots=True)
class OneNode:
    """A node as preemption sees it.

    row     : of the node
    pods    : candidates in the order of reprieve: those that violate a budget, then the most important
    gives   : what each releases, by limit
    violates : which of them violate a budget
    spare   : by limit, what may stay with those that may go
    """

    row: int
    pods: tuple[PodInfo, ...]
    gives: tuple[tuple[int, ...], ...]
    violates: tuple[bool, ...]
    spare: tuple[int, ...]

    def victims(self, lost: frozenset[str] = frozenset()) -> list[PodInfo]:
        """Find the victims: every pod that may stay does, but for those that are lost whatever happens."""
        left = list(self.spare)
        victims = []
        for pod, gives in zip(self.pods, self.gives, strict=True):
            if pod.uid in lost or any(each > limit for each, limit in zip(gives, left, strict=True)):
                victims.append(pod)
            else:
                left = [limit - each for each, limit in zip(gives, left, strict=True)]
        return victims

    def with_last(self, uids: Collection[str]) -> OneNode:
        """The same, with these pods put back last."""
        order = sorted(range(len(self.pods)), key=lambda place: self.pods[place].uid in uids)
        return replace(
            self,
            pods=tuple(self.pods[place] for place in order),
            gives=tuple(self.gives[place] for place in order),
            violates=tuple(self.violates[place] for place in order),
        )

    def violations(self, victims: Sequence[PodInfo]) -> int:
        """How many of these violate a budget."""
        uids = {pod.uid for pod in victims}
        return sum(violates and pod.uid in uids for pod, violates in zip(self.pods, self.violates, strict=True))


def with_whole_gangs(
    node: OneNode, gangs: VictimGangs, budgets: DisruptionBudgets, standing: Standing = priority_of
) -> NodeVictims:
    """Who has to go so that the pod fits there, the members of broken gangs elsewhere last."""
    lost: frozenset[str] = frozenset()
    while True:
        victims = node.victims(lost)
        broken = broken_gangs(victims, gangs)
        now_lost = lost | {pod.uid for pod in node.pods if gangs.group_of(pod) in broken}
        if now_lost == lost:
            return completed(node, victims, others_of_broken_gangs(victims, gangs, standing), budgets, standing)
        lost = now_lost


def completed(
    node: OneNode,
    victims: Sequence[PodInfo],
    others: Sequence[PodInfo],
    budgets: DisruptionBudgets,
    standing: Standing = priority_of,
) -> NodeVictims:
    """These victims, and others on other nodes who go with them."""
    violations = node.violations(victims) + sum(budgets.violated_by(others, also_gone=victims))
    pods = (*sorted(victims, key=lambda pod: importance(pod, standing)), *others)
    return NodeVictims(cost_of(node.row, pods, violations, standing), pods)
