"""Filter MachineGroup: machines kept for the pods that name them, and pods that go nowhere else.

Node label `forecast-scheduler.io/machine-group: batch` makes a node one of the group; pods name groups in the
annotation of the same name, several separated by commas. Unlike a taint with a toleration it works both ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from extender.filters.annotations import MACHINE_GROUP, comes_with_node, names_in
from extender.filters.filter import ClusterView, Rejection
from extender.filters.found import found
from scorer.cluster.objects import PodInfo

__all__ = ["MachineGroup"]

_RESERVED: Final = "node(s) belonged to a machine group that the pod does not name"
_ELSEWHERE: Final = "node(s) belonged to no machine group, the pod names one"


class MachineGroup:
    """Unresolvable. An empty label, or an empty annotation, is none. Pods of a DaemonSet are let through."""

    name = "MachineGroup"

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Evaluated per distinct group."""
        column = view.index.labels.column(MACHINE_GROUP)
        named = names_in(pod, MACHINE_GROUP)
        if comes_with_node(pod) or not (named or column.names):
            return ()
        grouped = column.having(bool)
        wanted = frozenset(named)
        reserved = grouped & ~column.having(wanted.__contains__)
        rejections = found(reserved, view, _RESERVED, preemptible=False)
        return (*rejections, *found(np.asarray(~grouped), view, _ELSEWHERE, preemptible=False)) if named else rejections
