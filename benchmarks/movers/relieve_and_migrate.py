"""OpenShift's profile KubeVirtRelieveAndMigrate: LowNodeUtilization by deviation from the mean (snapshot 945dcaa9d).

    value = min(1, 3 sqrt(d_cpu^2 + d_memory^2)), d = a node's share less the mean of all nodes, at least 0

A node is over-utilized if its value exceeds the mean of the values by more than 10 points, and under-utilized if it is
below that mean (asymmetric deviation thresholds, 0 and 10 %). At most 5 pods are evicted in all, and 2 from a node; the
node of the highest value comes first, any of its pods that has cooled down. No target is chosen.

The profile enables the plugin KubevirtMigrationAware (openshift-virtualization/kubevirt-descheduler-plugins): a VM is
left alone for 15 minutes after a migration, twice as long for each further one in 48 hours, and 6 hours at most. Its
base is the duration of the migration where that is longer: here a move takes no time.

Pressure stalls (PSI) would be two more terms of the root: the recorded clusters have none. Neither are the soft taints
played. A cycle is a half hour (deschedulingIntervalSeconds 1800), so the noise filter over 5 minutes and the damping of
nodes that pods left in the last 10 minutes have no effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from base.arrays import Floats
from benchmarks.movers.live_cluster import live_cluster
from forecast.calendar import SLOT_MINUTES
from forecast.resources import CPU, MEMORY
from rebalancer.trajectory.play import PlayedMove, Relocation
from scorer.replay.recording import Recording
from scorer.replay.running_cluster import RunningCluster

DEVIATION: Final = 0.1
IN_ALL: Final = 5
PER_NODE: Final = 2
COOLDOWN, LONGEST_COOLDOWN, COUNTED = 15, 6 * 60, 48 * 60
"""Minutes: after the first migration, at most, and how long a migration counts."""
_AMPLIFIED: Final = 3.0


def combined_deviation(share: Floats) -> Floats:
    """The recording rule's value of each node, from shares of CPU and memory in use: (n_nodes, 2) -> (n_nodes,)."""
    above = np.maximum(share - share.mean(axis=0), 0.0)
    return np.asarray(np.minimum(_AMPLIFIED * np.sqrt((above**2).sum(axis=1)), 1.0))


def cools_down(moves: Sequence[PlayedMove], slot: int) -> bool:
    """Whether a pod with these moves behind it, oldest first, is left alone at the beginning of a slot."""
    if not moves:
        return False
    counted = sum((slot - move.slot) * SLOT_MINUTES < COUNTED for move in moves)
    rest: int = min(COOLDOWN * 2 ** max(counted - 1, 0), LONGEST_COOLDOWN)
    return (slot - moves[-1].slot) * SLOT_MINUTES < rest


class RelieveAndMigrate:
    """Implements Mover."""

    def __init__(self, recording: Recording, seed: int) -> None:
        """
        seed : which pod comes first on a node
        """
        self._recording, self._seed = recording, seed

    def relocate(
        self, slot: int, cluster: RunningCluster, past: Mapping[int, Sequence[PlayedMove]]
    ) -> Sequence[Relocation]:
        live = live_cluster(slot, cluster, self._recording)
        value = combined_deviation(live.node_share[:, [CPU, MEMORY]])
        under, over = value < value.mean(), value > value.mean() + DEVIATION
        if not under.any() or not over.any():
            return ()
        rng = np.random.default_rng((self._seed, slot, 5))
        result: list[Relocation] = []
        for node in np.flatnonzero(over)[np.argsort(-value[over], kind="stable")].tolist():
            there = rng.permutation(live.pods[live.node == node]).tolist()
            cool = [pod for pod in there if not cools_down(past.get(pod, ()), slot)]
            result += [Relocation(pod) for pod in cool[:PER_NODE]]
        return result[:IN_ALL]
