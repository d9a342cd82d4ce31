"""Filter SchedulingGates: a pod with gates goes nowhere. Source: framework/plugins/schedulinggates/scheduling_gates.go.

Upstream keeps such a pod out of the queue (PreEnqueue); an extender is never asked about it.
"""

from __future__ import annotations

from collections.abc import Sequence

from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView, Rejection
from placement.filters.rejections import every_node


class SchedulingGates:
    """Unresolvable: the controller that set the gates removes them."""

    name = "SchedulingGates"

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """All nodes or none."""
        if not pod.gates:
            return ()
        return every_node(view, f"waiting for scheduling gates: [{' '.join(pod.gates)}]")
