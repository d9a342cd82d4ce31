"""Which replica decides about a pod now: by the Leases of the shards, and by what replicas wrote into the pod. What
counts for one member of a gang counts for all.

unit --assignment.py--> 1st replica --no room--> 2nd --no room--> the leader, over the nodes of all
pod of a DaemonSet, or with a reserved room ---------------> the owner of that node
pod that one replica has to decide about (one_decider.py) -> the leader

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
from kube.objects.constraints import Operator
from kube.objects.objects import PodInfo
from placement.machine_groups.membership import asks_to_borrow
from placement.pod_groups.group_of_pod import group_of
from scheduler.queue.queued_pods import UnitOf
from scheduler.shards.assignment import Dispatcher
from scheduler.shards.passing_on import PassedOn, passed_on

# What counts for all members of a gang: how far it has been passed on, and whether their rules differ.
#
# The annotations of its members are written and seen one after the other, and members of different roles may have
# different rules. If each member went by its own, two replicas would each hold a part of the gang, and neither could
# place it.


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


class Responsibility:
    """Under the lock of the tables.

    me        : identity of this replica
    passes    : replicas that try after the first, before the leader
    shard_of  : of a node by name, -1 = there is no such node
    unit_of   : of a pod
    reason    : why one replica has to decide about a pod, '' = any may
    gangs     : what counts for all members of one; None = nothing but what each pod says
    leads     : whether this replica is the one that decides alone
    is_leader : the same, be it that it does not know all pods yet
    """

    def __init__(
        self,
        cluster: AssumingCluster,
        me: str,
        *,
        passes: int,
        shard_of: Callable[[str], int],
        unit_of: Callable[[PodInfo], UnitOf],
        reason: Callable[[PodInfo], str],
        gangs: WholeGangs | None = None,
        leads: Callable[[], bool] = lambda: False,
        is_leader: Callable[[], bool] = lambda: False,
    ) -> None:
        self._cluster, self._me, self._passes = cluster, me, passes
        self._shard_of, self._unit_of, self._reason, self._is_leader = shard_of, unit_of, reason, is_leader
        self._gangs = gangs or WholeGangs(cluster)
        self._leads, self._dispatcher = leads, Dispatcher(())

    def use(self, dispatcher: Dispatcher) -> None:
        """Go by who holds the shards now."""
        self._dispatcher = dispatcher

    def is_mine(self, pod: PodInfo) -> bool:
        """Return whether this replica decides about the pod now."""
        holder = self.holder(pod)
        return self._leads() if holder is None else holder == self._me

    def is_last(self, pod: PodInfo) -> bool:
        """Return whether the nodes of all replicas count for this pod, because it has come to the leader."""
        return self.holder(pod) is None

    def needs_one_decider(self, pod: PodInfo) -> bool:
        """Return whether the pod is the leader's whatever room others have."""
        return bool(self._reason(pod)) or self._gangs.is_mixed(pod)

    def holder_of(self, shard: int) -> str:
        """Return who holds a shard, '' = no live replica does."""
        return next((one.holder for one in self._dispatcher.shards if one.number == shard), "")

    def holder(self, pod: PodInfo) -> str | None:
        """Return the identity of the replica whose turn it is; None = the leader."""
        node = node_of(pod) or self._reserved_node(pod)
        if node:
            return self.holder_of(self._shard_of(node)) or None
        if self.needs_one_decider(pod):
            return None
        said = self.said(pod)
        return self._holder_of_unit(self._unit_of(pod).key, said.tries, said.shard)

    def said(self, pod: PodInfo) -> PassedOn:
        """Return how far the pod, or its gang, has been passed on."""
        return self._gangs.passed_on(pod)

    def places_plain(self, unit: str, tries: int, shard: int) -> bool:
        """Return whether this replica is to try a plain pod of a unit, after so many others, or as the owner of a shard
        (-1 = none is named). For any thread."""
        holder = self._holder_of_unit(unit, tries, shard)
        return self._is_leader() if holder is None else holder == self._me

    def _holder_of_unit(self, unit: str, tries: int, shard: int) -> str | None:
        if shard >= 0:
            return self.holder_of(shard) or None
        replicas = self._dispatcher.in_order(unit)
        return replicas[tries] if tries < min(len(replicas), self._passes + 1) else None

    def _reserved_node(self, pod: PodInfo) -> str:
        rooms = self._cluster.rooms.open_for(pod) if len(self._cluster.rooms) else ()
        return rooms[0].stand_in.node if rooms else ""


def node_of(pod: PodInfo) -> str:
    """Return the one node that the pod's required node affinity names, as DaemonSets do; '' = it names none."""
    terms = pod.constraints.required_node_terms
    if terms is None or len(terms) != 1:
        return ""
    named = [one for one in terms[0].fields if one.key == "metadata.name" and one.operator is Operator.IN]
    return named[0].values[0] if len(named) == 1 and len(named[0].values) == 1 else ""
