"""Inter-pod affinity in two phases against the direct triple loop, and what pods near pods cost in a large cluster.

    python -m benchmarks.inter_pod_affinity [--nodes 300] [--pods 15000] [--new 1000] [--sample 4] [--runs 3]

First table: the new pods of one application are placed one after the other, each sees those before it. They must be
in a zone with a cache, must not share a node with a batch job, rather not with their own kind; some pods that sit keep
away from them. Two phases: sums per topology pair, then a lookup per node. The direct loop asks of each node and each
pod that sits whether a term ties them together; it takes seconds per pod, so it is run for an evenly spaced sample of
the new pods, in the state that they meet, and the two phases must give the same nodes and scores there.

Second table: one pod at 5,000 nodes with 5,000 services of 20 pods, 1,000 of which keep away from their own kind;
filter and score over all nodes, nothing kept from the pod before but columns of labels.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median

import numpy as np

from base.arrays import Bools, Ints
from benchmarks.harness import command_line, microseconds
from benchmarks.neighbours import HOSTNAME, NAMESPACE, choosing, pod, service_pods, view_of, web_constraints
from kube.objects.constraints import (
    LabelSelector,
    Operator,
    PodAffinityTerm,
    PodConstraints,
    Requirement,
    TopologySpreadConstraint,
)
from kube.objects.labels import selector_matches
from kube.objects.objects import NodeInfo, PodInfo
from placement.filters.filter import ClusterView, rejected
from placement.filters.inter_pod_affinity import InterPodAffinity
from placement.filters.pod_topology_spread import PodTopologySpread
from placement.scores.inter_pod_affinity import InterPodAffinityScore as InterPodAffinityScore
from placement.scores.pod_topology_spread import PodTopologySpreadScore as PodTopologySpreadScore

NEAR, AWAY = "service-0", "service-1"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run. Seconds per new pod; n_compared: pods for which both ways were run."""

    two_phases: float
    direct: float
    n_placed: int
    n_compared: int


def run(n_nodes: int, n_pods: int, n_new: int, n_sample: int, seed: int) -> Outcome:
    """Place the new pods in two phases; raises AssertionError where the direct loop says otherwise."""
    view = rollout_cluster(n_nodes, n_pods, np.random.default_rng(seed))
    constraints = replace(web_constraints("web", near=NEAR, away_from=AWAY), spread=())
    sample = set(np.linspace(0, n_new - 1, min(n_sample, n_new)).astype(int).tolist())
    seconds, direct_seconds, n_placed = 0.0, 0.0, 0
    for i in range(n_new):
        new = pod(f"web-{i}", "web", constraints=constraints)
        start = time.perf_counter()
        passed, scores = two_phases(new, view)
        seconds += time.perf_counter() - start
        if i in sample:
            start = time.perf_counter()
            expected_passed, expected_scores = direct_loop(new, view)
            direct_seconds += time.perf_counter() - start
            assert passed.tolist() == expected_passed.tolist(), f"pod {i}: other nodes pass"
            assert scores.tolist() == expected_scores.tolist(), f"pod {i}: other scores"
        if passed.any():
            place = int(np.flatnonzero(passed)[scores.argmax()])
            bound = replace(new, node=view.state.names[place])
            start = time.perf_counter()
            view.index.apply(view.state.put_pod(bound))
            seconds += time.perf_counter() - start
            n_placed += 1
    return Outcome(seconds / n_new, direct_seconds / len(sample), n_placed, len(sample))


