"""What a filter is: a pod and the cluster in, rejections out. "No" is a value, not an exception.

The statuses are those of staging/src/k8s.io/kube-scheduler/framework/interface.go: `preemptible` distinguishes
Unschedulable (evicting pods may help) from UnschedulableAndUnresolvable (it cannot).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from base.arrays import Bools
from cluster.follower import Follower
from cluster.tables.state import ClusterState
from cluster.tracking import TrackedCluster
from kube.objects.objects import PodInfo
from placement.index.index import PlacementIndex


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The cluster as filters and scores read it, one row per node; valid while the lock of the tables is held.

    cluster : the scorer's tables: predicted load, physical capacity, usage; `cluster.state` is `index.state`
    index   : labels, taints, pods by labels, affinity terms, ports, volumes
    further : other tables that filters read; what pods that come and go change there is tried out, too (what_if.py)
    """

    cluster: TrackedCluster
    index: PlacementIndex
    further: tuple[Follower, ...] = ()

    @property
    def state(self) -> ClusterState:
        """Nodes, pods, allocatable and requested."""
        return self.index.state

    @property
    def n_rows(self) -> int:
        """Rows, free ones included."""
        return self.index.state.n_rows


@dataclass(frozen=True, slots=True)
class Rejection:
    """Nodes that a filter rejects for one reason.

    nodes       : (n_rows,) true = rejected; rows without a node may have any value
    reason      : as kube-scheduler words it
    preemptible : whether the pod could fit there once other pods are evicted
    by_requests : whether the filter has nothing against these nodes any more once what pods request fits there
    about_pod   : the reason is a sentence about the pod rather than words about a node: if all nodes are rejected for
                  it, it says alone why the pod waits
    """

    nodes: Bools
    reason: str
    preemptible: bool
    by_requests: bool = False
    about_pod: bool = False


class Filter(Protocol):
    """A filter, stateless: the same pod and cluster give the same answer. `name` is that of the plugin upstream."""

    @property
    def name(self) -> str:
        """As in a KubeSchedulerConfiguration."""

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Why the pod cannot go to which nodes; nothing = it can go anywhere. The pod itself never counts against it:
        it does not sit on a node."""


def rejected(rejections: Iterable[Rejection], n_rows: int) -> Bools:
    """(n_rows,) nodes that are rejected for any reason."""
    nodes = np.zeros(n_rows, dtype=bool)
    for rejection in rejections:
        nodes |= rejection.nodes
    return nodes
