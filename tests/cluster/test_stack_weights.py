"""The stack weight of each pool of nodes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from base.arrays import Bools
from cluster.tables.state import ClusterState
from cluster.water_level import Stacking, StackWeights
from scorer.service.scorer_service_metrics import ScorerServiceMetrics
from scorer.service.scorer_service_settings import ScorerServiceOptions
from tests.kube.api_objects import GIB, node, pod
from tests.scorer.live_cluster import pod_of
from tests.scorer.scorer_at import LiveScorer

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
    weights = StackWeights(Stacking())
    weights.follow(requested(9.0, 9.0, 1.0), POOLS)
    assert (weights.of("first"), weights.of("second")) == (1.0, 0.0)
    weights = StackWeights(Stacking())
    weights.follow(requested(6.0, 6.0, 4.0), POOLS)
    assert (weights.of("first"), weights.of("second")) == (1.0, 0.0)
    # Both levels are 0.57 now: one came from above, the other from below.
    weights.follow(requested(5.7, 5.7, 5.7), POOLS)
    assert weights.of("first") == 1.0
    assert 0.8 < weights.of("second") < 0.9
    weights = StackWeights(Stacking())
    weights.follow(requested(9.0, 9.0, 9.0), {"none": np.zeros(3, dtype=bool)})
    assert weights.of("none") == weights.of("never heard of") == 0.0


def test_the_water_level_is_in_the_status_and_a_metric() -> None:
    # Two of four nodes are full, however much the pod of one requests beyond it.
    pods = [pod_of(0, "large", "node-0", cpu=40.0), pod_of(0, "absurd", "node-1", cpu=1e18)]
    tested = LiveScorer(pods=pods, without_model=True)
    (pool,) = tested.scorer.status().water_levels
    assert (pool.pool, pool.water_level, pool.stack_weight) == ("", 0.5, 0.5)
    text = (
        ScorerServiceMetrics(tested.scorer, ScorerServiceOptions(node_metrics=False, service_metrics=False))
        .render()
        .decode()
    )
    assert 'forecast_water_level{pool=""} 0.5' in text and 'forecast_stack_weight{pool=""} 0.' in text
