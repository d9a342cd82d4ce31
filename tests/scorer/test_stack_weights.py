"""The stack weight of each pool of nodes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from forecast.arrays import Bools
from kube.tables.state import ClusterState
from scorer.scores.options import ScoreParameters
from scorer.stack_weights import StackWeights
from tests.kube.api_objects import GIB, node, pod

FIRST, SECOND = np.array([True, True, False]), np.array([False, False, True])
POOLS: Mapping[str, Bools] = {"first": FIRST, "second": SECOND}


def requested(*cores: float) -> ClusterState:
    """Three nodes of 10 cores with this much requested on each."""
    state = ClusterState()
    for number, amount in enumerate(cores):
        state.put_node(node(f"node-{number}", cpu=10.0))
        state.put_pod(pod(f"p{number}", node=f"node-{number}", requests={"cpu": amount, "memory": GIB}))
    return state


def test_each_pool_stacks_by_its_own_fullness_and_hysteresis() -> None:
    weights = StackWeights(ScoreParameters())
    weights.follow(requested(9.0, 9.0, 1.0), POOLS)
    assert (weights.of("first"), weights.of("second")) == (1.0, 0.0)
    weights = StackWeights(ScoreParameters())
    weights.follow(requested(6.0, 6.0, 4.0), POOLS)
    assert (weights.of("first"), weights.of("second")) == (1.0, 0.0)
    # Both levels are 0.57 now: one came from above, the other from below.
    weights.follow(requested(5.7, 5.7, 5.7), POOLS)
    assert weights.of("first") == 1.0
    assert 0.8 < weights.of("second") < 0.9
    weights = StackWeights(ScoreParameters())
    weights.follow(requested(9.0, 9.0, 9.0), {"none": np.zeros(3, dtype=bool)})
    assert weights.of("none") == weights.of("never heard of") == 0.0
