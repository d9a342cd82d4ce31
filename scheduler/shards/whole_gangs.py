"""What counts for all members of a gang: how far it has been passed on, and whether their rules differ.

The annotations of its members are written and seen one after the other, and members of different roles may have
different rules. If each member went by its own, two replicas would each hold a part of the gang, and neither could
place it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from cluster.assuming_cluster import AssumingCluster
from cluster.follower import NodesAndPodsOnly
from cluster.tables.changes import Change, PodChange
from kube.objects.objects import PodInfo
from placement.machine_groups.membership import asks_to_borrow
from placement.pod_groups.labels import group_of
from scheduler.shards.passed_on import PassedOn, passed_on


@dataclass(slots=True)
class _Gang:
    """said: of members that were passed on, by UID; rules: how many members have which, and those of each by UID"""

    said: dict[str, PassedOn] = field(default_factory=dict)
    rules: Counter[Hashable] = field(default_factory=Counter)
    rules_of: dict[str, Hashable] = field(default_factory=dict)

    @property
    def furthest(self) -> PassedOn:
        return max(self.said.values(), key=lambda one: (one.tries, one.shard), default=PassedOn())


class WholeGangs(NodesAndPodsOnly):
    """Implements Follower. Under the lock of the tables."""

    def __init__(self, cluster: AssumingCluster, changed: Callable[[], None] = lambda: None) -> None:
        """changed: called when another replica may have to place a whole gang"""
        self._cluster, self._changed = cluster, changed
        self._gangs: dict[str, _Gang] = {}

    def passed_on(self, pod: PodInfo) -> PassedOn:
        """Return what counts for a pod: its own annotation, or that of the member of its gang which was passed on most
        often."""
        group = group_of(pod)
        if group is None:
            return passed_on(pod)
        return self._gangs[group].furthest if group in self._gangs else PassedOn()

    def is_mixed(self, pod: PodInfo) -> bool:
        """Return whether the pod is of a gang whose members' rules differ: one replica decides about all of them."""
        gang = self._gangs.get(group_of(pod) or "")
        return gang is not None and len(gang.rules) > 1

    def apply(self, changes: Sequence[Change]) -> None:
        for change in changes:
            if isinstance(change, PodChange):
                self._look(change.pod)

    def rebuild(self) -> None:
        self._gangs.clear()
        for pod in self._cluster.state.pods.values():
            self._look(pod)

    def _look(self, pod: PodInfo) -> None:
        group = group_of(pod)
        if group is None:
            return
        gang = self._gangs.setdefault(group, _Gang())
        before = gang.furthest, len(gang.rules) > 1
        gang.said.pop(pod.uid, None)
        if (rules := gang.rules_of.pop(pod.uid, None)) is not None:
            gang.rules[rules] -= 1
            if not gang.rules[rules]:
                del gang.rules[rules]
        known = self._cluster.state.pods.get(pod.uid)
        if known is not None:
            if (said := passed_on(known)) != PassedOn():
                gang.said[pod.uid] = said
            gang.rules_of[pod.uid] = rules = _rules(known)
            gang.rules[rules] += 1
        if (gang.furthest, len(gang.rules) > 1) != before:
            self._changed()
        if not gang.rules_of:
            del self._gangs[group]


def _rules(pod: PodInfo) -> Hashable:
    """Return what one_decider.py looks at, of the pod itself."""
    return pod.constraints, pod.scheduler_name, bool(pod.resource_claims), asks_to_borrow(pod)