def rollout_cluster(n_nodes: int, n_pods: int, rng: np.random.Generator) -> ClusterView:
    """Services with a pod on every third node: caches, batch jobs, loners that want no web beside them, and others."""
    replicas = max(n_nodes // 3, 1)
    loner = PodConstraints(anti_affinity=(choosing(HOSTNAME, "web"),))
    pods = service_pods(n_pods // replicas, replicas, n_nodes, n_apart=0, rng=rng)
    return view_of(
        n_nodes, (replace(one, constraints=loner) if one.labels["app"] == "service-2" else one for one in pods)
    )


def two_phases(new: PodInfo, view: ClusterView) -> tuple[Bools, Ints]:
    """(n_rows,) nodes that pass, and the scores of those."""
    passed = view.state.alive & ~rejected(InterPodAffinity().filter(new, view), view.n_rows)
    return passed, InterPodAffinityScore().score(new, view, np.flatnonzero(passed))


def direct_loop(new: PodInfo, view: ClusterView) -> tuple[Bools, Ints]:
    """The same from the definition: every node with every pod that sits, every time."""
    state = view.state
    nodes = [node for node in state.nodes if node is not None]
    sitting = [(one, nodes[seat.node]) for uid, seat in state.seat_of.items() for one in (state.pods[uid],)]
    may_be_first = all(_means(term, new) for term in new.constraints.affinity) and not any(
        _means(term, one) for one, _ in sitting for term in new.constraints.affinity
    )
    passed = np.array([_passes(new, node, sitting, may_be_first) for node in nodes], dtype=bool)
    raw = [_weight(new, node, sitting) for node, passes in zip(nodes, passed, strict=True) if passes]
    span = max(raw, default=0) - min(raw, default=0)
    scores = [int(100.0 * ((one - min(raw)) / span)) if span else 0 for one in raw]
    return passed, np.array(scores, dtype=np.int64)


def _passes(new: PodInfo, node: NodeInfo, sitting: Sequence[tuple[PodInfo, NodeInfo]], may_be_first: bool) -> bool:
    near = dict.fromkeys(new.constraints.affinity, may_be_first)
    for one, its_node in sitting:
        for term in new.constraints.anti_affinity:
            if _tied(term, node, its_node) and _means(term, one):
                return False
        for term in one.constraints.anti_affinity:
            if _tied(term, node, its_node) and _means(term, new):
                return False
        for term in near:
            if not near[term] and _tied(term, node, its_node):
                near[term] = all(_means(each, one) for each in new.constraints.affinity)
    return all(near.values()) and all(term.topology_key in node.labels for term in near)


def _weight(new: PodInfo, node: NodeInfo, sitting: Sequence[tuple[PodInfo, NodeInfo]]) -> int:
    total = 0
    for one, its_node in sitting:
        for mine, sign in ((new.constraints.preferred_affinity, 1), (new.constraints.preferred_anti_affinity, -1)):
            for preferred in mine:
                if _tied(preferred.term, node, its_node) and _means(preferred.term, one):
                    total += sign * preferred.weight
        for term in one.constraints.affinity:
            if _tied(term, node, its_node) and _means(term, new):
                total += 1
        for theirs, sign in ((one.constraints.preferred_affinity, 1), (one.constraints.preferred_anti_affinity, -1)):
            for preferred in theirs:
                if _tied(preferred.term, node, its_node) and _means(preferred.term, new):
                    total += sign * preferred.weight
    return total


def _tied(term: PodAffinityTerm, node: NodeInfo, other: NodeInfo) -> bool:
    value = node.labels.get(term.topology_key)
    return value is not None and value == other.labels.get(term.topology_key)


def _means(term: PodAffinityTerm, one: PodInfo) -> bool:
    return one.namespace in term.namespaces and selector_matches(term.selector, one.labels)


def large_cluster_times(n_nodes: int, n_services: int, replicas: int, repeats: int) -> dict[str, list[float]]:
    """Microseconds of both plugins' filters, then of both plugins' scores, by kind of pod; and of an event."""
    rng = np.random.default_rng(0)
    view = view_of(n_nodes, service_pods(n_services, replicas, n_nodes, n_apart=n_services // 5, rng=rng))
    rows = np.flatnonzero(view.state.alive)
    web = web_constraints("service-4000", near="service-4001", away_from="service-4002")
    everything = PodAffinityTerm(LabelSelector(), HOSTNAME, frozenset({NAMESPACE}))
    others = LabelSelector((Requirement("app", Operator.NOT_IN, ("service-7",)),))
    cases = {
        "says nothing": pod("new", "new-service"),
        "of a service that keeps apart": next(iter(service_pods(1, 1, n_nodes, 1, rng))),
        "affinity, anti-affinity and spread": pod("new", "service-4000", constraints=web),
        "every selector chooses every pod": pod(
            "new",
            "service-4000",
            constraints=PodConstraints(
                affinity=(everything,),
                anti_affinity=(replace(everything, topology_key="rack"),),
                spread=(TopologySpreadConstraint(1, HOSTNAME, hard=True, selector=others),),
            ),
        ),
    }
    found = {}
    for name, one in cases.items():
        plugins: tuple[Callable[[], object], ...] = (
            partial(InterPodAffinity().filter, one, view),
            partial(PodTopologySpread().filter, one, view),
            partial(InterPodAffinityScore().score, one, view, rows),
            partial(PodTopologySpreadScore().score, one, view, rows),
        )
        found[name] = [microseconds(plugin, repeats) for plugin in plugins]
    arrival = pod("new", "service-4000", "node-0", web)
    found["its arrival and departure, two events"] = [microseconds(partial(_come_and_go, arrival, view), repeats)]
    return found


def _come_and_go(one: PodInfo, view: ClusterView) -> None:
    view.index.groups.count(0, one, 1)
    view.index.terms.count(0, one, 1)
    view.index.groups.count(0, one, -1)
    view.index.terms.count(0, one, -1)


def main() -> None:
    """Print the figures."""
    parser = command_line(__doc__)
    parser.add_argument("--nodes", type=int, default=300)
    parser.add_argument("--pods", type=int, default=15000)
    parser.add_argument("--new", type=int, default=1000)
    parser.add_argument("--sample", type=int, default=4)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=200)
    arguments = parser.parse_args()
    outcomes = [
        run(arguments.nodes, arguments.pods, arguments.new, arguments.sample, seed) for seed in range(arguments.runs)
    ]
    print(f"{arguments.nodes} nodes, {arguments.pods} pods, {arguments.new} new pods; {arguments.runs} runs")
    print(f"{'milliseconds per new pod':30}{'two phases':>12}{'direct':>12}{'ratio':>10}{'placed':>10}{'equal in':>10}")
    for i, one in enumerate(outcomes):
        figures = f"{one.two_phases * 1e3:12.3f}{one.direct * 1e3:12.1f}{one.direct / one.two_phases:10.0f}"
        print(f"{f'run {i + 1}':30}{figures}{one.n_placed:10}{one.n_compared:10}")
    ratio = median(one.direct / one.two_phases for one in outcomes)
    print(f"{'median':30}{'':24}{ratio:10.0f}   (at least 20)\n")
    times = large_cluster_times(5000, 5000, 20, arguments.repeats)
    print("5,000 nodes, 100,000 pods, 1,000 services keep apart")
    print(f"{'microseconds':40}{'affinity':>10}{'spread':>10}{'affinity':>10}{'spread':>10}")
    print(f"{'':40}{'filter':>10}{'filter':>10}{'score':>10}{'score':>10}")
    for name, of_kinds in times.items():
        print(f"{name:40}{''.join(f'{one:10.0f}' for one in of_kinds)}")


if __name__ == "__main__":
    main()
