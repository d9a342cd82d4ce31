"""Pods per second of our own scheduling loops in memory: the API server answers everything at once.

    python -m benchmarks.schedule_in_memory [--nodes 5000,20000] [--pods 5000] [--rounds 3]

The loop of `forecast-scheduler schedule` with all of the online profile: kube-scheduler's filters and scores, the
predicted peak by a model that knows every service, policies, co-location, preemption, queue, assumptions, the binder's
own steps with so many in flight, conditions, events. What is missing is the watch and the network. Pods are in the
queue before the loop goes on, and have `--sitting` pods per node beside them; time is that from the first pop to the
last pod's outcome. Nodes are in three zones, and the default spreading over hosts and zones applies.

    identical      all pods are of one ReplicaSet
    mixed          200 services, the pods of each one after the other
    fed            identical, and they come while the loop runs, put into the tables by another thread as by the watch
    one per cycle  the same loop with batches of one pod
    extender       the same pods by our HTTP extender's filter and prioritize without HTTP, the best node assumed

Medians of rounds are shown. CPU is that of the whole process, by thread from the same rounds; the stages are from
another round with timers. Quality is what the forecast says of the nodes when the mixed pods have been placed, beside
nodes drawn at random among those that pass all filters. At last two small clusters are filled, by batches and one by
one: every pod must get the same node. Ends with status 1 where that or a limit does not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final

import numpy as np

from base.arrays import Floats
from benchmarks.harness import command_line, finish, machine_load, numbers, outcome, spread
from benchmarks.schedule_answered import AnsweredLoop, Round, cluster_with_zones, waiting_pods
from benchmarks.schedule_extender import ExtenderLoop
from benchmarks.schedule_stages import Stages
from forecast.resources import CPU
from kube.objects.objects import PodInfo
from placement.feasibility import verdict
from testing.clusters.large_cluster import LargeCluster

_SERVICES: Final = 200
_FEW: Final = 300
"""Pods where each takes milliseconds."""

_LARGE: Final = 20_000
_LIMITS: Final = {False: {"identical": 20_000, "mixed": 3_000}, True: {"identical": 10_000, "mixed": 2_000}}
"""Pods/s at 5,000 nodes, and where there are _LARGE."""


@dataclass(frozen=True, slots=True)
class Quality:
    """Predicted CPU peaks over nodes, shares of capacity: coefficient of variation, and the highest."""

    variation: float
    highest: float


@dataclass(slots=True)
class Found:
    """What was measured of one cluster, by the name of the configuration and of the pods."""

    rounds: dict[tuple[str, str], list[Round]] = field(default_factory=dict)
    stages: dict[tuple[str, str], Mapping[str, float]] = field(default_factory=dict)
    quality: dict[str, Quality] = field(default_factory=dict)


def measure(made: LargeCluster, n_pods: int, rounds: int) -> Found:
    """All configurations."""
    found = Found()
    few = min(_FEW, n_pods)
    with AnsweredLoop(made) as loop:
        found.quality["before"] = quality(loop)
        for number in range(rounds):
            _round(found, loop, "batches", "identical", made, n_pods, number)
            _round(found, loop, "batches", "mixed", made, n_pods, number)
            _round(found, loop, "batches", "fed", made, n_pods, number)
        for kind in ("identical", "mixed"):
            with Stages() as stages:
                _schedule(loop, kind, made, n_pods, f"timed-{kind}")
            found.stages["batches", kind] = stages.per_pod(n_pods)
        found.quality["exact"] = _quality_of(loop, made, n_pods)
        found.quality["random"] = _quality_of(loop, made, n_pods, place=lambda pods: _place_anywhere(loop, pods))
    with AnsweredLoop(made, {"batch": 1}) as loop:
        for number in range(rounds):
            for kind in ("identical", "mixed"):
                _round(found, loop, "one per cycle", kind, made, few, number)
    extender = ExtenderLoop(made)
    for number in range(rounds):
        for kind in ("identical", "mixed"):
            pods = _pods(made, kind, few, f"extender-{number}-{kind}")
            found.rounds.setdefault(("extender", kind), []).append(extender.schedule(pods))
    return found


def quality(loop: AnsweredLoop) -> Quality:
    """As things are."""
    with loop.scorer.tables.reading() as cluster:
        assert cluster.predicted is not None
        peaks: Floats = cluster.predicted.load.highest(CPU).astype(np.float64)
    return Quality(float(peaks.std() / peaks.mean()), float(peaks.max()))


def same_nodes(n_nodes: int, n_pods: int, kind: str) -> tuple[int, int]:
    """Of how many pods how many got the same node by batches as one per cycle, on clusters of their own."""
    made = cluster_with_zones(n_nodes, 10, _SERVICES)
    pods = _pods(made, kind, n_pods, "same")
    with AnsweredLoop(made) as batches:
        by_batches = batches.schedule(pods).nodes
    with AnsweredLoop(made, {"batch": 1}) as single:
        one_by_one = single.schedule(pods).nodes
    return len(pods), sum(by_batches[pod.uid] == one_by_one[pod.uid] for pod in pods)


def _round(
    found: Found, loop: AnsweredLoop, name: str, kind: str, made: LargeCluster, n_pods: int, number: int
) -> None:
    found.rounds.setdefault((name, kind), []).append(_schedule(loop, kind, made, n_pods, f"{name}-{kind}-{number}"))


def _schedule(loop: AnsweredLoop, kind: str, made: LargeCluster, n_pods: int, name: str) -> Round:
    pods = _pods(made, kind, n_pods, name)
    done = loop.schedule(pods, is_fed=kind == "fed")
    loop.remove(pods)
    return done


def _pods(made: LargeCluster, kind: str, n_pods: int, name: str) -> list[PodInfo]:
    return waiting_pods(made, n_pods, min(_SERVICES, n_pods) if kind == "mixed" else 1, name)


def _quality_of(
    loop: AnsweredLoop, made: LargeCluster, n_pods: int, *, place: Callable[[list[PodInfo]], Any] | None = None
) -> Quality:
    pods = _pods(made, "mixed", n_pods, "quality")
    (place or loop.schedule)(pods)
    found = quality(loop)
    if place is None:
        loop.remove(pods)
    else:
        with loop.scorer.tables.reading() as cluster:
            cluster.forget_all([pod.uid for pod in pods])
    return found


def _place_anywhere(loop: AnsweredLoop, pods: Sequence[PodInfo]) -> None:
    """On nodes that pass all filters; so few at a time, and none twice, that they pass still when it is their turn."""
    rng = np.random.default_rng(0)
    filters = loop.filters
    with loop.scorer.tables.reading() as cluster:
        at = 0
        while at < len(pods):
            rows = np.flatnonzero(verdict(pods[at], loop.tables.view, filters).passes)
            like = [pod for pod in pods[at : at + len(rows)] if pod.owner_uid == pods[at].owner_uid]
            for pod, row in zip(like, rng.permutation(rows)[: len(like)].tolist(), strict=True):
                cluster.assume(pod, cluster.state.names[row], np.inf)
            at += len(like)


def show(n_nodes: int, found: Found) -> bool:
    """Print what was measured; returns whether the limits hold."""
    print(f"  {'':26}{'pods/s':>9} {'least to most':>17}{'per CPU s':>11}   CPU us per pod, by thread")
    for (name, kind), rounds in found.rounds.items():
        rates = [one.rate for one in rounds]
        cpu = median(one.cpu_rate for one in rounds)
        print(f"  {f'{kind}, {name}':26}{median(rates):9.0f} {spread(rates):>17}{cpu:11.0f}   {_by_thread(rounds)}")
    print(f"\n  {'CPU us per pod, by stage':26}" + "".join(f"{kind:>12}" for _, kind in found.stages))
    for stage in dict.fromkeys(stage for of_kind in found.stages.values() for stage in of_kind):
        print(f"  {stage:26}" + "".join(f"{of_kind.get(stage, 0.0):12.1f}" for of_kind in found.stages.values()))
    print(f"\n  {'predicted CPU peaks':26}{'CV':>9}{'highest':>10}   of {n_nodes} nodes, mixed pods placed")
    for name, one in found.quality.items():
        print(f"  {name:26}{one.variation:9.4f}{one.highest:10.1%}")
    holds = True
    print()
    for kind, least in _LIMITS[n_nodes >= _LARGE].items():
        exact = median(one.rate for one in found.rounds["batches", kind])
        kept = exact >= least
        beside = median(one.rate for one in found.rounds["extender", kind])
        print(
            f"  {kind}: {exact:.0f} pods/s, {exact / beside:.0f} times the extender's; at least {least} is wanted: "
            f"{outcome(kept)}"
        )
        holds = holds and kept
    return holds


def _by_thread(rounds: Sequence[Round]) -> str:
    names = {name for one in rounds for name, seconds in one.threads.items() if seconds / one.n_pods > 5e-7}
    of = {name: median(1e6 * one.threads.get(name, 0.0) / one.n_pods for one in rounds) for name in names}
    return ", ".join(f"{name} {us:.1f}" for name, us in sorted(of.items(), key=lambda item: -item[1]))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print tables."""
    parser = command_line(__doc__)
    parser.add_argument("--nodes", default="5000,20000")
    parser.add_argument("--pods", type=int, default=5000, help="in a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sitting", type=float, default=10.0, help="pods per node that sit there already")
    parser.add_argument("--check", type=int, default=300, help="nodes, and half as many pods again, of the comparison")
    asked = parser.parse_args(arguments)
    holds = True
    for n_nodes in numbers(asked.nodes):
        made = cluster_with_zones(n_nodes, asked.sitting, _SERVICES)
        print(f"{n_nodes} nodes, {len(made.pods)} pods sit there, {asked.rounds} rounds of {asked.pods} pods")
        holds = show(n_nodes, measure(made, asked.pods, asked.rounds)) and holds
        print(f"  {machine_load()}\n", flush=True)
    for kind in ("identical", "mixed"):
        n, same = same_nodes(asked.check, asked.check * 3 // 2, kind)
        print(f"{kind}: {same} of {n} pods got the same node by batches as one per cycle, {asked.check} nodes")
        holds = holds and same == n
    finish(holds)


if __name__ == "__main__":
    main()
