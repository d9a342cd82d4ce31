"""Which nodes pods could use: seen from here through a protocol, since filters are a package above the scorer.

`placement.usable_nodes` implements it on the filters. A scorer without it takes every node for usable by every pod.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from base.arrays import Bools, Ints
from cluster.follower import Follower, NodesAndPodsOnly
from cluster.tables.changes import Change
from cluster.tables.state import ClusterState
from kube.objects.objects import PodInfo


class NodeUsability(Follower, Protocol):
    """Judged by what a pod and the nodes say of themselves, not by which pods sit where. Under the lock of the tables;
    the arrays stay as they are afterwards."""

    def usable_by(self, pods: Sequence[PodInfo]) -> tuple[Bools, Ints]:
        """(n_masks, n_rows) nodes that pods could use, and (n_pods,) the mask of each pod: pods with equal constraints
        share one."""

    def pools(self) -> Mapping[str, Bools]:
        """(n_rows,) nodes of each pool: those that an ordinary pod of one placing profile may use."""

    def pool_of(self, pod: PodInfo) -> str:
        """The pool of the profile that places the pod."""


class EveryNode(NodesAndPodsOnly):
    """Every ready node takes every pod, and all nodes are one pool. Implements UsableNodes."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def usable_by(self, pods: Sequence[PodInfo]) -> tuple[Bools, Ints]:
        """One mask: see UsableNodes."""
        takes_pods = [node is not None and node.ready and not node.unschedulable for node in self._state.nodes]
        return np.array([takes_pods], dtype=bool), np.zeros(len(pods), dtype=np.int64)

    def pools(self) -> Mapping[str, Bools]:
        """One pool: see UsableNodes."""
        return {"": self._state.alive}

    def pool_of(self, pod: PodInfo) -> str:
        """The only pool."""
        return ""

    def apply(self, changes: Sequence[Change]) -> None:
        """Nothing: the state is asked each time."""

    def rebuild(self) -> None:
        """Nothing is made from nodes."""
