"""Tables of one replica with a clock of its own, and what it owns of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from cluster.assuming_cluster import AssumingCluster
from kube.objects.objects import NodeInfo, PodInfo
from scheduler.shards.node_shards import HANDED_OVER, SHARD_LABEL, HandedOver, handing_over
from scheduler.shards.ownership import NodeOwnership
from scorer.options import ScorerOptions
from testing.objects import node_info, pod_info
from testing.settable_clock import SettableClock

COUNT = 4
SETTLE = 15.0


class Replica:
    """`held` are the shards whose Leases it holds."""

    def __init__(self, *items: NodeInfo | PodInfo, owns: set[int] | None = None) -> None:
        self.clock = SettableClock(1000.0)
        self.cluster = AssumingCluster(ScorerOptions(), now=1000.0)
        self.held = set(owns or ())
        self.ownership = NodeOwnership(
            self.cluster, COUNT, may_use=lambda shard: shard in self.held, settle=SETTLE, clock=self.clock
        )
        self.cluster.listeners.append(self.ownership.apply)
        self.ownership.use(self.held)
        self.put(*items)

    @contextmanager
    def locked(self) -> Iterator[AssumingCluster]:
        yield self.cluster

    def put(self, *items: NodeInfo | PodInfo) -> None:
        for item in items:
            self.cluster.put(item)

    def own(self) -> set[str]:
        """Names of nodes that are ours to place on."""
        rows = self.ownership.own()
        return {name for name, row in self.cluster.state.row_of.items() if rows[row]}

    def bindable(self) -> set[str]:
        """Names of nodes on which something may be bound."""
        return {name for name in self.cluster.state.row_of if not self.ownership.why_not(name)}

    def assume(self, pod: PodInfo, on: str) -> None:
        self.cluster.put(pod)
        self.cluster.assume(pod, on, 1e12)


def node(name: str, shard: int, record: HandedOver | None = None, **fields: Any) -> NodeInfo:
    """A node of a shard. record: with which it got there"""
    annotations: Mapping[str, str] = {}
    if record is not None:
        annotations = {HANDED_OVER: record_text(record)}
    amounts = {"cpu": 4.0, "memory": 2.0**34, "pods": 110.0}
    defaults = {"labels": {SHARD_LABEL: str(shard)}, "annotations": annotations, "allocatable": amounts}
    return node_info(name, **(defaults | fields))


def pod(name: str, on: str = "", cpu: float = 1.0) -> PodInfo:
    return pod_info(name, node=on, requests={"cpu": cpu})


def record_text(record: HandedOver) -> str:
    """Return the annotation of a hand-over."""
    patch: dict[str, Any] = msgspec.json.decode(handing_over("1", record))
    return str(patch["metadata"]["annotations"][HANDED_OVER])
