"""Which node kube-scheduler will probably take: its own scores, as far as they can be computed, plus our points.

An extender does not learn the choice. Charging the node that we rank first would be wrong whenever kube-scheduler's
scores decide otherwise, and every pod that follows before the binding is seen would be advised on a cluster that does
not exist.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from base.arrays import Ints
from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView
from placement.scores.default_scores import default_scores

POINT_VALUE: Final = 10
"""What one point is worth in kube-scheduler's scores, at weight 1: MaxNodeScore / MaxExtenderPriority."""


def expected_choice(pod: PodInfo, view: ClusterView, rows: Ints, points: Ints, weight: int) -> int:
    """Position of the node that kube-scheduler will probably take; among equals it draws lots, here the first is named.

    rows, points : (n_nodes,), at least one; weight: of the extender in the KubeSchedulerConfiguration
    """
    return int(np.argmax(default_scores(pod, view, rows) + POINT_VALUE * weight * points))
