"""How much stacking counts in each pool of nodes: a full pool stacks while an empty one next to it spreads."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from base.arrays import Bools, Floats
from cluster.tables.state import ClusterState
from scorer.scores.options import ScoreParameters
from scorer.scores.spread_or_stack import next_stack_weight, water_level


class StackWeights:
    """The stack weight of each pool, each with a hysteresis of its own. A pool starts with spreading."""

    def __init__(self, parameters: ScoreParameters) -> None:
        self._parameters = parameters
        self._weights: dict[str, float] = {}
        self.levels: Mapping[str, float] = {}
        """Water level of each pool: how full its nodes are by requests together, 0..1."""

    def of(self, pool: str) -> float:
        """0 = spread only, 1 = stack only; 0 for a pool that has no nodes yet."""
        return self._weights.get(pool, 0.0)

    def follow(self, state: ClusterState, pools: Mapping[str, Bools]) -> None:
        """Move each weight to the water level of its pool. pools: (n_rows,) nodes of each."""
        kinds, bounds = self._request_weights(state), self._parameters.water_levels
        requested, allocatable = state.requested, state.allocatable
        self.levels = {pool: water_level(requested[nodes], allocatable[nodes], kinds) for pool, nodes in pools.items()}
        self._weights = {pool: next_stack_weight(self.of(pool), level, bounds) for pool, level in self.levels.items()}

    def _request_weights(self, state: ClusterState) -> Floats:
        weights = np.zeros(len(state.kinds))
        for kind, weight in self._parameters.request_weights.items():
            if kind in state.kinds:
                weights[state.kinds[kind]] = weight
        return weights
