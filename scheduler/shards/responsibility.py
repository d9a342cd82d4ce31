"""Which replica decides about a pod now: by the Leases of the shards, and by what replicas wrote into the pod.

unit --dispatch.py--> 1st replica --no room--> 2nd --no room--> the leader, over the nodes of all
pod of a DaemonSet, or with a reserved room ---------------> the owner of that node
pod that one replica has to decide about (one_decider.py) -> the leader
"""

from __future__ import annotations

from collections.abc import Callable

from cluster.assuming_cluster import AssumingCluster
from kube.objects.constraints import Operator
from kube.objects.objects import PodInfo
from scheduler.queue.unit import UnitOf
from scheduler.shards.dispatch import Dispatcher
from scheduler.shards.passed_on import PassedOn
from scheduler.shards.whole_gangs import WholeGangs


class Responsibility:
    """Under the lock of the tables.

    dispatcher, leads : what the keeper of the Leases says: who holds the shards, and whether this replica is the one
                that decides alone
    me        : identity of this replica
    passes    : replicas that try after the first, before the leader
    shard_of  : of a node by name, -1 = there is no such node
    unit_of   : of a pod
    reason    : why one replica has to decide about a pod, '' = any may
    gangs     : what counts for all members of one; None = nothing but what each pod says
    is_leader : whether this replica is the one that decides alone, be it that it does not know all pods yet
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
        is_leader: Callable[[], bool] = lambda: False,
    ) -> None:
        self._cluster, self._me, self._passes = cluster, me, passes
        self._shard_of, self._unit_of, self._reason, self._is_leader = shard_of, unit_of, reason, is_leader
        self._gangs = gangs or WholeGangs(cluster)
        self.dispatcher = Dispatcher(())
        self.leads: Callable[[], bool] = lambda: False

    def is_mine(self, pod: PodInfo) -> bool:
        """Return whether this replica decides about the pod now."""
        holder = self.holder(pod)
        return self.leads() if holder is None else holder == self._me

    def is_last(self, pod: PodInfo) -> bool:
        """Return whether the nodes of all replicas count for this pod, because it has come to the leader."""
        return self.holder(pod) is None

    def needs_one_decider(self, pod: PodInfo) -> bool:
        """Return whether the pod is the leader's whatever room others have."""
        return bool(self._reason(pod)) or self._gangs.is_mixed(pod)

    def holder_of(self, shard: int) -> str:
        """Return who holds a shard, '' = no live replica does."""
        return next((one.holder for one in self.dispatcher.shards if one.number == shard), "")

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
        replicas = self.dispatcher.in_order(unit)
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
