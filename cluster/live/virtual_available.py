"""VirtualAvailable: what a node has left now, pods that no metric has seen yet included."""

from __future__ import annotations

import numpy as np

from base.arrays import AnyFloats, Floats
from cluster.predicted.limits import limited


def virtual_available(capacity: AnyFloats, usage: AnyFloats, charged: AnyFloats) -> Floats:
    """capacity - usage at the last metric - virtual requests not yet seen in it: (n_nodes, n_resources).

    May fall below 0. NaN if there is no limit or no measurement. All arguments (n_nodes, n_resources).
    """
    return np.where(limited(capacity), capacity - usage - charged, np.nan)


def live_error(usage: AnyFloats, expected: AnyFloats, unseen: AnyFloats) -> Floats:
    """Usage beyond what was expected of what the metric has seen: (n_nodes, n_resources), NaN = not measured.

    expected : of base and pods, in the window of the metric
    unseen   : the part of it that the metric has not seen yet
    """
    return np.asarray(usage - (expected - unseen), dtype=np.float64)
