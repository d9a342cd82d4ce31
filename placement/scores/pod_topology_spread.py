"""PodTopologySpread: constraints with whenUnsatisfiable ScheduleAnyway, and those every scheduler applies by default.

Source: framework/plugins/podtopologyspread/scoring.go. A pod without constraints whose controller is a ReplicaSet,
StatefulSet or ReplicationController is spread over hostnames (skew 3) and zones (skew 5). Which pods then count,
kube-scheduler reads from the selectors of that controller and of the pod's Services; here it is the pods of the same
controller, those that its selector chooses.
"""

from __future__ import annotations

import numpy as np

from base.arrays import Ints
from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView
from placement.scores.soft_spread import SoftSpread, soft_constraints


class PodTopologySpread:
    """Few matching pods in the node's domains are good; domains of which there are many weigh more (ln)."""

    name = "PodTopologySpread"

    def score(self, pod: PodInfo, view: ClusterView, rows: Ints) -> Ints:
        """Nodes that lack a key of the pod's own constraints have 0; all have 0 where there is no constraint."""
        if not soft_constraints(pod) or not len(rows):
            return np.zeros(len(rows), dtype=np.int64)
        spread = SoftSpread(pod, view, rows)
        return np.array(spread.scores(), dtype=np.int64)[spread.kind]
