"""OpenShift's profile KubeVirtRelieveAndMigrate: LowNodeUtilization by deviation from the mean (snapshot 945dcaa9d).

    value = min(1, 3 sqrt(d_cpu^2 + d_memory^2)), d = a node's share less the mean of all nodes, at least 0

A node is over-utilized if its value exceeds the mean of the values by more than 10 points, and under-utilized if it is
below that mean (asymmetric deviation thresholds, 0 and 10 %). At most 5 pods are evicted in all, and 2 from a node; the
node of the highest value comes first, any of its pods. No target is chosen.

Pressure stalls (PSI) would be two more terms of the root: the recorded clusters have none. Neither are the soft taints
played. A cycle is a half hour (deschedulingIntervalSeconds 1800), and the noise filter over 5 minutes has no effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from forecast.arrays import Floats
from forecast.resources import CPU, MEMORY
from rebalancer.planning.cooldown import PastMove
from rebalancer.trajectory.live_cluster import live_cluster
from rebalancer.trajectory.movers import Relocation
from scorer.replay.recording import Recording
from scorer.replay.running_cluster import RunningCluster

DEVIATION: Final = 0.1
IN_ALL: Final = 5
PER_NODE: Final = 2
_AMPLIFIED: Final = 3.0


def combined_deviation(share: Floats) -> Floats:
    """The recording rule's value of each node, from shares of CPU and memory in use: (n_nodes, 2) -> (n_nodes,)."""
    above = np.maximum(share - share.mean(axis=0), 0.0)
    return np.asarray(np.minimum(_AMPLIFIED * np.sqrt((above**2).sum(axis=1)), 1.0))


class RelieveAndMigrate:
    """Implements Mover."""

    def __init__(self, recording: Recording, seed: int) -> None:
        """
        seed : which pod comes first on a node
        """
        self._recording, self._seed = recording, seed

    def relocate(
        self, slot: int, cluster: RunningCluster, past: Mapping[int, Sequence[PastMove]]
    ) -> Sequence[Relocation]:
        live = live_cluster(slot, cluster, self._recording)
        value = combined_deviation(live.node_share[:, [CPU, MEMORY]])
        under, over = value < value.mean(), value > value.mean() + DEVIATION
        if not under.any() or not over.any():
            return ()
        rng = np.random.default_rng((self._seed, slot, 5))
        result: list[Relocation] = []
        for node in np.flatnonzero(over)[np.argsort(-value[over], kind="stable")].tolist():
            there = rng.permutation(live.pods[live.node == node])
            result += [Relocation(int(pod)) for pod in there[:PER_NODE]]
        return result[:IN_ALL]
