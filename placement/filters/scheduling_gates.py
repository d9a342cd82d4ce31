"""Filter SchedulingGates: a pod with gates goes nowhere. Source: framework/plugins/schedulinggates/scheduling_gates.go.

Upstream keeps such a pod out of the queue (PreEnqueue); an extender is never asked about it.
"""

from __future__ import annotations

from collections.abc import Sequence

from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView, NodeFilter, Rejection
from placement.filters.rejections import every_node


class SchedulingGates(NodeFilter):
    """Unresolvable: the controller that set the gates removes them.

    open_gate : does not count, since who asks is the one to remove it
    """

    name = "SchedulingGates"

    def __init__(self, open_gate: str = "") -> None:
        self._open_gate = open_gate

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """All nodes or none."""
        closed = [gate for gate in pod.gates if gate != self._open_gate]
        return every_node(view, f"waiting for scheduling gates: [{' '.join(closed)}]") if closed else ()
