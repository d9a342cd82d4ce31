"""A filling cluster with large pods among small ones: spreading, stacking, and changing over at a water level.

    python -m benchmarks.water_level [--seeds 5] [--nodes 50] [--lower 0.4] [--upper 0.6]

Small pods (0.25 to 4 cores, log-uniform, 2 to 8 GiB per core) and large ones (a quarter, three eighths or half of a
node, together a third of the demand) arrive in random order and stay; a pod that fits nowhere is turned away. They come
until 130 % of the cluster has been asked for. Medians over seeds of

    large placed   share of the large pods placed of those that came before 95 % of the cluster was asked for
    allocation     the fullest resource's share of allocatable requested in the end (Ctrip reports 98 %)
    fullest at 50  highest share of any node's CPU or memory requested when half of the cluster is: how near the nodes
                   come to being crowded while there is room
    unused at 50   share of nodes without any pod then: what stacking offers to whoever can switch nodes off

A second table: the cluster is held at 50 % while small pods come and go. How far the stack weight moves in total shows
what hysteresis is for; with it the scores hardly change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from base.arrays import Bools, Floats
from benchmarks.harness import command_line
from cluster.water_level import WaterLevels, next_stack_weight, water_level
from scorer.scores.least_allocated import least_allocated_score
from scorer.scores.most_allocated import most_allocated_score
from scorer.scores.spread_or_stack import spread_or_stack_score
from testing.constants import with_constants

GIB = 1024.0**3
NODE = np.array([32.0, 128 * GIB])
EQUAL = np.ones(2)
LARGE = (1 / 4, 3 / 8, 1 / 2)
LARGE_DEMAND = 1 / 3
RULES = ("spread", "stack", "water level")


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Pods in order. requests: (n_pods, 2); large: (n_pods,)."""

    requests: Floats
    large: Bools


@dataclass(frozen=True, slots=True)
class Outcome:
    """See the top of the file."""

    large_placed: float
    allocation: float
    fullest_at_half: float
    unused_at_half: float


def arrivals(large_share: float, n_nodes: int, rng: np.random.Generator) -> Arrivals:
    """As many pods as 130 % of the cluster's CPU."""
    n_pods = int(40 * n_nodes)
    cores = np.exp(rng.uniform(np.log(0.25), np.log(4.0), n_pods))
    memory = cores * rng.uniform(2.0, 8.0, n_pods) * GIB * 0.8  # four fifths of 5 GiB per core: CPU and memory even
    large_cores = large_share * NODE[0]
    # p large pods per pod bring LARGE_DEMAND of the cores asked for
    p = LARGE_DEMAND * cores.mean() / (LARGE_DEMAND * cores.mean() + (1 - LARGE_DEMAND) * large_cores)
    large = rng.random(n_pods) < p
    requests = np.where(large[:, None], large_share * NODE, np.stack([cores, memory], axis=1))
    needed = int(np.searchsorted(requests[:, 0].cumsum(), 1.3 * n_nodes * NODE[0]))
    return Arrivals(requests[:needed], large[:needed])


def fill(pods: Arrivals, n_nodes: int, rule: str, levels: WaterLevels, rng: np.random.Generator) -> Outcome:
    """Place the pods one after the other; ties are broken at random."""
    allocatable = np.tile(NODE, (n_nodes, 1))
    requested = np.zeros((n_nodes, 2))
    asked = (pods.requests / (n_nodes * NODE)).cumsum(axis=0).max(axis=1)
    stack, half = 0.0, (np.nan, np.nan)
    came, placed = 0, 0
    for pod, large, asked_for in zip(pods.requests, pods.large.tolist(), asked.tolist(), strict=True):
        counted = large and asked_for <= 0.95
        came += counted
        fits = (requested + pod <= allocatable).all(axis=1)
        if not fits.any():
            continue
        score = _scores(rule)(requested, pod, allocatable, stack)
        score = np.where(fits, score, -1.0)
        requested[int(rng.choice(np.flatnonzero(score == score.max())))] += pod
        placed += counted
        level = water_level(requested, allocatable, EQUAL)
        stack = next_stack_weight(stack, level, levels)
        if np.isnan(half[0]) and level >= 0.5:
            share = (requested / NODE).max(axis=1)
            half = float(share.max()), float((share == 0).mean())
    return Outcome(placed / came, water_level(requested, allocatable, EQUAL), *half)


def movement(levels: WaterLevels, n_nodes: int, rng: np.random.Generator) -> float:
    """Total movement of the stack weight over 5,000 arrivals and departures around a level of one half."""
    there = n_nodes * NODE[0]
    pods: list[float] = []
    used, stack, moved = 0.0, 0.0, 0.0
    for step in range(20_000):
        if pods and rng.random() < 0.5 + 2.0 * (used / there - 0.5):
            last = int(rng.integers(len(pods)))
            pods[last], pods[-1] = pods[-1], pods[last]
            used -= pods.pop()
        else:
            pods.append(float(np.exp(rng.uniform(np.log(0.25), np.log(4.0)))))
            used += pods[-1]
        before, stack = stack, next_stack_weight(stack, used / there, levels)
        moved += abs(stack - before) if step >= 15_000 else 0.0  # when it has settled
    return moved


def _scores(rule: str) -> Callable[[Floats, Floats, Floats, float], Floats]:
    if rule == "spread":
        return lambda requested, pod, there, stack: least_allocated_score(requested, pod, there).astype(np.float64)
    if rule == "stack":
        return lambda requested, pod, there, stack: most_allocated_score(requested, pod, there).astype(np.float64)
    return lambda requested, pod, there, stack: spread_or_stack_score(requested, pod, there, EQUAL, stack)


def main() -> None:
    """Print the figures."""
    parser = command_line(__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--lower", type=float, default=WaterLevels().lower)
    parser.add_argument("--upper", type=float, default=WaterLevels().upper)
    arguments = parser.parse_args()
    levels = WaterLevels(lower=arguments.lower, upper=arguments.upper)
    print(f"water level: lower {levels.lower}, upper {levels.upper}, hysteresis {levels.hysteresis}")
    print(
        f"{'large pods are':16}{'rule':14}"
        f"{'large placed':>14}{'allocation':>12}{'fullest at 50':>15}{'unused at 50':>14}"
    )
    for large_share in LARGE:
        for rule in RULES:
            outcomes = []
            for seed in range(arguments.seeds):
                pods = arrivals(large_share, arguments.nodes, np.random.default_rng(seed))
                rng = np.random.default_rng(seed + 1000)
                outcomes.append(fill(pods, arguments.nodes, rule, levels, rng))
            large, allocation, fullest, unused = (
                float(np.median([getattr(outcome, name) for outcome in outcomes])) for name in Outcome.__slots__
            )
            print(f"{large_share:<16g}{rule:14}{large:14.1%}{allocation:12.2%}{fullest:15.1%}{unused:14.1%}")

    print(f"{'hysteresis':16}{'movement of the weight':>24}")
    for hysteresis in (0.0, levels.hysteresis):
        moved = [
            movement(with_constants(levels, hysteresis=hysteresis), arguments.nodes, np.random.default_rng(seed))
            for seed in range(arguments.seeds)
        ]
        print(f"{hysteresis:<16g}{np.median(moved):24.2f}")


if __name__ == "__main__":
    main()
