"""NodePreference "MachineGroupOrder": nodes of the pod's own group, then those of no group, and borrowed ones last."""

from __future__ import annotations

from collections.abc import Hashable

from forecast.arrays import Ints
from kube.objects.objects import PodInfo
from placement.filters.annotations import MACHINE_GROUP, comes_with_node
from placement.filters.filter import ClusterView
from placement.machine_groups.lending import may_still_borrow
from placement.machine_groups.membership import Membership, Standing
from placement.plugins import Preferred


class MachineGroupOrder:
    """To be asked before preferences of other kinds: a card that suits better is no reason to borrow it."""

    name = "MachineGroupOrder"

    def __init__(self, membership: Membership) -> None:
        """membership: that of the filter."""
        self._membership = membership

    def prefer(self, pod: PodInfo, n_pods: int, view: ClusterView, rows: Ints) -> Preferred:
        """Borrowed nodes for no more pods than the groups have left for others."""
        column = view.index.labels.column(MACHINE_GROUP)
        if not column.names or comes_with_node(pod):
            return Preferred(rows, n_pods)
        standing = self._membership.standing(pod, column)[rows]
        best = standing.min()
        rows = rows[standing == best]
        if best != Standing.BORROWED:
            return Preferred(rows, n_pods)
        present = {column.names[number] for number in set(column.values[rows].tolist())}
        lenders = (group for group in self._membership.lenders if group.name in present)
        left = min((may_still_borrow(pod, group, view) for group in lenders), default=n_pods)
        return Preferred(rows, max(1, min(n_pods, left)))

    def tells_apart(self, pod: PodInfo) -> Hashable:
        """Nothing that like pods do not have in common: namespace, labels that do not identify, annotations."""
        return None
