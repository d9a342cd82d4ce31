"""Filter TaintToleration: nodes with a taint NoSchedule or NoExecute that the pod does not tolerate.

Source: framework/plugins/tainttoleration/taint_toleration.go.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from base.arrays import Bools
from kube.objects.constraints import Toleration
from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView, Rejection
from placement.filters.rejections import found
from placement.filters.tolerations import HARD_EFFECTS, tolerating_nodes

_REASON: Final = "node(s) had untolerated taint(s)"


class TaintToleration:
    """Unresolvable: evicting pods removes no taint."""

    name = "TaintToleration"

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """One evaluation per distinct set of taints."""
        if len(view.index.taints.sets) == 1:
            return ()
        return found(~tolerated(pod.constraints.tolerations, view), view, _REASON, preemptible=False)


def tolerated(tolerations: Collection[Toleration], view: ClusterView, effects: Collection[str] = HARD_EFFECTS) -> Bools:
    """(n_rows,) nodes without a taint of these effects that is not tolerated."""
    return tolerating_nodes(tolerations, view.index.taints, effects)
