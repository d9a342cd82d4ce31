"""The GPU cluster trace "openb" (cluster-trace-gpu-v2023, alibaba/clusterdata), and the protocol of the experiments
published with it (hkust-adsl/kubernetes-scheduler-simulator, pkg/simulator).

Files expected in the directory that --traces names, or in its subdirectory openb/:

    openb_node_list_gpu_node.csv       sn, cpu_milli, memory_mib, gpu, model
    openb_pod_list_<variant>.csv       name, cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec
    fgd_expected_allocation.csv        variant, policy, arrived_load_pct, gpu_alloc_pct_mean: the published results
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from base.arrays import Ints
from profiles.gpu.fragmentation.idle_of_nodes import NodeStates
from profiles.gpu.fragmentation.pod_shapes import PodShape, ShapeMix
from profiles.gpu.fragmentation.remainder_value import prices_of_pieces

TUNING: Final = 1.3
"""Pods arrive until they have asked for so many times the cards of the cluster (-tune 1.3)."""

KNOWN_COVERAGE: Final = 0.95
"""--pod-popularity-threshold 95 --pod-increase-step 1 of the published runs."""

_NODES: Final = "openb_node_list_gpu_node.csv"
_PUBLISHED: Final = "fgd_expected_allocation.csv"


@dataclass(frozen=True, slots=True)
class Trace:
    """nodes: all idle; models: names by NodeStates.model; pods: of each variant, in the order of their names;
    published: percent of the cards allocated, by variant, policy and percent arrived."""

    nodes: NodeStates
    models: tuple[str, ...]
    pods: Mapping[str, tuple[PodShape, ...]]
    published: Mapping[tuple[str, str, int], float]

    def variants(self) -> list[str]:
        """That have published results, the default first."""
        names = {variant for variant, _, _ in self.published} & self.pods.keys()
        return sorted(names, key=lambda name: (name != "default", name))


def find_traces(traces: Path | None) -> Path:
    """The directory of the files; ends the program with an explanation if they are not there."""
    places = [place for base in ([] if traces is None else [traces]) for place in (base, base / "openb")]
    for place in places:
        if (place / _NODES).is_file():
            return place
    sys.exit(
        f"no {_NODES} in {', '.join(map(str, places)) or 'any place: --traces was not given'}\n"
        "--traces DIR: the directory with openb/ of cluster-trace-gpu-v2023 (github.com/alibaba/clusterdata),\n"
        f"{_PUBLISHED} beside its files; see benchmarks/gpu_packing_trace.py for the columns"
    )


def read_trace(directory: Path) -> Trace:
    """Everything; half a second."""
    table = pd.read_csv(directory / _NODES).sort_values("sn", kind="stable")
    models = tuple(sorted(set(table["model"].dropna())))
    n_devices: Ints = table["gpu"].to_numpy(dtype=np.int64)
    at = {name: index for index, name in enumerate(models)}
    cpu, memory = table["cpu_milli"].to_numpy(dtype=np.float64), table["memory_mib"].to_numpy(dtype=np.float64)
    nodes = NodeStates(
        cpu_free=cpu.copy(),
        memory_free=memory.copy(),
        free_milli=np.where(np.arange(n_devices.max()) < n_devices[:, None], 1000, -1).astype(np.int64),
        model=np.array([at.get(name, -1) for name in table["model"]], dtype=np.int64),
        cpu_total=cpu,
        memory_total=memory,
        n_devices=n_devices,
    )
    pods = {
        path.stem.removeprefix("openb_pod_list_"): _pods(path)
        for path in sorted(directory.glob("openb_pod_list_*.csv"))
    }
    results = pd.read_csv(directory / _PUBLISHED)
    keys = zip(results["variant"], results["policy"], results["arrived_load_pct"].astype(int).tolist(), strict=True)
    published = dict(zip(keys, results["gpu_alloc_pct_mean"].astype(float).tolist(), strict=True))
    return Trace(nodes, models, pods, published)


def _pods(path: Path) -> tuple[PodShape, ...]:
    table = pd.read_csv(path).sort_values("name", kind="stable")
    models = table["gpu_spec"].fillna("") if "gpu_spec" in table else pd.Series("", index=table.index)
    return tuple(
        PodShape(
            int(cpu),
            int(memory),
            int(count),
            min(int(milli), 1000) if count else 0,
            frozenset(name for name in names.split("|") if name) if count else frozenset(),
        )
        for cpu, memory, count, milli, names in zip(
            table["cpu_milli"], table["memory_mib"], table["num_gpu"], table["gpu_milli"], models, strict=True
        )
    )


def arrivals(pods: Sequence[PodShape], capacity_milli: int, rng: np.random.Generator) -> list[PodShape]:
    """The pods shuffled, and pods drawn from them appended or dropped until TUNING times the capacity is asked for.

    SortClusterPods and TunePodsByNodeTotalResource of the simulator: what is appended comes last, drawn with
    replacement, and one pod more ends it as soon as a single card of it would not fit.
    """
    order = [pods[at] for at in rng.permutation(len(pods)).tolist()]
    target, asked = TUNING * capacity_milli, sum(pod.asked_milli for pod in order)
    while asked > target:
        asked -= order.pop(int(rng.integers(len(order)))).asked_milli
    while True:
        pod = pods[int(rng.integers(len(pods)))]
        if asked + pod.milli > target:
            return order
        asked += pod.asked_milli
        order.append(pod)


def mix_of(amounts: Mapping[PodShape, float] | Iterable[PodShape], *, coverage: float = 1.0) -> ShapeMix:
    """The commonest shapes that together make up `coverage` (0 to 1) of the amounts, or of the pods.

    The published simulator keeps 0.95 (pkg/utils/frag.go, GetTypicalPods): shapes by falling count, until what they
    sum to is reached, and their weights made to sum to 1 again.
    """
    if not isinstance(amounts, Mapping):
        counts: dict[PodShape, float] = {}
        for shape in amounts:
            counts[shape] = counts.get(shape, 0.0) + 1.0
        amounts = counts
    ordered = sorted(amounts.items(), key=lambda entry: (entry[1], entry[0].order()), reverse=True)
    enough, seen, n_kept = coverage * sum(amounts.values()), 0.0, 0
    while n_kept < len(ordered) and seen < enough:
        seen += ordered[n_kept][1]
        n_kept += 1
    kept = ordered[:n_kept]
    weight = np.array([amount for _, amount in kept], dtype=np.float64)
    return ShapeMix(tuple(shape for shape, _ in kept), weight / seen if seen > 0 else weight)


def known_mix(pods: Sequence[PodShape], coverage: float = KNOWN_COVERAGE) -> ShapeMix:
    """As the simulator knows it beforehand: of the pod list before it is tuned, without memory, rare shapes cut off."""
    return mix_of((PodShape(pod.cpu_milli, 0, pod.count, pod.milli, pod.models) for pod in pods), coverage=coverage)


def cards_full_at(pods: Sequence[PodShape]) -> float:
    """Percent of the cards that pods of this mix can be given, one after the other, before one has to be turned away.

    Of the cutting-stock problem, cores, memory and models no limit and the mix exact. Afterwards only what is small
    still fits.
    """
    asked: dict[int, float] = {}
    for pod in pods:
        if pod.count:
            asked[pod.milli] = asked.get(pod.milli, 0.0) + pod.count
    sizes = np.array(sorted(asked), dtype=np.int64)
    pieces = np.array([asked[size] for size in sizes.tolist()])
    return float(100 * (sizes @ pieces) / 1000 / (prices_of_pieces(sizes, pieces) @ pieces))
