"""The descheduler's LowNodeUtilization on actual usage (v0.36, pkg/framework/plugins/nodeutilization).

A node is over-utilized above 80 % and under-utilized below 50 % of capacity: `targetThresholds` and `thresholds` that
suit the hot share here. With Prometheus as its source it reads one number per node and no usage of pods. It then evicts
one pod from each over-utilized node in a cycle, whichever comes first, and chooses no target. Nothing happens if no
node is under-utilized, or if all are.

Here the number is the highest share of the resources that make a node hot, the best query that a user could write, and
a cycle is a half hour, since the recorded data are half hours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from benchmarks.movers.live_cluster import live_cluster
from forecast.resources import HOT_RESOURCES
from rebalancer.trajectory.play import PlayedMove, Relocation
from scorer.replay.recording import Recording
from scorer.replay.running_cluster import RunningCluster

UNDER, OVER = 0.5, 0.8
PER_NODE: Final = 1


class LowNodeUtilization:
    """Implements Mover."""

    def __init__(self, recording: Recording, seed: int) -> None:
        """
        seed : which pod comes first on a node, among pods of one priority: the API server's order, so any
        """
        self._recording, self._seed = recording, seed

    def relocate(
        self, slot: int, cluster: RunningCluster, past: Mapping[int, Sequence[PlayedMove]]
    ) -> Sequence[Relocation]:
        live = live_cluster(slot, cluster, self._recording)
        share = live.node_share[:, list(HOT_RESOURCES)].max(axis=1)
        under, over = share < UNDER, share > OVER
        if not under.any() or under.all() or not over.any():
            return ()
        rng = np.random.default_rng((self._seed, slot, 4))
        result = []
        for node in np.flatnonzero(over)[np.argsort(-share[over], kind="stable")].tolist():
            # Priority and quality of service are alike: the history knows neither.
            there = rng.permutation(live.pods[live.node == node])
            result += [Relocation(int(pod)) for pod in there[:PER_NODE]]
        return result
