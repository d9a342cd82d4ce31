"""Which nodes the pods of each placing profile could use, whatever sits there now. Implements cluster.usable_nodes.

The filters say so themselves: of their rejections those count that no pod that comes or goes can change. What is left
out changes with every pod: ports, volumes, spread, affinity to pods, free CPU and memory.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import numpy as np

from base.arrays import Bools, Ints
from cluster.follower import NodesAndPodsOnly
from cluster.tables.changes import Change, NodeAdded, NodeChanged, NodeRemoved
from cluster.tracking import TrackedCluster
from kube.decoding.decoding import decode_pod
from kube.objects.objects import NodeInfo, PodInfo
from placement.filters.catalogue import standard_filters
from placement.filters.filter import ClusterView, Filter
from placement.filters.node_resources_fit import is_extended
from placement.index.index import PlacementIndex
from placement.policies.policy import Policies, Policy
from placement.virtual_node_table import VirtualNodes
from scorer.scoring_policy import opts_out

_MOST_MASKS: Final = 4096
_MOST_POLICIES: Final = 256

_Key = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class PlacingScheduler:
    """What places the pods of a scheduler name: one of our profiles, or kube-scheduler with our extender.

    name           : of its pool
    scheduler_name : '' = of all pods that no other placer places
    policies       : which of its pods is placed how
    filters        : of all its pods, whatever their policy says; one of the name of a standard filter takes its place
    """

    name: str
    scheduler_name: str
    policies: Policies
    filters: Sequence[Filter] = ()


class UsableNodesByFilters(NodesAndPodsOnly):
    """Implements cluster.usable_nodes.NodeUsability and cluster.follower.Follower. Masks are kept until nodes
    change.
    """

    def __init__(self, cluster: TrackedCluster, placers: Sequence[PlacingScheduler], virtual: VirtualNodes) -> None:
        """
        placers : one of them has no scheduler name
        virtual : follows the tables before this does
        """
        self._view = ClusterView(cluster, PlacementIndex(cluster.state, nodes_only=True))
        self._placers = tuple(placers)
        self._placer_of = {placer.scheduler_name: placer for placer in placers}
        self._virtual = virtual
        self._seen: dict[int, NodeInfo | None] = {}
        self._masks: dict[_Key, Bools] = {}
        self._devices: tuple[str, ...] | None = None
        self._ready: Bools | None = None
        self._filters_of: dict[tuple[str, int], tuple[Policy, tuple[Filter, ...]]] = {}

    # UsableNodes

    def usable_by(self, pods: Sequence[PodInfo]) -> tuple[Bools, Ints]:
        """See cluster.usable_nodes.NodeUsability."""
        masks: list[Bools] = []
        number_of: dict[_Key, int] = {}
        mask_of = np.zeros(len(pods), dtype=np.int64)
        for position, pod in enumerate(pods):
            placer = self._placer(pod)
            policy = placer.policies.choose(pod).policy
            key = self._key(pod, placer, policy)
            if key not in number_of:
                number_of[key] = len(masks)
                mask = self._masks.get(key)
                masks.append(self._keep(key, self._usable(pod, placer, policy)) if mask is None else mask)
            mask_of[position] = number_of[key]
        return np.array(masks, dtype=bool).reshape(len(masks), self._view.n_rows), mask_of

    def pools(self) -> Mapping[str, Bools]:
        """One of each placer for pods without devices, and one for each kind of devices that nodes offer."""
        return {
            _pool_name(placer, device): self._pool(placer, device)
            for placer in self._placers
            for device in ("", *self._offered())
        }

    def pool_of(self, pod: PodInfo) -> str:
        """The pool of pods with devices is that of the first that nodes offer, by name."""
        wanted = [name for name in self._offered() if pod.requests.get(name, 0.0) > 0]
        return _pool_name(self._placer(pod), wanted[0] if wanted else "")

    # Follower

    def apply(self, changes: Sequence[Change]) -> None:
        """Follow the nodes; drop the masks if something changed that a filter reads."""
        self._virtual.apply(changes)
        for change in changes:
            match change:
                case NodeAdded(row) | NodeChanged(row) | NodeRemoved(row):
                    node = self._view.state.nodes[row]
                    if row not in self._seen or not _same(self._seen[row], node):
                        self._drop()
                    self._seen[row] = node
                case _:
                    pass
        self._view.index.apply(changes)

    def rebuild(self) -> None:
        """Make the tables of nodes anew."""
        self._virtual.rebuild()
        self._view.index.rebuild()
        # What a node was before the change that was missed says nothing of the masks made from now on.
        self._seen.clear()
        self._drop()

    # Inside

    def _drop(self) -> None:
        self._masks.clear()
        self._devices = self._ready = None

    def _placer(self, pod: PodInfo) -> PlacingScheduler:
        return self._placer_of.get(pod.scheduler_name) or self._placer_of[""]

    def _keep(self, key: _Key, mask: Bools) -> Bools:
        if len(self._masks) >= _MOST_MASKS:
            self._masks.clear()
        self._masks[key] = mask
        return mask

    def _usable(self, pod: PodInfo, placer: PlacingScheduler, policy: Policy) -> Bools:
        """(n_rows,) ready nodes that no lasting rejection keeps the pod from."""
        nodes = self._ready_nodes().copy()
        bare = replace(pod, node="")
        for one in self._filters(placer, policy):
            for rejection in one.lasting(bare, self._view):
                nodes &= ~rejection.nodes
        if opts_out(pod):
            return nodes
        rather = nodes & ~policy.cards.last(bare, self._view)
        return rather if rather.any() else nodes

    def _pool(self, placer: PlacingScheduler, device: str) -> Bools:
        """(n_rows,) nodes for an ordinary pod of the placer, one that requests a device if one is named.

        Nodes with devices are tainted to keep other pods away, and pods that want a device tolerate the taint.
        """
        pod = _ordinary(placer.scheduler_name, device)
        policy = placer.policies.choose(pod).policy
        key = ("pool", device, placer.name, id(policy))
        known = self._masks.get(key)
        if known is not None:
            return known
        away = self._virtual.rows | self._view.index.taints.unschedulable
        return self._keep(key, self._usable(pod, placer, policy) & ~away)

    def _ready_nodes(self) -> Bools:
        """(n_rows,) not to be changed."""
        if self._ready is None:
            nodes = self._view.state.nodes
            ready = (node is not None and node.ready for node in nodes)
            self._ready = np.fromiter(ready, dtype=bool, count=len(nodes))
        return self._ready

    def _offered(self) -> tuple[str, ...]:
        """Extended resources that some node has."""
        if self._devices is None:
            state = self._view.state
            most: Ints = state.allocatable_units[state.alive].max(axis=0, initial=0)  # (n_kinds,)
            extended = (name for name, kind in state.kinds.items() if most[kind] > 0 and is_extended(name))
            self._devices = tuple(sorted(extended))
        return self._devices

    def _filters(self, placer: PlacingScheduler, policy: Policy) -> tuple[Filter, ...]:
        key = (placer.name, id(policy))
        known = self._filters_of.get(key)
        if known is None:
            if len(self._filters_of) >= _MOST_POLICIES:  # policies of documents that were replaced
                self._filters_of.clear()
                self._masks.clear()
            own = {one.name: one for one in placer.filters}
            standard = [one for one in standard_filters() if one.name not in own]
            # Our own loops run CardTypes by the policy's rule, named or not.
            cards = (policy.cards,) if placer.scheduler_name else ()
            filters = [one for one in (*standard, *policy.filters, *cards, *own.values()) if _may_last(one)]
            # The policy is kept, too: its id names it in the keys of masks.
            known = self._filters_of[key] = (policy, tuple(filters))
        return known[1]

    def _key(self, pod: PodInfo, placer: PlacingScheduler, policy: Policy) -> _Key:
        """Return all that `_usable` reads of a pod."""
        cards = policy.cards.lasting_key(pod)
        filters = self._filters(placer, policy)
        return placer.name, id(policy), opts_out(pod), cards, *(one.lasting_key(pod) for one in filters)


def _pool_name(placer: PlacingScheduler, device: str) -> str:
    return f"{placer.name}, {device}" if device else placer.name


def _may_last(one: Filter) -> bool:
    return type(one).lasting is not Filter.lasting


def _same(before: NodeInfo | None, now: NodeInfo | None) -> bool:
    """Whether filters see no difference between two states of a node."""
    if before is None or now is None:
        return before is now
    return (before.ready, before.unschedulable, before.taints, before.labels, before.allocatable) == (
        now.ready,
        now.unschedulable,
        now.taints,
        now.labels,
        now.allocatable,
    )


@lru_cache(maxsize=256)
def _ordinary(scheduler_name: str, device: str) -> PodInfo:
    """A pod that asks for nothing but perhaps one device, for which it tolerates every taint."""
    spec: dict[str, Any] = {"schedulerName": scheduler_name, "containers": [{"name": "main"}]}
    if device:
        spec["containers"][0]["resources"] = {"requests": {device: "1"}}
        spec["tolerations"] = [{"operator": "Exists"}]
    # No namespace has this name, so no rule of a policy document singles the pod out.
    return decode_pod({"metadata": {"name": "ordinary", "namespace": "-"}, "spec": spec})
