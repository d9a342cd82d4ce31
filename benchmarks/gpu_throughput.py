"""GPU pods per second with full scoring, on the nodes and pods of a production trace.

    python -m benchmarks.gpu_throughput --traces DIR [--pods 3000] [--rounds 3]

The loop of `forecast-scheduler schedule` in memory, as benchmarks/schedule_in_memory.py has it: the API server answers
everything at once, all else runs. Nodes are the 1,213 with cards of openb (benchmarks/gpu_packing_trace.py), pods come
in the trace's own mix, each by itself, in random order, onto idle nodes. A model knows every node.

    gpu          the GPU profile: filters, cards one by one, fragmentation over all nodes and cards, then
                 kube-scheduler's scores and the predicted peak
    balanced     the same with `schedule.gpu.placement: balanced`
    online       the online profile for the same pods, which counts cards and knows no shares: shared pods ask for none

Medians of rounds, of the pods that were placed: in a random part of the trace pods of named types may find no card of
these types, and a round is over when nothing was bound for ten seconds. Ends with status 1 where the GPU profile places
fewer than 500 pods/s.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from benchmarks.gpu_packing_trace import Trace, find_traces, read_trace
from benchmarks.harness import command_line, outcome
from benchmarks.schedule_answered import AnsweredLoop, Round
from benchmarks.schedule_stages import Stages
from forecast.service_key import NO_OWNER
from kube.objects.objects import PodInfo
from profiles.gpu.fragmentation.pod_shapes import PodShape
from testing.clusters.large_cluster import LargeCluster, large_cluster

_LEAST: Final = 500
_MIB: Final = 2.0**20
_QUIET_SECONDS: Final = 10.0
_NAME: Final = "forecast-scheduler"
_ANYWHERE: Final = {"scheduler_name": _NAME, "idle_cpu": {"plain_pods": "anywhere"}}  # there are no nodes without cards
_CONFIGURATIONS: Final[dict[str, dict[str, Any]]] = {
    "gpu": {"profiles": ["gpu"], "gpu": _ANYWHERE},
    "balanced": {"profiles": ["gpu"], "gpu": _ANYWHERE | {"placement": "balanced"}},
    "online": {},
}


def cluster_of(trace: Trace) -> LargeCluster:
    """The trace's nodes, idle, under a model that knows them."""
    states = trace.nodes
    made = large_cluster(states.n_nodes, states.n_nodes, 50, first_day=datetime.now(UTC).date())
    nodes = []
    for row, node in enumerate(made.nodes):
        amounts = {
            "cpu": states.cpu_total[row] / 1000,
            "memory": states.memory_total[row] * _MIB,
            "pods": 256.0,
            "nvidia.com/gpu": float(states.n_devices[row]),
        }
        labels = {"kubernetes.io/hostname": node.name, "nvidia.com/gpu.product": trace.models[states.model[row]]}
        nodes.append(replace(node, labels=labels, capacity=amounts, allocatable=amounts))
    return replace(made, nodes=nodes, pods=[])


def pods_of(shapes: Sequence[PodShape], like: PodInfo, name: str) -> list[PodInfo]:
    """Bare pods: each is a unit of its own."""
    pods = []
    for number, shape in enumerate(shapes):
        requests = {"cpu": shape.cpu_milli / 1000, "memory": shape.memory_mib * _MIB}
        annotations = {}
        if shape.is_shared:
            annotations["forecast-scheduler.io/gpu-milli"] = str(shape.milli)
        elif shape.count:
            requests["nvidia.com/gpu"] = float(shape.count)
        if shape.models:
            annotations["forecast-scheduler.io/gpu-type"] = ",".join(sorted(shape.models))
        pods.append(
            replace(
                like,
                uid=f"{name}-{number}",
                name=f"{name}-{number}",
                node="",
                owner=NO_OWNER,
                owner_uid="",
                annotations=annotations,
                requests=requests,
                nonzero_requests=(requests["cpu"], requests["memory"]),
                scheduler_name=_NAME,
                started=None,
                created=time.time(),  # the live mix is of pods that came lately
            )
        )
    return pods


def main() -> int:
    """Measure and print."""
    parser = command_line(__doc__)
    parser.add_argument("--traces", type=Path, help="directory of the trace")
    parser.add_argument("--pods", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stages", action="store_true", help="also where the CPU goes; slower")
    options = parser.parse_args()
    trace = read_trace(find_traces(options.traces))
    made = cluster_of(trace)
    like = large_cluster(3, 3, 1, first_day=datetime.now(UTC).date()).pods[0]
    rng = np.random.default_rng(42)
    order = [trace.pods["default"][at] for at in rng.permutation(len(trace.pods["default"]))[: options.pods]]
    print(f"{options.pods} pods of openb's default mix onto {len(made.nodes)} nodes, {options.rounds} rounds")
    rates: dict[str, float] = {}
    for name, settings in _CONFIGURATIONS.items():
        with AnsweredLoop(made, settings) as loop:
            rounds: list[Round] = []
            for number in range(options.rounds):
                pods = pods_of(order, like, f"{name}-{number}")
                rounds.append(loop.schedule(pods, quiet_seconds=_QUIET_SECONDS))
                loop.remove(pods)
            if options.stages:
                pods = pods_of(order, like, f"{name}-timed")
                with Stages() as stages:
                    loop.schedule(pods, quiet_seconds=_QUIET_SECONDS)
                loop.remove(pods)
                print("\n".join(f"    {stage:26}{each:10.1f}" for stage, each in stages.per_pod(len(pods)).items()))
        each = [one.rate for one in rounds]
        rates[name] = median(each)
        cpu = median(one.cpu_rate for one in rounds)
        lacking = ", ".join(str(len(order) - one.n_pods) for one in rounds)
        print(
            f"  {name:12}{rates[name]:8.0f} pods/s ({min(each):.0f} to {max(each):.0f}), {cpu:.0f} per CPU second; "
            f"not placed: {lacking}"
        )
    holds = rates["gpu"] >= _LEAST
    print(f"  at least {_LEAST} pods/s are wanted of the GPU profile: {outcome(holds)}")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
