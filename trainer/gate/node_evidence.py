"""Evidence on resources that only nodes are measured for, such as log bytes of a collector: daily peaks of nodes.

The usage of a single pod is unknown there, so the comparison is of what placement acts upon: the load of each node from
the pods that really ran on it that day, as `PeakModel` sums it up, with the calibrated z for both quantiles.
"""

from __future__ import annotations

import numpy as np

from base.arrays import Bools
from forecast.history import History


def node_only(history: History, n_days: int) -> Bools:
    """Resources of which nodes were measured and no pod was, over the last days: (n_resources,)."""
    pods = np.isfinite(history.usage_per_pod[:, :, -n_days:]).any(axis=(0, 2, 3))
    nodes = np.isfinite(history.node_usage[:, :, -n_days:]).any(axis=(0, 2, 3))
    return np.asarray(nodes & ~pods)
