"""What one pod costs in memory: all standard filters, all standard scores and the scorer's score, over all nodes.

    python -m benchmarks.placement_latency [--nodes 5000] [--pods 100000] [--services 5000] [--each 50]

Every pod is of a service and has constraints that nobody has asked about before, and is put on a node before the next
one comes, so that nothing can be kept from the pod before. Kinds of pods: plain ones, and pods with node affinity and
tolerations, with spread constraints, with affinity to and away from other pods, with volumes; a fifth of the pods that
sit has volumes, and a fifth keeps away from its own kind. Filters run over all nodes, scores over those that passed.

Beside it, in the same run: three of the filters (TaintToleration, NodeAffinity, NodeResourcesFit) as a loop over nodes
and the pods on them, as upstream writes them (testing/placement/per_node.py). They must reject the same nodes.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np

from base.arrays import Bools
from benchmarks.constrained_cluster import KINDS, ConstrainedCluster, constrained_cluster
from benchmarks.harness import command_line
from cluster.degradation import Level
from kube.objects.objects import PodInfo
from placement.filters.catalogue import standard_filters
from placement.filters.filter import Filter, Rejection, rejected
from placement.scores.image_locality import ImageLocality
from placement.scores.inter_pod_affinity import InterPodAffinityScore
from placement.scores.node_affinity import NodeAffinityScore
from placement.scores.node_score import NodeScore
from placement.scores.pod_topology_spread import PodTopologySpreadScore
from placement.scores.taint_toleration import TaintTolerationScore
from scorer.scores.score_catalogue import SCORES
from scorer.scoring import score_pod
from scorer.scoring_policy import ScoringPolicy
from testing.placement import per_node

_LIMIT = 10e-3
_POLICY = ScoringPolicy("measured", {"predicted_peak": 1.0}, SCORES)
_STANDARD_SCORES: tuple[Callable[[], NodeScore], ...] = (
    TaintTolerationScore,
    NodeAffinityScore,
    InterPodAffinityScore,
    PodTopologySpreadScore,
    ImageLocality,
)
_LOOPS = {
    "TaintToleration": per_node.taint_toleration,
    "NodeAffinity": per_node.node_affinity,
    "NodeResourcesFit": per_node.node_resources_fit,
}


@dataclass(slots=True)
class Placer:
    """Places pods and keeps the seconds of each step, by kind of pod.

    loop_every : so many pods lie between two that are looked at by loops, too
    """

    made: ConstrainedCluster
    loop_every: int
    steps: dict[str, dict[str, list[float]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    loops: list[float] = field(default_factory=list)
    beside_loops: list[float] = field(default_factory=list)
    passed: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    filters: Sequence[Filter] = field(default_factory=standard_filters)
    scores: Sequence[NodeScore] = field(default_factory=lambda: [make() for make in _STANDARD_SCORES])

    def place(self, kind: str, number: int) -> None:
        """Choose a node for a pod and put it there."""
        pod, view = self.made.pod(kind, number), self.made.view
        state, seconds = view.state, self.steps[kind]
        rejections: dict[str, Sequence[Rejection]] = {}
        cpu, began = time.thread_time(), time.perf_counter()
        last = began
        for one in self.filters:
            rejections[one.name] = one.filter(pod, view)
            now = time.perf_counter()
            seconds[f"filter {one.name}"].append(now - last)
            last = now
        everything = [one for of_filter in rejections.values() for one in of_filter]
        rows = np.flatnonzero(state.alive & ~rejected(everything, state.n_rows))
        last = time.perf_counter()
        for score in self.scores:
            score.score(pod, view, rows)
            now = time.perf_counter()
            seconds[f"score {score.name}"].append(now - last)
            last = now
        scored = score_pod(view.cluster, pod, rows, _POLICY, Level.NO_LIVE_CORRECTION)
        ended = time.perf_counter()
        seconds["score predicted_peak"].append(ended - last)
        seconds["all"].append(ended - began)
        seconds["all, CPU time"].append(time.thread_time() - cpu)
        if number % self.loop_every == 0:
            self._compare(pod, rejections, {one.name: seconds[f"filter {one.name}"][-1] for one in self.filters})
        self.passed[kind].append(len(rows))
        if len(rows):
            began = time.perf_counter()
            self.made.bind(pod, int(rows[int(scored.ranking.argmax())]))
            seconds["event"].append(time.perf_counter() - began)

    def _compare(
        self, pod: PodInfo, rejections: Mapping[str, Sequence[Rejection]], seconds: Mapping[str, float]
    ) -> None:
        """The same from the definition. Raises AssertionError where it says otherwise."""
        on_nodes, state = self.made.on_nodes(), self.made.view.state
        began = time.perf_counter()
        found = {
            name: [not decide(pod, one).reasons for one in on_nodes]  # the order of rows
            for name, decide in _LOOPS.items()
        }
        self.loops.append(time.perf_counter() - began)
        self.beside_loops.append(sum(seconds[name] for name in _LOOPS))
        for name, passes in found.items():
            ours: Bools = state.alive & ~rejected(rejections[name], state.n_rows)
            assert ours.tolist() == passes, f"{pod.name}: {name} rejects other nodes than the definition"


def row(name: str, seconds: Sequence[Sequence[float]]) -> str:
    """A line of the table: median of each kind, then of all pods, and their 99th percentile."""
    everything = np.concatenate(seconds)
    medians = "".join(f"{1e6 * float(np.median(one)) if one else np.nan:>10.0f}" for one in seconds)
    return f"  {name:30}{medians}{1e6 * np.median(everything):>10.0f}{1e6 * np.quantile(everything, 0.99):>10.0f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = command_line(__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--services", type=int, default=5000)
    parser.add_argument("--each", type=int, default=50, help="pods of each kind")
    parser.add_argument("--loops", type=int, default=10, help="pods of each kind that loops look at, too")
    asked = parser.parse_args(arguments)
    if asked.services < 2 * asked.each * len(KINDS):
        parser.error(f"--services {asked.services}: {2 * asked.each * len(KINDS)} or more, so that none is asked twice")
    made = constrained_cluster(asked.nodes, asked.pods, asked.services, datetime.now(UTC))
    placer = Placer(made, max(asked.each // asked.loops, 1))
    for number in range(asked.each):
        for kind in KINDS:
            placer.place(kind, number)
    print(f"{asked.nodes} nodes, {asked.pods} pods, {asked.services} services; {asked.each} pods of each kind")
    print(f"  {'microseconds, medians':30}{''.join(f'{kind:>10}' for kind in KINDS)}{'all':>10}{'99 %':>10}")
    steps = placer.steps[KINDS[0]]
    last = ("all", "all, CPU time", "event")
    for step in (*(one for one in steps if one not in last), *last):
        print(row(step, [placer.steps[kind][step] for kind in KINDS]))
    print(f"  {'nodes that passed':30}{''.join(f'{np.median(placer.passed[kind]):>10.0f}' for kind in KINDS)}")
    everything = np.concatenate([placer.steps[kind]["all"] for kind in KINDS])
    for name, found in (("median", np.median(everything)), ("99 % of the pods", np.quantile(everything, 0.99))):
        verdict = "holds" if found <= _LIMIT else "MISSED"
        print(f"  {name}: {1e3 * found:.2f} ms, at most {1e3 * _LIMIT:.0f} are wanted: {verdict}")
    loops, ours = float(np.median(placer.loops)), float(np.median(placer.beside_loops))
    print(f"  {', '.join(_LOOPS)} of {len(placer.loops)} pods: {1e3 * ours:.2f} ms,", end=" ")
    print(f"as loops over nodes {1e3 * loops:.1f} ms, {loops / ours:.0f} times as long; the same nodes rejected")


if __name__ == "__main__":
    main()
