"""Random problems of the rebalancer: nodes of three sizes, peaks at many hours, tight rooms and budgets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from base.arrays import Floats, Ints
from forecast.hot_share import HOT_SHARE
from forecast.resources import CPU, MEMORY, RESOURCES
from rebalancer.planning.problem import Budget, PlannedPods, Problem

GIB = 1024.0**3
NODE = np.array([32.0, 128 * GIB, 5e8, 1e9, 1e7])
"""Capacity of the smallest node, in the order of forecast.resources."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large a problem is.

    used : share of the cluster's capacity that is used at its highest half hour, per resource about
    budget : moves in all
    """

    n_nodes: int
    n_pods: int
    n_services: int
    n_slots: int
    used: float
    budget: int


def small_size(rng: np.random.Generator) -> Size:
    """Return a size that an exact solver finishes within seconds."""
    n_nodes = int(rng.integers(4, 9))
    n_pods = n_nodes * int(rng.integers(4, 8))
    return Size(
        n_nodes=n_nodes,
        n_pods=n_pods,
        n_services=max(n_pods // 2, 1),
        n_slots=int(rng.integers(4, 13)),
        used=float(rng.uniform(0.45, 0.75)),
        budget=int(rng.integers(2, 9)),
    )


def random_problem(size: Size, rng: np.random.Generator) -> Problem:
    """Return a problem with some hot nodes. Memory and one or two more resources count; the others limit no node."""
    counted = [CPU, MEMORY, *rng.choice(np.arange(2, len(RESOURCES)), int(rng.integers(0, 3)), replace=False)]
    node_scale = rng.choice([1.0, 2.0, 4.0], size.n_nodes)
    capacity = node_scale[:, None] * NODE
    capacity[:, [r for r in range(len(RESOURCES)) if r not in counted]] = np.nan
    capacity[rng.random(size.n_nodes) < 0.1, counted[-1]] = np.nan  # some nodes have no limit of one resource

    service = rng.integers(0, size.n_services, size.n_pods)
    node = rng.choice(size.n_nodes, size.n_pods, p=node_scale / node_scale.sum())
    usage = _usage(size, np.bincount(service, minlength=size.n_services), node_scale.sum(), rng)
    load = node_scale[:, None, None] * NODE[:, None] * rng.uniform(0.0, 0.06, (size.n_nodes, len(RESOURCES), 1))
    load = np.repeat(load, size.n_slots, axis=2)
    for pod in range(size.n_pods):
        load[node[pod]] += usage[service[pod]]
    margin = load * rng.uniform(0.0, 0.25) * rng.uniform(0.5, 1.0, load.shape)
    requests = usage[service].max(axis=2)[:, :2] * rng.uniform(0.8, 1.5, (size.n_pods, 1))  # (n_pods, 2)
    return Problem(
        load=load.astype(np.float32),
        margin=margin.astype(np.float32),
        capacity=capacity,
        free=_free(node, requests, node_scale, rng),
        usage=usage.astype(np.float32),
        pods=_pods(size, node, service, requests, rng),
        allowed=rng.random((3, size.n_nodes)) < 0.85,
        budget=_budget(size, rng),
        hot=HOT_SHARE,
    )


def _usage(size: Size, replicas: Ints, n_small_nodes: float, rng: np.random.Generator) -> Floats:
    """(n_services, n_resources, n_slots) usage of one pod: most peak in the evening, some at any hour."""
    hours = np.linspace(0, 24, size.n_slots, endpoint=False)
    peak = np.where(
        rng.random(size.n_services) < 0.7, rng.normal(20, 2, size.n_services), rng.uniform(0, 24, size.n_services)
    )
    distance = np.abs((hours - peak[:, None] + 12) % 24 - 12)
    curve = 0.25 + np.exp(-((distance / 3) ** 2))  # (n_services, n_slots)
    level = rng.lognormal(0.0, 0.8, (size.n_services, 1)) * rng.lognormal(0.0, 0.5, (size.n_services, len(RESOURCES)))
    usage = level[:, :, None] * curve[:, None, :]
    usage[:, MEMORY] = level[:, MEMORY : MEMORY + 1]  # memory knows no evening
    highest = np.einsum("s,srt->rt", replicas, usage).max(axis=1)
    wanted = size.used * NODE * n_small_nodes
    return np.asarray(usage * (wanted / np.maximum(highest, 1e-9))[:, None])


def _free(node: Ints, requests: Floats, node_scale: Floats, rng: np.random.Generator) -> Floats:
    requested = np.zeros((len(node_scale), requests.shape[1]))
    np.add.at(requested, node, requests)
    # Some nodes are full by requests, so that a pod has to leave before another fits.
    room = node_scale[:, None] * NODE[: requests.shape[1]] * rng.uniform(0.6, 1.1, (len(node_scale), 1)) - requested
    return np.asarray(np.maximum(room, 0.0))


def _pods(size: Size, node: Ints, service: Ints, requests: Floats, rng: np.random.Generator) -> PlannedPods:
    cost = rng.uniform(0.0, 1.0, size.n_pods)
    cost[rng.random(size.n_pods) < 0.15] = np.inf
    return PlannedPods(
        node=node,
        profile=service,
        requests=requests,
        service=service,
        namespace=service % 3,
        shape=service % 3,
        cost=cost,
    )


def _budget(size: Size, rng: np.random.Generator) -> Budget:
    return Budget(
        total=size.budget,
        per_service=rng.integers(1, 3, size.n_services),
        per_namespace=rng.integers(1, size.budget + 2, 3),
        per_node=int(rng.integers(2, 5)),
    )
