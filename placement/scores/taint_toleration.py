"""Score TaintToleration: fewer taints PreferNoSchedule that the pod does not tolerate are better.

Source: framework/plugins/tainttoleration/taint_toleration.go.
"""

from __future__ import annotations

from typing import Final

from base.arrays import Ints
from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView
from placement.filters.taint_toleration import untolerated_counts
from placement.scores.node_score import NodeScore, default_normalize

_SOFT: Final = frozenset({"PreferNoSchedule"})


class TaintTolerationScore(NodeScore):
    """100 for a node without such taints, 0 for the one with most."""

    name = "TaintToleration"

    def score(self, pod: PodInfo, view: ClusterView, rows: Ints) -> Ints:
        counts = untolerated_counts(pod.constraints.tolerations, view.index.taints, _SOFT)
        return default_normalize(counts[rows], reverse=True)
