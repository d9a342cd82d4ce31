"""What a filter is: a pod and the cluster in, rejections out. "No" is a value, not an exception.

A filter also states its own facts: what may change its answer, and what others may assume of it. The defaults are slow
and right, whatever the filter does.

The statuses are those of staging/src/k8s.io/kube-scheduler/framework/interface.go: `preemptible` distinguishes
Unschedulable (evicting pods may help) from UnschedulableAndUnresolvable (it cannot).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from base.arrays import Bools, Ints
from cluster.follower import Follower
from cluster.tables.state import ClusterState
from cluster.tracking import TrackedCluster
from kube.decoding.decoding import Kind
from kube.objects.objects import PodInfo
from placement.cluster_events import NODE_EVENTS, ClusterEvent, EventKind, Hint, is_another_node
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


class Filter(ABC):
    """A filter, stateless: the same pod and cluster give the same answer.

    name          : that of the plugin upstream, as in a KubeSchedulerConfiguration
    reads         : kinds of objects that it needs in addition to nodes and pods
    woken_by      : kinds of events that may make it accept a pod that it rejected; `hint` takes a closer look
    by_requests   : whether it rejects by what pods request alone, which preemption adds up by itself
    knows_domains : whether `domains` may name any
    knows_victims : whether `least_victims` may name any
    """

    name: str
    reads: Sequence[Kind] = ()
    woken_by: frozenset[EventKind] = frozenset(EventKind)
    by_requests: bool = False
    knows_domains: bool = False
    knows_victims: bool = False

    @abstractmethod
    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Why the pod cannot go to which nodes; nothing = it can go anywhere. The pod itself never counts against it:
        it does not sit on a node."""

    def trouble(self) -> str:
        """Return why pods went on without it lately, in a sentence; '' = they did not."""
        return ""

    # Nodes that pods could use, whatever sits there (placement/usable_nodes.py)

    def lasting(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Rejections that no pod that comes or goes changes; by default none is known to be."""
        return ()

    def lasting_key(self, pod: PodInfo) -> Hashable:
        """Return all that `lasting` reads of a pod."""
        return None

    # The queue

    def hint(self, pod: PodInfo, event: ClusterEvent) -> Hint:
        """Whether an event of `woken_by` may make it accept the pod. Quick: asked under the lock of the tables."""
        return Hint.of(event.kind in self.woken_by)

    # Like pods (kube/objects/pod_shape.py) that are placed one after the other

    def tells_apart(self, pod: PodInfo) -> Hashable:
        """Return what its answer depends on in addition to what like pods share, such as the owner or the age; None =
        nothing, at the moment. Quick: asked of every pod. By default each pod is of its own kind.
        """
        return pod.uid

    def ignores_like_pods(self, pod: PodInfo, view: ClusterView) -> bool:
        """Whether like pods that land leave its answer as it was, but for nodes that are full by `room`."""
        return False

    def room(self, pod: PodInfo, view: ClusterView, rows: Ints) -> Ints | None:
        """(n_nodes,) pods like it that it lets onto each of these nodes, which it passes, one after the other; None =
        it sets no limit."""
        return None

    # Preemption

    def needs_company(self, pod: PodInfo, view: ClusterView) -> bool:
        """Whether it may come to reject a node because a pod has left it."""
        return True

    def domains(self, pod: PodInfo, view: ClusterView) -> Sequence[Bools]:
        """(n_rows,) each, the largest first: sets of nodes of which the pod's gang has to take one. None = the pod is
        in no such gang, or members of it have chosen."""
        return ()

    def least_victims(
        self, pod: PodInfo, row: int, pods: Sequence[PodInfo], standing: Callable[[PodInfo], int]
    ) -> Sequence[PodInfo] | None:
        """Of `pods`, who may go and are the most important first, the cheapest to lose so that this filter lets the pod
        onto the node of the row; None = it would not if all of them went.

        standing : what counts as a pod's priority, see placement/pod_importance.py
        """
        return ()


class PlainFilter(Filter):
    """A filter that reads what like pods share, and never rejects a node because a pod has left it."""

    def tells_apart(self, pod: PodInfo) -> Hashable:
        return None

    def needs_company(self, pod: PodInfo, view: ClusterView) -> bool:
        return False


class NodeFilter(PlainFilter):
    """A filter that reads labels, taints and state of nodes, and nothing of the pods that sit there."""

    woken_by = NODE_EVENTS

    def hint(self, pod: PodInfo, event: ClusterEvent) -> Hint:
        return Hint.of(is_another_node(event))

    def ignores_like_pods(self, pod: PodInfo, view: ClusterView) -> bool:
        return True


def rejected(rejections: Iterable[Rejection], n_rows: int) -> Bools:
    """(n_rows,) nodes that are rejected for any reason."""
    nodes = np.zeros(n_rows, dtype=bool)
    for rejection in rejections:
        nodes |= rejection.nodes
    return nodes
