"""Nodes where more than requests is in the way (ports, affinity, spread, volumes, predicted peak): who has to go is
found by taking pods out of the tables and asking the filters.

As SelectVictimsOnNode of plugins/defaultpreemption/default_preemption.go: all that may go are taken out; if the pod
fits then, they are put back one by one as long as it does. Filters judge all nodes at once, so they are asked as
seldom as possible: where fewer pods never make a filter say no, many are put back together.

Where a filter names victims of its own (`least_victims`) the same is tried with these put back last, and the cheaper of
both counts: else the oldest pod might stay on its device at the expense of many that share another one.
"""

from __future__ import annotations

from collections.abc import Sequence

from kube.objects.objects import PodInfo
from placement.disruption_budgets import DisruptionBudgets
from placement.filters.filter import ClusterView, Filter
from placement.pod_importance import Cost, NodeVictims, Standing, cost_of, importance, nothing, priority_of
from placement.what_if import WithoutPods
from scheduler.preemption.victim_gangs import VictimGangs, others_of_broken_gangs
from scheduler.preemption.whole_gangs import OneNode, completed


class Trials:
    """For one pod, under one hold of the lock."""

    def __init__(
        self,
        pod: PodInfo,
        view: ClusterView,
        filters: Sequence[Filter],
        gangs: VictimGangs | None,
        budgets: DisruptionBudgets,
        standing: Standing = priority_of,
    ) -> None:
        self._pod, self._view, self._gangs, self._budgets = pod, view, gangs, budgets
        self._standing = standing
        others = [one for one in filters if not one.by_requests]
        missing = {one for one in others if one.needs_company(pod, view)}
        self._at_once = not missing
        # The others do not mind who sits where, or have nothing against any node: fewer pods do not change that.
        self._filters = [
            one for one in others if one in missing or any(rejection.preemptible for rejection in one.filter(pod, view))
        ]
        self._knowing = [one for one in self._filters if one.knows_victims]

    @property
    def foresees(self) -> bool:
        """Whether `foreseen` says anything."""
        return bool(self._knowing)

    def foreseen(self, node: OneNode) -> Cost | None:
        """What those whom filters name cost there; None = it does not help."""
        named = self._named(node)
        if named is None:
            return None
        victims = [pod for pod in node.pods if pod.uid in named]
        return cost_of(node.row, victims, 0, self._standing) if victims else nothing(node.row)

    def victims(self, node: OneNode) -> NodeVictims | None:
        """Return the victims on the node; None = evicting does not help, or no pod has to go."""
        named = self._named(node)
        if named is None:
            return None
        with WithoutPods(self._view) as what_if:
            for pod in node.pods:
                what_if.take(pod.uid)
            if not self._passes(node.row):
                return None
            victims = self._reprieve(node, what_if)
            if not victims:
                return None
            found = self._completed(node, victims)
            if named and named != {pod.uid for pod in victims}:
                for pod in node.pods:
                    what_if.take(pod.uid)
                victims = self._reprieve(node.with_last(named), what_if)
                if victims:
                    found = min(found, self._completed(node, victims), key=lambda one: one.cost)
        return found

    def _named(self, node: OneNode) -> frozenset[str] | None:
        """UIDs of those whom filters name; None = one of them says that all are not enough."""
        pods = node.pods
        if any(node.violates):  # they come first there
            pods = tuple(sorted(pods, key=lambda pod: importance(pod, self._standing)))
        named: set[str] = set()
        for one in self._knowing:
            victims = one.least_victims(self._pod, node.row, pods, self._standing)
            if victims is None:
                return None
            named.update(pod.uid for pod in victims)
        return frozenset(named)

    def _completed(self, node: OneNode, victims: Sequence[PodInfo]) -> NodeVictims:
        others = others_of_broken_gangs(victims, self._gangs, self._standing)
        return completed(node, victims, others, self._budgets, self._standing)

    def _reprieve(self, node: OneNode, what_if: WithoutPods) -> list[PodInfo]:
        left: Sequence[int] = node.spare
        victims: list[PodInfo] = []
        position = 0
        while position < len(node.pods):
            after = _left_after(node, position, left)
            stays = self._put_back(node.pods[position : position + len(after) - 1], node.row, what_if)
            left = after[stays]
            position += stays
            victims += node.pods[position : position + 1]  # who cannot stay, by its requests or by a filter
            position += 1
        return victims

    def _put_back(self, pods: Sequence[PodInfo], row: int, what_if: WithoutPods) -> int:
        """Put back as many of these, from the first on, as filters permit; returns how many."""
        if not self._at_once:
            for n_back, pod in enumerate(pods):
                what_if.put_back(pod.uid)
                if not self._passes(row):
                    what_if.take(pod.uid)
                    return n_back
            return len(pods)
        back, least, most = 0, 0, len(pods)
        tried = most
        while least < most:
            back = _set_back(pods, back, tried, what_if)
            if self._passes(row):
                least = tried
            else:
                most = tried - 1
            tried = (least + most + 1) // 2
        return _set_back(pods, back, least, what_if)

    def _passes(self, row: int) -> bool:
        return not any(rejection.nodes[row] for one in self._filters for rejection in one.filter(self._pod, self._view))


def _set_back(pods: Sequence[PodInfo], now: int, wanted: int, what_if: WithoutPods) -> int:
    """Let exactly the first `wanted` be back, of which the first `now` are."""
    for pod in pods[now:wanted]:
        what_if.put_back(pod.uid)
    for pod in pods[wanted:now]:
        what_if.take(pod.uid)
    return wanted


def _left_after(node: OneNode, begin: int, left: Sequence[int]) -> list[Sequence[int]]:
    """What is left, by limit, after none, one, two, ... of the next pods: of as many as can stay by their requests."""
    after = [left]
    for gives in node.gives[begin:]:
        now = [limit - each for each, limit in zip(gives, after[-1], strict=True)]
        if any(limit < 0 for limit in now):
            break
        after.append(now)
    return after
