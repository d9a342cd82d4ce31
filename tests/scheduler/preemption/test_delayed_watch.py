"""Many preemptors at once beside a late watch and an API server that fails: no pod is evicted that need not be."""

from __future__ import annotations

import pytest

from tests.scheduler.preemption.delayed_cluster import DelayedCluster, ours
from tests.scheduler.preemption.made_up import node

N_NODES, PER_NODE, N_HIGH = 5, 8, 10
SEEDS = [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 6))]


@pytest.mark.parametrize("owner", ["", "set"], ids=["bare", "replicas"])
@pytest.mark.parametrize(("fails", "lost"), [(0.0, 0.0), (0.3, 0.0), (0.0, 0.6), (0.3, 0.8)])
@pytest.mark.parametrize("seed", SEEDS)
def test_many_at_once_evict_what_they_need_and_no_more(seed: int, fails: float, lost: float, owner: str) -> None:
    places = [(row, place) for row in range(N_NODES) for place in range(PER_NODE)]
    low = [ours(f"low-{row}-{place}", f"n{row}", cpu=0.5, priority=10, started=None) for row, place in places]
    nodes = [node(f"n{row}", cpu=4.0) for row in range(N_NODES)]
    cluster = DelayedCluster(nodes, low, seed=seed, fails=fails, lost=lost)
    cluster.create(*(ours(f"high-{i}", cpu=1.0, priority=100, owner=owner) for i in range(N_HIGH)))
    cluster.run()
    assert len(cluster.evicted) == 2 * N_HIGH, cluster.evicted
