"""Traces as they are: every entity a service of one pod, for the backtest.

Nothing is constructed but the nodes, which a history must have and the backtest does not look at.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from pathlib import Path

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Ints
from benchmarks.clusters.cluster import SLOTS_PER_DAY, Cluster, Service
from benchmarks.clusters.history_directory import write_history
from benchmarks.clusters.traces import Curves, read_asd, read_bitbrains, read_smd
from forecast.resources import CPU, MEMORY, RESOURCES

N_NODES = 10


class Trace(Enum):
    """The traces that a backtest can run on."""

    BITBRAINS = "bitbrains"
    SMD = "smd"
    ASD = "asd"


_READERS: dict[Trace, tuple[Callable[[Path], Curves], str]] = {
    Trace.BITBRAINS: (read_bitbrains, "Europe/Amsterdam"),
    Trace.SMD: (read_smd, "UTC"),
    Trace.ASD: (read_asd, "UTC"),
}


def build_plain(trace: Trace | str, traces: Path, out: Path) -> Cluster:
    """Write a trace as a history. ASD's unnamed metrics stand in the CPU column."""
    trace = Trace(trace)
    read, time_zone = _READERS[trace]
    cluster = plain_cluster(read(traces), trace.value, time_zone)
    write_history(cluster, out)
    return cluster


def plain_cluster(curves: Curves, namespace: str, time_zone: str) -> Cluster:
    """A trace as a cluster in memory, its whole days only."""
    n_slots = curves.n_slots // SLOTS_PER_DAY * SLOTS_PER_DAY
    usage = np.full((len(curves.entities), len(RESOURCES), n_slots), np.nan, dtype=np.float32)
    for index, resource in enumerate(RESOURCES):
        if resource.name in curves.values:
            usage[:, index] = curves.values[resource.name][:, :n_slots]
    names = [entity.replace("/", "-") for entity in curves.entities]
    finite: Bools = np.asarray(np.isfinite(usage).any(axis=1))  # (n_pods, n_slots)
    first: Ints = finite.argmax(axis=1).astype(np.int64)
    end: Ints = (n_slots - finite[:, ::-1].argmax(axis=1)).astype(np.int64)
    node_of: Ints = np.arange(len(names), dtype=np.int64) % N_NODES
    peaks = np.nan_to_num(np.nansum(usage, axis=0, dtype=np.float64)).max(axis=1)
    capacity: Floats = np.tile(np.where(peaks > 0, 2 * peaks / N_NODES, np.nan), (N_NODES, 1))
    measured = np.isfinite(usage).any(axis=0)  # (n_resources, n_slots)
    base = np.broadcast_to(np.where(measured, 0.0, np.nan), (N_NODES, *measured.shape)).astype(np.float32)
    services = tuple(
        Service(namespace, "StatefulSet", name, _mean(usage[i, CPU]), _mean(usage[i, MEMORY]))
        for i, name in enumerate(names)
    )
    return Cluster(
        time_zone=time_zone,
        holiday_country=None,
        start=curves.start,
        services=services,
        pods=tuple(f"{name}-0" for name in names),
        service_of=np.arange(len(names), dtype=np.int64),
        first=first,
        end=end,
        node_of=node_of,
        usage=usage,
        nodes=tuple(f"node-{number:02d}" for number in range(1, N_NODES + 1)),
        base=base,
        capacity=capacity,
        allocatable=np.nan_to_num(capacity[:, [CPU, MEMORY]], nan=1.0),
    )


def _mean(series: AnyFloats) -> float:
    """Mean of what was measured; NaN (an unknown request) where nothing was."""
    return float(np.nanmean(series)) if np.isfinite(series).any() else float("nan")
