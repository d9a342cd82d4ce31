"""Microseconds per pod of every registered score, and of a sum of all, over 5,000 and 20,000 nodes.

    python -m benchmarks.scores_speed [--nodes 5000 20000] [--repeats 50]

The columns are given: what fills predicted_peak's is measured with the scorer as a whole.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from base.arrays import Floats
from benchmarks.harness import command_line, microseconds
from forecast.resources import RESOURCES
from scorer.scores.score_catalogue import SCORES, combine
from scorer.scores.score_columns import ClusterFigures, ScoredNodeColumns, ScoredPodColumns

KINDS = ("cpu", "memory", "pods", "ephemeral-storage", "nvidia.com/gpu")
GIB = 1024.0**3
SHORT_LIST = 16

Case = tuple[ScoredNodeColumns, ScoredPodColumns, ClusterFigures]


def columns(n_nodes: int, rng: np.random.Generator) -> Case:
    """A half full cluster."""
    allocatable = np.tile([32.0, 128 * GIB, 110.0, 500 * GIB, 8.0], (n_nodes, 1))
    requested = allocatable * rng.uniform(0.2, 0.8, allocatable.shape)
    capacity = np.tile([32.0, 128 * GIB, 5e8, 1e9, 1e7], (n_nodes, 1))
    exact = np.full(n_nodes, np.nan)
    exact[rng.choice(n_nodes, SHORT_LIST, replace=False)] = rng.random(SHORT_LIST)
    qos_pods = rng.integers(0, 20, (n_nodes, 3)).astype(np.float64)
    nodes = ScoredNodeColumns(
        kinds=KINDS,
        allocatable=allocatable,
        requested=requested,
        requested_nonzero=requested[:, :2] * 1.05,
        capacity=capacity,
        virtual_available=capacity * rng.uniform(0.2, 0.8, capacity.shape),
        qos_pods=qos_pods,
        qos_memory=qos_pods * GIB,
        predicted_share=rng.uniform(0.2, 0.8, n_nodes),
        exact_cost=exact,
        out_of_memory=rng.random(n_nodes) < 0.1,
        known=np.ones(n_nodes, dtype=bool),
    )
    requests = np.array([1.0, 4 * GIB, 1.0, 0.0, 1.0])
    pod = ScoredPodColumns(requests, requests[:2], np.ones(len(RESOURCES)), 1)
    in_cluster = qos_pods.sum(axis=0), nodes.qos_memory.sum(axis=0), allocatable[:, :2].sum(axis=0)
    return nodes, pod, ClusterFigures(*in_cluster, stack_weight=0.3)


def main() -> None:
    """Print the figures."""
    parser = command_line(__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[5000, 20000])
    parser.add_argument("--repeats", type=int, default=50)
    arguments = parser.parse_args()
    cases = {n: columns(n, np.random.default_rng(0)) for n in arguments.nodes}
    print(f"{'microseconds':30}{''.join(f'{n:>10} nodes' for n in cases)}")
    for name, score in SCORES.items():
        times = [microseconds(partial(score.compute, *case), arguments.repeats) for case in cases.values()]
        print(f"{name:30}{''.join(f'{time:16.0f}' for time in times)}")
    times = [microseconds(partial(_all_combined, case), arguments.repeats) for case in cases.values()]
    print(f"{'all of them, combined':30}{''.join(f'{time:16.0f}' for time in times)}")


def _all_combined(case: Case) -> Floats:
    return combine({name: score.compute(*case) for name, score in SCORES.items()}, dict.fromkeys(SCORES, 1.0))


if __name__ == "__main__":
    main()
