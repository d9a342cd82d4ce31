"""Predicted peaks of a few nodes: the exact objective, where `energy` has already picked who is worth a closer look.

    cost = sum_r w_r C[n, r] / mean C_r * sum_points weight * ((x + v / C)^4 - x^4),    x = predicted load / C

The fourth power follows the highest points almost as a maximum would, and still sees the second-highest hour; the
maximum itself is blind to everything below it. Weighing by capacity makes nodes of all sizes aim for the same share.
Of the nodes with the lowest energy 16 are looked at: all of them gave no better placement, 8 a slightly worse one
(docs/understand/placement.md).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from base.arrays import AnyFloats, Floats
from forecast.resources import MEMORY, RESOURCES

BEST_NODES: Final = 16
"""Nodes whose predicted load is looked at exactly, after the energy has ranked all."""

RESOURCE_WEIGHTS: Final = np.array([0.25 if i == MEMORY else 1.0 for i in range(len(RESOURCES))])
"""Memory does not make a node hot, but left out altogether it piles up on nodes that do little else: 0.25 cut the
spread of CPU peaks by a third and memory peaks from 154 % to 109 % of capacity, for 0.1 to 0.2 point of hot share
(docs/understand/placement.md)."""

MEMORY_LIMIT: Final = 1.0
"""Nodes predicted to run out of memory are passed over while there are others: pods would be killed. A lower limit made
CPU peaks less even."""


def power_growth(
    share: AnyFloats,
    pod_share: AnyFloats,
    point_weights: AnyFloats,
    node_weights: AnyFloats,
) -> Floats:
    """Growth of the weighted sum of fourth powers when the pod lands: (n_nodes,), lower is better.

    share         : (n_nodes, n_resources, n_points) predicted load as share of capacity
    pod_share     : (n_nodes, n_resources, n_points) what the pod adds to it
    point_weights : (n_points,)
    node_weights  : (n_nodes, n_resources) w_r * C[n, r] / mean C_r; 0 where capacity is no limit
    """
    # With d = b^2 - a^2 = v (2 a + v) it is b^4 - a^4 = d (2 a^2 + d): no power of a large array, no cancellation.
    # In as few passes and arrays as it takes: half of the time is memory.
    twice = 2 * share
    d = twice + pod_share
    d *= pod_share
    growth = twice * share + d
    growth *= d
    of_resources = growth @ point_weights  # (n_nodes, n_resources)
    return np.asarray((of_resources * node_weights).sum(axis=1))
