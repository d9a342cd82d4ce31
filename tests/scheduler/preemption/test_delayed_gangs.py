"""Gangs that preempt beside a late watch and an API server that fails: no pod is evicted that need not be."""

from __future__ import annotations

import random

import pytest

from tests.scheduler.preemption.delayed_cluster import DelayedCluster, ours
from tests.scheduler.preemption.gang_world import gang, of_gang
from tests.scheduler.preemption.made_up import node

N_NODES, PER_NODE = 5, 8
SEEDS = [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 6))]


def cluster_of(seed: int, fails: float, lost: float, *, victim_gang: bool = False) -> DelayedCluster:
    places = [(row, place) for row in range(N_NODES) for place in range(PER_NODE)]
    low = [ours(f"low-{row}-{place}", f"n{row}", cpu=0.5, priority=10, started=None) for row, place in places]
    if victim_gang:  # of the lowest priority: it goes first, and whole
        chosen = random.Random(seed).sample(range(len(low)), 8)
        low = [
            of_gang(ours(one.name, one.node, cpu=0.5, priority=5, started=None), "batch") if at in chosen else one
            for at, one in enumerate(low)
        ]
    nodes = [node(f"n{row}", cpu=4.0) for row in range(N_NODES)]
    groups = [gang("one", 4), gang("two", 6), gang("huge", 41), gang("batch", 8)]
    return DelayedCluster(nodes, low, seed=seed, fails=fails, lost=lost, groups=groups, restless=True)


@pytest.mark.parametrize(("fails", "lost"), [(0.0, 0.0), (0.3, 0.0), (0.0, 0.6), (0.3, 0.8)])
@pytest.mark.parametrize("seed", SEEDS)
def test_gangs_at_once_evict_what_they_need_and_no_more(seed: int, fails: float, lost: float) -> None:
    cluster = cluster_of(seed, fails, lost)
    for name, n_members in (("one", 4), ("two", 6)):
        cluster.create(*(of_gang(ours(f"{name}-{i}", cpu=1.0, priority=100), name) for i in range(n_members)))
    cluster.create(*(ours(f"single-{i}", cpu=1.0, priority=100) for i in range(2)))
    cluster.run()
    assert len(cluster.evicted) == 2 * 12, cluster.evicted


@pytest.mark.parametrize("lost", [0.0, 0.6])
@pytest.mark.parametrize("seed", range(4))
def test_a_victim_gang_goes_whole_and_its_room_is_used(seed: int, lost: float) -> None:
    cluster = cluster_of(seed, 0.0, lost, victim_gang=True)
    cluster.create(*(of_gang(ours(f"two-{i}", cpu=0.5, priority=100), "two") for i in range(6)))
    cluster.run()
    assert len(cluster.evicted) == 8 and {cluster.pods.get(name) for name in cluster.evicted} == {None}


@pytest.mark.parametrize("seed", range(4))
def test_a_gang_that_never_fits_evicts_nobody(seed: int) -> None:
    cluster = cluster_of(seed, 0.0, 0.3)
    huge = [of_gang(ours(f"huge-{i}", cpu=0.5, priority=100), "huge") for i in range(41)]
    cluster.create(*huge)
    cluster.run(steps=1500)
    assert cluster.evicted == [] and set(cluster.waiting) == {one.name for one in huge}


@pytest.mark.parametrize("lost", [0.0, 0.5])
@pytest.mark.parametrize("seed", range(4))
def test_after_a_restart_nobody_is_evicted_twice(seed: int, lost: float) -> None:
    cluster = cluster_of(seed, 0.0, lost)
    cluster.create(*(of_gang(ours(f"two-{i}", cpu=1.0, priority=100), "two") for i in range(6)))
    cluster.run(until=lambda: len(cluster.evicted) >= 12 and not cluster.is_asking)
    cluster.restart()
    cluster.run()
    assert len(cluster.evicted) == 12, cluster.evicted
