"""How long a score takes, how good the node is that it picks, and what a pod event costs.

    python -m benchmarks.scoring [--nodes 5000 20000] [--services 1000] [--pods 200]

On a made-up cluster (testing/clusters/large_cluster.py) of five resources and 336 half hours, in one process, pods are
scored and then placed on the best node, one after the other:

  cold     : a service nobody has asked for since the tables were made
  warm     : services in turn, each asked for before, pods landing in between
  same     : pods of one service one after the other

beside the definition evaluated directly (energy of all nodes from their curves, then the exact objective of all of
them) and beside LeastAllocated on the same columns. The last line says how often the definition would choose another
node, and by how much the energy of ours exceeds the least: among the best 16 the exact objective decides, not energy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime

import numpy as np

from base.arrays import Floats
from benchmarks.harness import command_line
from cluster.degradation import Level
from cluster.predicted.node_capacity import KnownCapacities
from cluster.predicted.pod_profiles import Profiles
from cluster.predicted.power_growth import RESOURCE_WEIGHTS, power_growth
from cluster.tables_anew import predict
from cluster.tracking import TrackedCluster
from kube.decoding.decoding import Kind
from kube.objects.objects import PodInfo
from scorer.options import ScorerOptions
from scorer.scores.energy import energy_growth
from scorer.scores.score_catalogue import SCORES
from scorer.scoring import score_pod
from scorer.scoring_policy import ScoringPolicy
from testing.clusters.large_cluster import LargeCluster, large_cluster

DAY = date(2026, 6, 1)
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


def tracked(made: LargeCluster) -> TrackedCluster:
    """The cluster in tables, seen through its model."""
    cluster = TrackedCluster(ScorerOptions(), now=NOON.timestamp())
    cluster.apply(cluster.state.replace(Kind.NODES, made.nodes))
    cluster.apply(cluster.state.replace(Kind.PODS, made.pods))
    capacities = KnownCapacities(made.model)
    profiles = Profiles(made.model)
    cluster.install(predict(profiles, capacities, cluster.snapshot(profiles), NOON), capacities)
    return cluster


def pod_of(made: LargeCluster, service: int, number: int) -> PodInfo:
    """A new pod of a service, not bound yet."""
    like = made.pods[service]
    return replace(like, uid=f"new-{number}", name=f"{like.name}-{number}", node="")


class Scheduler:
    """Scores pods and puts them where the score is best, with the time of each step."""

    def __init__(self, cluster: TrackedCluster) -> None:
        self.cluster, self.rows = cluster, np.flatnonzero(cluster.state.alive)
        self.score_seconds: list[float] = []
        self.event_seconds: list[float] = []

    def place(self, pod: PodInfo, weights: dict[str, float]) -> int:
        """The row chosen."""
        began = time.perf_counter()
        scored = score_pod(self.cluster, pod, self.rows, ScoringPolicy("measured", weights, SCORES), Level.FRESH)
        row = int(self.rows[int(scored.total.argmax())])
        scored_at = time.perf_counter()
        bound = replace(pod, node=self.cluster.state.names[row])
        self.cluster.apply(self.cluster.state.put_pod(bound))
        self.event_seconds.append(time.perf_counter() - scored_at)
        self.score_seconds.append(scored_at - began)
        return row


def by_definition(cluster: TrackedCluster, pod: PodInfo) -> tuple[Floats, Floats, float]:
    """Energy and exact objective of every row, straight from the curves, and the seconds it took."""
    predicted = cluster.predicted
    assert predicted is not None
    profile, load = cluster.profile(pod), predicted.load
    usage = load.snapshot().usage[profile].astype(np.float64)
    capacity, points = predicted.capacity, predicted.horizon.weights()
    share = load.share(slice(None, load.n_nodes)).astype(np.float64)
    began = time.perf_counter()
    on_nodes = share * capacity[:, :, None]
    energy = energy_growth(on_nodes, usage, points, capacity, RESOURCE_WEIGHTS)
    weights = RESOURCE_WEIGHTS * capacity / capacity.mean(axis=0)
    exact = power_growth(on_nodes / capacity[:, :, None], usage / capacity[:, :, None], points, weights)
    return energy, exact, time.perf_counter() - began


def microseconds(seconds: Sequence[float]) -> str:
    """Median and 99th percentile."""
    return f"{1e6 * float(np.median(seconds)):>8.0f} us  (99 %: {1e6 * float(np.quantile(seconds, 0.99)):.0f} us)"


def measure(made: LargeCluster, services: Callable[[int], int], n_pods: int, weights: dict[str, float]) -> Scheduler:
    """Place pods of services in some order, on tables just made."""
    scheduler = Scheduler(tracked(made))
    for number in range(n_pods):
        scheduler.place(pod_of(made, services(number), number), weights)
    return scheduler


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table per number of nodes."""
    parser = command_line(__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[5000, 20_000])
    parser.add_argument("--services", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=200, help="scored in each row of the table")
    options = parser.parse_args(arguments)
    peak, requests = {"predicted_peak": 1.0}, {"least_allocated": 1.0}
    for n_nodes in options.nodes:
        made = large_cluster(n_nodes, 10 * n_nodes, options.services, first_day=DAY)
        n = options.pods
        print(f"\n{n_nodes} nodes, {10 * n_nodes} pods, {options.services} services, 5 resources, 336 half hours")
        cold = measure(made, lambda number: number, n, peak)
        print(f"  predicted peak, cold            {microseconds(cold.score_seconds)}")
        turns = measure(made, lambda number: number % 50, n + 50, peak)
        print(f"  predicted peak, warm            {microseconds(turns.score_seconds[50:])}")
        same = measure(made, lambda number: 7, n + 1, peak)
        print(f"  predicted peak, same service    {microseconds(same.score_seconds[1:])}")
        least = measure(made, lambda number: number % 50, n + 50, requests)
        print(f"  LeastAllocated on our columns   {microseconds(least.score_seconds[50:])}")
        print(f"  one pod event                   {microseconds(turns.event_seconds)}")

        scheduler, direct, differs, excess = Scheduler(tracked(made)), [], 0, 0.0
        for number in range(20):
            pod = pod_of(made, number * 7 % options.services, number)
            energy, exact, seconds = by_definition(scheduler.cluster, pod)
            direct.append(seconds)
            row = scheduler.place(pod, peak)
            differs += row != int(exact.argmin())
            excess = max(excess, float(energy[row] / energy.min() - 1))
        print(f"  the definition, evaluated       {microseconds(direct)}")
        print(f"  another node than by the exact objective of all nodes: {differs} of 20 pods;", end=" ")
        print(f"its energy at most {100 * excess:.3f} % above the least")


if __name__ == "__main__":
    main()
