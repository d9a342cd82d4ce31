"""A large cluster for the planner: services with evening peaks, some nodes hot by chance, all resources counted."""

from __future__ import annotations

import numpy as np

from base.arrays import Floats32
from forecast.hot_share import HOT_SHARE
from forecast.resources import MEMORY, RESOURCES
from rebalancer.planning.problem import Budget, PlannedPods, Problem
from testing.rebalancing.random_problems import NODE


def large_problem(n_nodes: int, n_pods: int, n_slots: int, *, used: float = 0.45, seed: int = 0) -> Problem:
    """Return a problem with one profile per ten pods, where one percent and a half of the pods may be moved.

    used : share of the cluster's capacity that is used at its highest half hour
    """
    rng = np.random.default_rng(seed)
    scale = rng.choice([1.0, 2.0, 4.0], n_nodes)
    n_services = max(n_pods // 10, 1)
    service = rng.integers(0, n_services, n_pods)
    node = rng.choice(n_nodes, n_pods, p=scale / scale.sum())
    usage = _usage(n_services, n_slots, rng)
    wanted = used * NODE * scale.sum()
    highest = np.tensordot(np.bincount(service, minlength=n_services).astype(np.float32), usage, 1).max(axis=1)
    usage *= (wanted / highest).astype(np.float32)[:, None]
    load = np.zeros((n_nodes, len(RESOURCES), n_slots), dtype=np.float32)
    for pod in range(n_pods):
        load[node[pod]] += usage[service[pod]]
    requests = usage[service, :2].max(axis=2).astype(np.float64) * 1.2  # (n_pods, 2)
    requested = np.zeros((n_nodes, 2))
    np.add.at(requested, node, requests)
    budget = int(0.015 * n_pods)
    return Problem(
        load=load,
        margin=load * np.float32(0.1),
        capacity=scale[:, None] * NODE,
        free=np.maximum(scale[:, None] * NODE[:2] - requested, 0.0),
        usage=usage,
        pods=PlannedPods(
            node=node,
            profile=service,
            requests=requests,
            service=service,
            namespace=service % 100,
            shape=service % 20,
            cost=np.where(rng.random(n_pods) < 0.1, np.inf, rng.uniform(0.0, 1.0, n_pods)),
        ),
        allowed=rng.random((20, n_nodes)) < 0.9,
        budget=Budget(budget, np.full(n_services, 2), np.full(100, max(budget // 20, 1)), 3),
        hot=HOT_SHARE,
    )


def _usage(n_services: int, n_slots: int, rng: np.random.Generator) -> Floats32:
    """(n_services, n_resources, n_slots) without a unit."""
    hours = np.arange(n_slots) / 2 % 24
    peak = np.where(rng.random(n_services) < 0.7, rng.normal(20, 2, n_services), rng.uniform(0, 24, n_services))
    distance = np.abs((hours - peak[:, None] + 12) % 24 - 12)
    curve = (0.25 + np.exp(-((distance / 3) ** 2))).astype(np.float32)  # (n_services, n_slots)
    level = rng.lognormal(0.0, 0.8, (n_services, 1)) * rng.lognormal(0.0, 0.5, (n_services, len(RESOURCES)))
    usage = level.astype(np.float32)[:, :, None] * curve[:, None, :]
    usage[:, MEMORY] = level[:, MEMORY, None]
    return usage
