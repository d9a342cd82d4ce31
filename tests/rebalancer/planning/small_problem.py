"""Problems that tests write by hand: CPU alone, one request, as few words as possible."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forecast.hot_share import HOT_SHARE
from forecast.resources import CPU, RESOURCES
from rebalancer.planning.problem import Budget, PlannedPods, Problem


def cpu_problem(
    pods: Sequence[tuple[int, float]],
    capacities: Sequence[float],
    *,
    n_slots: int = 4,
    margin: float = 0.0,
    total: int = 10,
    cost: float = 0.0,
    room: float = np.inf,
) -> Problem:
    """Return a problem of pods (node, cores at all slots) on nodes of so many cores. Each pod is a service of its own.

    margin : cores between the expected load and its bound
    room   : cores of requests that each node has left; a pod requests what it uses
    """
    n_pods, n_nodes = len(pods), len(capacities)
    node = np.array([node for node, _ in pods], dtype=np.int64)
    cores = np.array([cores for _, cores in pods])
    usage = np.zeros((n_pods, len(RESOURCES), n_slots))
    usage[:, CPU] = cores[:, None]
    load = np.zeros((n_nodes, len(RESOURCES), n_slots))
    np.add.at(load, node, usage)
    margins = np.zeros_like(load)
    margins[:, CPU] = margin
    capacity = np.full((n_nodes, len(RESOURCES)), np.nan)
    capacity[:, CPU] = capacities
    every = np.arange(n_pods)
    columns = PlannedPods(
        node=node,
        profile=every,
        requests=cores[:, None],
        service=every,
        namespace=np.zeros(n_pods, dtype=np.int64),
        shape=np.zeros(n_pods, dtype=np.int64),
        cost=np.full(n_pods, cost),
    )
    return Problem(
        load=load,
        margin=margins,
        capacity=capacity,
        free=np.full((n_nodes, 1), room),
        usage=usage,
        pods=columns,
        allowed=np.ones((1, n_nodes), dtype=bool),
        budget=Budget(total, np.full(n_pods, total), np.array([total]), total),
        hot=HOT_SHARE,
    )
