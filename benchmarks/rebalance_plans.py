"""Plans of the rebalancer: how near they come to the optimum, and what a large cluster takes.

    python -m benchmarks.rebalance_plans [--instances 200] [--seconds 30] [--slots 48 336]

First, small random problems beside their exact optimum by mixed integer programming (testing.rebalancing.exact_plans).
Worth is heat prevented less the price of the moves, in node half hours. Rivals in the same run: the planner without
second thoughts, and single moves alone. If the solver's time ran out, the comparison is with the best that it or
a planner had found. A problem that no plan helps counts as reached if the plan is empty.

Then a large cluster, in a process of its own: seconds, and the peak memory with the problem itself.
"""

from __future__ import annotations

import multiprocessing
import time
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.harness import command_line, finish, machine_load, outcome, peak_gib
from benchmarks.large_problem import large_problem
from rebalancer.planning.planner import plan
from rebalancer.planning.problem import Plan, Problem
from rebalancer.rebalance_settings import PlanningOptions
from testing.rebalancing.exact_plans import optimum
from testing.rebalancing.random_problems import random_problem, small_size

OPTIONS = PlanningOptions()
PLANNERS = {
    "the planner": OPTIONS,
    "without second thoughts": replace(OPTIONS, improvement_effort=0),
    "single moves alone": replace(OPTIONS, improvement_effort=0, exchanges_looked_at=0, chains_looked_at=0),
}
NEAR = 0.95
WORTHLESS = 1e-3
SECONDS_LIMIT = 30.0
GIB_LIMIT = 1.5


@dataclass(frozen=True, slots=True)
class Large:
    """What a large plan took and did."""

    seconds: float
    cpu_seconds: float
    gib: float
    made: Plan


def worth(problem: Problem, made: Plan, options: PlanningOptions) -> float:
    """Return the heat that a plan prevents, less the price of its moves."""
    price = sum(float(problem.pods.cost[move.pod]) + options.least_gain for move in made.moves)
    return made.heat_before - made.heat_after - price


def compare(n: int, seconds: float) -> bool:
    """Print how near the planners come to the optimum of small problems. Return whether the aim is met."""
    shares: dict[str, list[float]] = {name: [] for name in PLANNERS}
    took = dict.fromkeys(PLANNERS, 0.0)
    n_worthless = n_unproved = 0
    for seed in range(n):
        rng = np.random.default_rng(seed)
        problem = random_problem(small_size(rng), rng)
        best = optimum(problem, OPTIONS, seconds=seconds)
        n_worthless += best.worth < WORTHLESS
        n_unproved += best.most > best.worth + max(0.01 * best.worth, WORTHLESS)
        found = {}
        for name, options in PLANNERS.items():
            start = time.process_time()
            made = plan(problem, options)
            took[name] += time.process_time() - start
            found[name] = worth(problem, made, OPTIONS)
        most = max(best.worth, *found.values())
        for name in PLANNERS:
            shares[name].append(found[name] / most if most >= WORTHLESS else 1.0)
        if shares["the planner"][-1] < NEAR:
            print(f"seed {seed}: {found['the planner']:.2f} of {most:.2f}, {problem.n_nodes} nodes", flush=True)
    print(f"{n} small problems: {n_worthless} that no plan helps, {n_unproved} whose optimum was not proved in time")
    print(f"{'share of the optimum':30}{'mean':>8}{'least':>8}{'within 5 %':>12}{'CPU s each':>12}")
    for name, of_planner in shares.items():
        found_shares = np.array(of_planner)
        near = float((found_shares >= NEAR).mean())
        print(f"{name:30}{found_shares.mean():8.3f}{found_shares.min():8.3f}{near:12.1%}{took[name] / n:12.2f}")
    holds = bool((np.array(shares["the planner"]) >= NEAR).all())
    print(f"within 5 % on all: {outcome(holds)}")
    return holds


def measure(n_nodes: int, n_pods: int, n_slots: int) -> Large:
    """Plan for a large cluster."""
    problem = large_problem(n_nodes, n_pods, n_slots)
    start, cpu = time.perf_counter(), time.process_time()
    made = plan(problem, OPTIONS)
    return Large(time.perf_counter() - start, time.process_time() - cpu, peak_gib(), made)


def large(n_nodes: int, n_pods: int, all_slots: list[int]) -> bool:
    """Print what large plans take. Return whether the limits hold."""
    print(f"\n{n_nodes} nodes, {n_pods} pods, five resources")
    print(f"{'slots':>6}{'seconds':>9}{'CPU s':>8}{'GiB':>6}{'moves':>7}{'hot':>16}{'heat':>18}{'most gain':>11}")
    holds = True
    for n_slots in all_slots:
        with multiprocessing.get_context("spawn").Pool(1) as alone:
            found = alone.apply(measure, (n_nodes, n_pods, n_slots))
        made = found.made
        hot, heat = f"{made.hot_before} to {made.hot_after}", f"{made.heat_before:.0f} to {made.heat_after:.0f}"
        print(
            f"{n_slots:6}{found.seconds:9.1f}{found.cpu_seconds:8.1f}{found.gib:6.2f}{len(made.moves):7}"
            f"{hot:>16}{heat:>18}{made.most_gain:11.0f}"
        )
        holds &= found.seconds <= SECONDS_LIMIT and found.gib <= GIB_LIMIT
    print(f"{SECONDS_LIMIT:.0f} s and {GIB_LIMIT} GiB: {outcome(holds)}; {machine_load()}")
    return holds


def main() -> None:
    """Print small plans by their optimum, and how long a plan of a large cluster takes."""
    parser = command_line(__doc__)
    parser.add_argument("--instances", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=30.0, help="the solver's time for a small problem")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--slots", type=int, nargs="*", default=[48, 336], help="none: leave the large cluster out")
    arguments = parser.parse_args()
    near = compare(arguments.instances, arguments.seconds) if arguments.instances else True
    holds = large(arguments.nodes, arguments.pods, arguments.slots) if arguments.slots else True
    finish(near and holds)


if __name__ == "__main__":
    main()
