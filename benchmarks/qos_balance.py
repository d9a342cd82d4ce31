"""The experiment of the BalancedQosPriority paper: how evenly pods of each QoS class end up on the nodes.

    python -m benchmarks.qos_balance [--seeds 5] [--nodes 100] [--pods 3000] [--spread 0 0.3 0.6] [--weight 1 5 20]

Pods of three classes arrive one by one in random order on empty, equal nodes; the sizes of
a class are log-normal with the given spread, and the classes differ (guaranteed pods are large, best-effort pods
request nothing and use memory all the same).
Placed at random, by LeastAllocated + BalancedAllocation (kube-scheduler's default), by the same with qos_balance or
qos_memory on top, and by these alone. Medians over seeds of

    count variance   variance over nodes of the number of pods, per class and summed over the classes
    evictable        lowest share of its memory in use that a node could free by evicting burstable and best-effort
                     pods, as a multiple of the cluster's share
    best effort      the same for best-effort pods alone
    fullest          highest share of CPU or memory requested on any node
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from base.arrays import Floats, Ints
from benchmarks.harness import command_line
from scorer.scores.balanced_allocation import balanced_allocation_score
from scorer.scores.least_allocated import UNREQUESTED, least_allocated_score
from scorer.scores.qos_balance import part_of_cluster, qos_balance_score

GIB = 1024.0**3
NODE = np.array([32.0, 128 * GIB])
CLASSES = ("guaranteed", "burstable", "best effort")
MIX = (0.3, 0.4, 0.3)


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Pods in order.

    requests : (n_pods, 2) cores and bytes
    memory   : (n_pods,) bytes in use at the peak
    qos      : (n_pods,) QoS class
    """

    requests: Floats
    memory: Floats
    qos: Ints


def arrivals(n_pods: int, n_nodes: int, spread: float, rng: np.random.Generator) -> Arrivals:
    """Sizes log-normal within a class; altogether 70 % of the cluster's CPU and memory are requested.

    spread : standard deviation of the logarithm of a size
    """
    qos = rng.choice(3, n_pods, p=MIX)
    scale = np.array([4.0, 1.0, 0.0])[qos]  # a guaranteed pod requests four times what a burstable one does
    requests = scale[:, None] * np.exp(spread * rng.normal(0, 1, (n_pods, 2)))
    requests *= 0.7 * n_nodes * NODE / requests.sum(axis=0)
    typical = requests[qos == 1, 1].mean()
    # Burstable pods use more or less than they request, best-effort pods as much as small burstable ones.
    memory = np.where(qos == 2, 0.5 * typical * np.exp(spread * rng.normal(0, 1, n_pods)), requests[:, 1])
    memory = np.where(qos == 1, memory * np.exp(0.5 * spread * rng.normal(0, 1, n_pods)), memory)
    return Arrivals(requests, memory, qos)


@dataclass(frozen=True, slots=True)
class Outcome:
    """pods, memory: (n_nodes, 3) per class; requested: (n_nodes, 2)."""

    pods: Floats
    memory: Floats
    requested: Floats

    def count_variance(self) -> Floats:
        """(4,): per class, and their sum."""
        per_class = self.pods.var(axis=0)
        return np.append(per_class, per_class.sum())

    def lowest_share(self, classes: list[int]) -> float:
        """Of a node's memory in use, relative to the cluster's share."""
        share = self.memory[:, classes].sum(axis=1) / self.memory.sum(axis=1)
        return float(share.min() / (self.memory[:, classes].sum() / self.memory.sum()))

    def fullest(self) -> float:
        return float((self.requested / NODE).max())


def place(
    pods: Arrivals, n_nodes: int, by: str, weight: float, rng: np.random.Generator, *, by_requests: bool = True
) -> Outcome:
    """Place all pods one after the other; ties are broken at random.

    by          : "", "pods" or "memory", with this weight
    by_requests : kube-scheduler's two scores count, too
    """
    allocatable = np.tile(NODE, (n_nodes, 1))
    requested, nonzero = np.zeros((n_nodes, 2)), np.zeros((n_nodes, 2))
    part = part_of_cluster(allocatable, allocatable.sum(axis=0))
    on_node = {"pods": np.zeros((n_nodes, 3)), "memory": np.zeros((n_nodes, 3))}
    for requests, memory, qos in zip(pods.requests, pods.memory, pods.qos.tolist(), strict=True):
        counted = np.where(requests > 0, requests, np.array(UNREQUESTED))
        score = np.zeros(n_nodes)
        if by_requests:
            score += least_allocated_score(nonzero, counted, allocatable)
            score += balanced_allocation_score(requested, requests, allocatable)
        if by:
            score += weight * qos_balance_score(on_node[by], on_node[by].sum(axis=0), qos, part)
        fits = (requested + requests <= allocatable).all(axis=1)
        score = np.where(fits, score, -1.0)
        node = int(rng.choice(np.flatnonzero(score == score.max())))
        requested[node] += requests
        nonzero[node] += counted
        on_node["pods"][node, qos] += 1
        on_node["memory"][node, qos] += memory
    return Outcome(on_node["pods"], on_node["memory"], requested)


def main() -> None:
    """Print the figures."""
    parser = command_line(__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--pods", type=int, default=3000)
    parser.add_argument("--spread", type=float, nargs="+", default=[0.0, 0.3, 0.6])
    parser.add_argument("--weight", type=float, nargs="+", default=[1.0, 5.0, 20.0], help="beside 1 + 1 of the others")
    arguments = parser.parse_args()
    for spread in arguments.spread:
        _print_table(arguments.seeds, arguments.nodes, arguments.pods, spread, arguments.weight)


def _print_table(n_seeds: int, n_nodes: int, n_pods: int, spread: float, weights: list[float]) -> None:
    rules = [("least + balanced", "", 0.0, True)]
    rules += [(f"+ {w:g} x qos_{by}", by, w, True) for by in ("pods", "memory") for w in weights]
    rules += [("at random", "", 0.0, False)]
    rules += [(f"qos_{by} alone", by, 1.0, False) for by in ("pods", "memory")]
    print(f"sizes within a class: log-normal, {spread:g}")
    print(f"{'':24}{'count variance':^44}  evictable  best effort  fullest")
    print(f"{'':24}{''.join(f'{name:>11}' for name in (*CLASSES, 'sum'))}")
    first = None
    for name, by, weight, by_requests in rules:
        outcomes = []
        for seed in range(n_seeds):
            pods = arrivals(n_pods, n_nodes, spread, np.random.default_rng(seed))
            rng = np.random.default_rng(seed + 1000)
            outcomes.append(place(pods, n_nodes, by, weight, rng, by_requests=by_requests))
        variance = np.median([outcome.count_variance() for outcome in outcomes], axis=0)
        first = variance if first is None else first
        evictable, best_effort, fullest = (
            float(np.median(values))
            for values in (
                [outcome.lowest_share([1, 2]) for outcome in outcomes],
                [outcome.lowest_share([2]) for outcome in outcomes],
                [outcome.fullest() for outcome in outcomes],
            )
        )
        print(
            f"{name:24}{''.join(f'{value:11.2f}' for value in variance)}"
            f"  {evictable:9.2f}  {best_effort:11.2f}  {fullest:7.3f}   variance / {first[3] / variance[3]:.1f}"
        )


if __name__ == "__main__":
    main()
