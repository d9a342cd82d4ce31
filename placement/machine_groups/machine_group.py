"""Filter MachineGroup: machines kept for the pods that name them, and pods that go nowhere else.

Node label `forecast-scheduler.io/machine-group: batch` makes a node one of the group; pods name groups in the
annotation of the same name, several separated by commas. Unlike a taint with a toleration it works both ways.

Groups may have owners, and lend what these leave idle (docs/use/machine-groups.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from base.arrays import Bools, Ints
from kube.objects.objects import PodInfo
from placement.filters.annotations import MACHINE_GROUP, comes_with_node
from placement.filters.filter import ClusterView, Rejection
from placement.filters.rejections import found
from placement.index.node_labels import LabelColumn
from placement.machine_groups.lending_limit import may_still_borrow
from placement.machine_groups.membership import Membership, Standing, asks_to_borrow

_REASONS: Final = {
    Standing.RESERVED: "node(s) belonged to a machine group that the pod does not name",
    Standing.NOT_OWNER: "node(s) belonged to a machine group that the pod names and is not an owner of",
    Standing.TOO_IMPORTANT: "node(s) belonged to a machine group that lends only to pods of a lower priority",
    Standing.ELSEWHERE: "node(s) belonged to no machine group, the pod names one",
}
_KEPT: Final = "node(s) belonged to a machine group that keeps what it has left for its owners"


class MachineGroup:
    """Unresolvable. An empty label, or an empty annotation, is none. Pods of a DaemonSet pass.

    No pod has to go for a pod that borrows: it takes what is left over. Owners are not rejected here because of pods
    that borrowed; whether there is room is for other filters to say, and preemption makes some.
    """

    name = "MachineGroup"

    def __init__(
        self, membership: Membership | None = None, *, is_wanted: Callable[[str], bool] = lambda group: False
    ) -> None:
        """
        membership : rules of groups; None = any pod may name any group
        is_wanted  : whether owners wait for machines of a group, which lends nothing then (GroupUse)
        """
        self.membership, self._is_wanted = membership or Membership(()), is_wanted

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Evaluated per distinct group."""
        standing = self._standing(pod, view)
        if standing is None:
            return ()
        rejections = _outside(standing, view)
        if (standing == Standing.BORROWED).any():
            column = view.index.labels.column(MACHINE_GROUP)
            rejections += found(self._kept(pod, standing, column, view), view, _KEPT, preemptible=False)
        return rejections

    def lasting(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Rejections that hold however many machines the groups have free: the pod is no member there."""
        standing = self._standing(pod, view)
        return () if standing is None else _outside(standing, view)

    def is_idle(self, pod: PodInfo, view: ClusterView) -> bool:
        """Whether pods like it that land change nothing: what is kept free is that of a group, not of a node."""
        return not asks_to_borrow(pod) or not any(group.keep_free for group in self.membership.lenders)

    def _standing(self, pod: PodInfo, view: ClusterView) -> Ints | None:
        """(n_rows,) Standing of the pod on each node; None = no group matters to it."""
        column = view.index.labels.column(MACHINE_GROUP)
        if comes_with_node(pod) or not (column.names or self.membership.named_by(pod)):
            return None
        return self.membership.standing(pod, column)

    def _kept(self, pod: PodInfo, standing: Ints, column: LabelColumn, view: ClusterView) -> Bools:
        """(n_rows,) nodes of groups that lend no more to pods like it."""
        kept = np.zeros(view.n_rows, dtype=bool)
        borrowed = standing == Standing.BORROWED
        for group in self.membership.lenders:
            of_group = borrowed & (column.values == column.number_of.get(group.name, len(column.names)))
            if of_group.any() and (self._is_wanted(group.name) or not may_still_borrow(pod, group, view)):
                kept |= of_group
        return kept


def _outside(standing: Ints, view: ClusterView) -> list[Rejection]:
    """Of nodes where the pod is no member of the group."""
    rejections: list[Rejection] = []
    for one, reason in _REASONS.items():
        rejections += found(np.asarray(standing == one), view, reason, preemptible=False)
    return rejections
