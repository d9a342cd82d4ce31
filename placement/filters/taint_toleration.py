"""Filter TaintToleration: nodes with a taint NoSchedule or NoExecute that the pod does not tolerate; and whether a
toleration covers a taint.

Source: framework/plugins/tainttoleration/taint_toleration.go.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Final

import numpy as np

from base.arrays import Bools, Ints
from kube.objects.constraints import Toleration
from kube.objects.objects import PodInfo, Taint
from placement.filters.filter import ClusterView, NodeFilter, Rejection
from placement.filters.rejections import found
from placement.index.node_facts import NodeTaints

HARD_EFFECTS: Final = frozenset({"NoSchedule", "NoExecute"})
"""Effects that keep pods away (DoNotScheduleTaintsFilterFunc in framework/plugins/helper/taint.go)."""

_REASON: Final = "node(s) had untolerated taint(s)"


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether it does. Gt and Lt tolerate nothing: TaintTolerationComparisonOperators is alpha, and off, in 1.36."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator == "Equal" and toleration.value == taint.value


def any_tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether one of them does."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def tolerating_nodes(tolerations: Collection[Toleration], taints: NodeTaints, effects: Collection[str]) -> Bools:
    """(n_rows,) nodes whose every taint of these effects is tolerated."""
    return np.asarray(untolerated_counts(tolerations, taints, effects) == 0)


def untolerated_counts(tolerations: Collection[Toleration], taints: NodeTaints, effects: Collection[str]) -> Ints:
    """(n_rows,) number of taints of these effects that are not tolerated."""
    # A pod may carry a long list; those for other keys, or for other effects, need not be looked at for each taint.
    every_key = [one for one in tolerations if not one.key]
    by_key: dict[str, list[Toleration]] = {}
    for one in tolerations:
        if one.key:
            by_key.setdefault(one.key, []).append(one)

    def is_counted(taint: Taint) -> bool:
        return taint.effect in effects and not any_tolerates((*every_key, *by_key.get(taint.key, ())), taint)

    known: dict[Taint, bool] = {}
    counts = np.zeros(len(taints.sets), dtype=np.int64)
    for number, of_nodes in enumerate(taints.sets):
        for taint in of_nodes:
            counted = known.get(taint)
            if counted is None:
                counted = known[taint] = is_counted(taint)
            counts[number] += counted
    return counts[taints.set_of]


class TaintToleration(NodeFilter):
    """Unresolvable: evicting pods removes no taint."""

    name = "TaintToleration"

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """One evaluation per distinct set of taints."""
        if len(view.index.taints.sets) == 1:
            return ()
        return found(~tolerated(pod.constraints.tolerations, view), view, _REASON, preemptible=False)

    def lasting(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        return self.filter(pod, view)

    def lasting_key(self, pod: PodInfo) -> Hashable:
        return pod.constraints.tolerations


def tolerated(tolerations: Collection[Toleration], view: ClusterView, effects: Collection[str] = HARD_EFFECTS) -> Bools:
    """(n_rows,) nodes without a taint of these effects that is not tolerated."""
    return tolerating_nodes(tolerations, view.index.taints, effects)
