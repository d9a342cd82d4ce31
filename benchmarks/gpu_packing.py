"""How much of the cards of a cluster is allocated once as much has been asked for as there is: the published policies
in our own runs beside their published results, and ours.

    python -m benchmarks.gpu_packing --traces DIR [--short] [--variants default cpu050 ...] [--policies FGD known ...]
                                     [--seeds 10] [--json FILE]

Protocol: pods of the list shuffled, and tuned to 130 % of the cards; each is placed as it comes, where the policy
wants it among all nodes with room, and stays. `known` is Packing with the mix of the pod list known beforehand, as FGD
has it; `live` is Packing with the mix of the pods that have arrived so far, from none on. The seeds are 42, 43, ... as
published, though the shuffles are not the same: another generator of random numbers.

Percent of the cards allocated at 100 % arrival, mean over seeds, +- standard deviation over seeds; `difference` is ours
less what was published of that policy, marked if that is more than 0.3. At the end: each against the published FGD.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from base.arrays import Floats
from benchmarks.gpu_packing_cluster import Cluster, allocation_at
from benchmarks.gpu_packing_policies import PUBLISHED, by
from benchmarks.gpu_packing_trace import Trace, arrivals, cards_full_at, find_traces, known_mix, mix_of, read_trace
from profiles.gpu.fragmentation.live_mix import rounded
from profiles.gpu.fragmentation.packing_cost import Packing
from profiles.gpu.fragmentation.pod_shapes import PodShape, ShapeMix

OURS: Final = ("known", "live")
FIRST_SEED: Final = 42
_PERCENTS: Final = tuple(range(50, 131, 5))
_CLOSE_ENOUGH: Final = 0.3
_LEARNS_AT_GROWTH: Final = 1.3
_MOST_SHAPES: Final = 128


@dataclass(frozen=True, slots=True)
class Result:
    """allocated: percent of the cards at each percent arrived, by seed; seconds: of all runs."""

    variant: str
    policy: str
    allocated: tuple[dict[int, float], ...]
    seconds: float
    published: dict[int, float]

    def at(self, percent: int) -> Floats:
        """(n_seeds,)"""
        return np.array([of_seed[percent] for of_seed in self.allocated])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for, print the table as it fills."""
    options = _parser().parse_args(arguments)
    trace = read_trace(find_traces(options.traces))
    variants = options.variants or (["default"] if options.short else trace.variants())
    n_seeds = options.seeds or (2 if options.short else 10)
    if unknown := set(variants) - set(trace.pods):
        sys.exit(f"no pod list for {', '.join(sorted(unknown))}; there are {', '.join(sorted(trace.pods))}")
    print(f"{'variant':<12} {'policy':<14} {'allocated':>16} {'published':>10} {'difference':>11} {'s/run':>7}")
    results = []
    for variant in variants:
        for policy in options.policies or [*PUBLISHED, *OURS]:
            results.append(_result(trace, variant, policy, range(FIRST_SEED, FIRST_SEED + n_seeds)))
            print(_line(results[-1], trace), flush=True)
    print(*_summary(results, trace), sep="\n")
    if options.json is not None:
        options.json.write_text(json.dumps([_as_json(result) for result in results], indent=1) + "\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu_packing",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--traces", type=Path, help="directory of the traces; openb/ is looked for in it")
    parser.add_argument("--short", action="store_true", help="two seeds of the default trace")
    parser.add_argument("--variants", nargs="+", help="pod lists; all with published results if not given")
    parser.add_argument("--policies", nargs="+", choices=[*PUBLISHED, *OURS])
    parser.add_argument("--seeds", type=int, help=f"how many, from {FIRST_SEED} on; 10 if not given")
    parser.add_argument("--json", type=Path, help="write all figures here")
    return parser


def _result(trace: Trace, variant: str, policy: str, seeds: range) -> Result:
    began = time.perf_counter()
    allocated = tuple(run(trace, variant, policy, seed) for seed in seeds)
    published = {
        percent: allocation
        for (of_variant, of_policy, percent), allocation in trace.published.items()
        if (of_variant, of_policy) == (variant, policy)
    }
    return Result(variant, policy, allocated, time.perf_counter() - began, published)


def run(trace: Trace, variant: str, policy: str, seed: int) -> dict[int, float]:
    """Percent of the cards allocated at each percent arrived."""
    rng = np.random.default_rng(seed)
    pods, capacity = trace.pods[variant], int(trace.nodes.n_devices.sum()) * 1000
    order = arrivals(pods, capacity, rng)
    # Of nodes of equal points the simulator takes the first by name, and puts a random number before each name.
    nodes = trace.nodes.take(rng.permutation(trace.nodes.n_nodes))
    mix = known_mix(pods, coverage=1.0) if policy in OURS else known_mix(pods)
    cost_of = by(Packing(mix, trace.models, nodes)) if policy in OURS else PUBLISHED[policy](mix, trace.models, rng)
    cluster = Cluster(nodes, trace.models, cost_of, rng if policy == "Random" else None)
    learned = _LearnedMix() if policy == "live" else None
    arrived, allocated = np.zeros(len(order)), np.zeros(len(order))
    for at, pod in enumerate(order):
        if learned is not None and (latest := learned.after(pod)) is not None:
            cluster.decide_by(by(Packing(latest, trace.models, nodes)))
        arrived[at] = pod.asked_milli
        allocated[at] = pod.asked_milli if cluster.place(pod) else 0
    return allocation_at(_PERCENTS, 100 * arrived.cumsum() / capacity, 100 * allocated.cumsum() / capacity)


class _LearnedMix:
    """Of the pods that have come, placed or not; made anew whenever 30 % more have come."""

    def __init__(self) -> None:
        self._counts: dict[PodShape, float] = {}
        self._n_arrived, self._next = 0, 1

    def after(self, pod: PodShape) -> ShapeMix | None:
        """Counts one more. None = the mix stays as it was."""
        shape = rounded(pod)
        self._counts[shape] = self._counts.get(shape, 0.0) + 1.0
        self._n_arrived += 1
        if self._n_arrived < self._next:
            return None
        self._next = int(np.ceil(self._n_arrived * _LEARNS_AT_GROWTH))
        return mix_of(dict(sorted(self._counts.items(), key=lambda entry: -entry[1])[:_MOST_SHAPES]))


# Printing


def _line(result: Result, trace: Trace) -> str:
    ours = result.at(100)
    published = trace.published.get((result.variant, result.policy, 100))
    compared = f"{'-':>10} {'-':>11} "
    if published is not None:
        off = float(ours.mean()) - published
        compared = f"{published:10.2f} {off:+11.2f}{'!' if abs(off) > _CLOSE_ENOUGH else ' '}"
    per_run = result.seconds / len(ours)
    return f"{result.variant:<12} {result.policy:<14} {ours.mean():8.2f} +- {ours.std():4.2f} {compared}{per_run:7.1f}"


def _summary(results: Sequence[Result], trace: Trace) -> list[str]:
    """How far each is from the published FGD."""
    lines = ["", f"{'policy':<14} {'mean of variants':>17} {'less published FGD':>19} {'worst variant':>24}"]
    for policy in dict.fromkeys(result.policy for result in results):
        gains = {
            result.variant: float(result.at(100).mean()) - trace.published[result.variant, "FGD", 100]
            for result in results
            if result.policy == policy and (result.variant, "FGD", 100) in trace.published
        }
        if gains:
            mean = np.mean([result.at(100).mean() for result in results if result.policy == policy])
            worst = min(gains, key=lambda variant: gains[variant])
            lines.append(
                f"{policy:<14} {mean:17.2f} {np.mean(list(gains.values())):+19.2f} {worst:>17} {gains[worst]:+6.2f}"
            )
    full = (
        f"{variant} {cards_full_at(trace.pods[variant]):.2f}"
        for variant in dict.fromkeys(one.variant for one in results)
    )
    return [*lines, "", f"Were cores no limit, the first pod would be turned away at: {', '.join(full)}"]


def _as_json(result: Result) -> dict[str, object]:
    return {
        "variant": result.variant,
        "policy": result.policy,
        "arrived_percent": list(result.allocated[0]),
        "allocated_percent_by_seed": [list(of_seed.values()) for of_seed in result.allocated],
        "published_percent": result.published,
        "seconds": result.seconds,
    }


if __name__ == "__main__":
    sys.exit(main())
