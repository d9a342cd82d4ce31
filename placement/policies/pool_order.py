"""NodePreference PoolOrder: pools of nodes in a strict order, "A while A has room, then B", as a policy lists them.

A pool has room while one of its nodes passes all filters: a ceiling of predicted peaks or the bounds of co-location end
it as requests do. Nodes of no pool come last. Nothing is rejected: for that there are node affinity and filters.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from base.arrays import Ints
from kube.objects.constraints import LabelSelector
from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView
from placement.index.node_labels import rows_meeting
from placement.plugins import NodePreference, Preferred
from scorer.scoring_policy import opts_out


class PoolOrder(NodePreference):
    """Implements NodePreference.

    pools : selectors of labels of nodes, the pool that comes first first; a node is of the first that it matches
    """

    name = "PoolOrder"

    def __init__(self, pools: Sequence[LabelSelector]) -> None:
        self.pools = tuple(pools)

    def places(self, view: ClusterView) -> Ints:
        """(n_rows,) place in the order of the pool that each node is of: 0, 1, ...; that of no pool is the last."""
        places = np.full(view.n_rows, len(self.pools), dtype=np.int64)
        for place, pool in reversed(list(enumerate(self.pools))):
            places[rows_meeting(pool.requirements, view.index.labels, view.n_rows)] = place
        return places

    def prefer(self, pod: PodInfo, n_pods: int, view: ClusterView, rows: Ints) -> Preferred:
        """See NodePreference. A pod that opts out is placed by kube-scheduler's scores alone."""
        if opts_out(pod):
            return Preferred(rows, n_pods)
        places = self.places(view)[rows]
        return Preferred(rows[places == places.min()], n_pods)

    def tells_apart(self, pod: PodInfo) -> Hashable:
        """Nothing: like pods are of one policy."""
        return None
