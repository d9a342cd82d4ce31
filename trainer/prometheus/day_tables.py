"""What was read of one day, as the tables of docs/understand/history-layout.md, and remarks on it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa

from base.arrays import Bools, Floats, Floats32, Ints
from forecast.resources import NETWORK, RESOURCES
from trainer.history.cleaning import CleaningCause
from trainer.history.limit_hits_file import OOM_BYTES, THROTTLED_SHARE
from trainer.prometheus.pods_of_day import PodsOfDay
from trainer.prometheus.query_times import DayGrid

_NAMED = 3

_TIME = pa.timestamp("ms", tz="UTC")
_NAME = pa.dictionary(pa.int32(), pa.string())


@dataclass(frozen=True, slots=True)
class Remark:
    """What was found, and what to do.

    cause : stable, the same from day to day
    wrong : whether it makes figures wrong or missing, rather than telling how they were read
    """

    cause: str
    text: str
    wrong: bool = True


def some(names: Collection[str] | Counter[str]) -> str:
    """Return the first names, those that count most where they are counted, and how many more there are."""
    listed = [name for name, _ in names.most_common()] if isinstance(names, Counter) else list(names)
    return ", ".join(listed[:_NAMED]) + (f" and {len(listed) - _NAMED:,} more" if len(listed) > _NAMED else "")


@dataclass(frozen=True, slots=True)
class DayTables:
    """One UTC day, or the part of it that is over.

    usage, nodes, pods, capacity, limit_hits : columns of docs/understand/history-layout.md; samples sorted by timestamp
    counts                       : flaws by (file, cause), for the report
    recorded_share               : share of the times measured that recording rules answered, mean over the queries
    remarks                      : what does not balance, and how unusual metrics were read
    other_names                  : what metrics call nodes otherwise than Kubernetes does -> the node meant last
    """

    day: date
    usage: pa.Table
    nodes: pa.Table
    pods: pa.Table
    capacity: pa.Table
    limit_hits: pa.Table
    counts: Mapping[tuple[str, CleaningCause], int]
    recorded_share: float
    remarks: tuple[Remark, ...] = ()
    other_names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Presence:
    """The rows of usage.parquet. tick, pod, life: (n_rows,) in the order of time."""

    tick: Ints
    pod: Ints
    life: Ints


def presence(pods: PodsOfDay, measured: Bools) -> Presence:
    """A row for every pod that runs; where kube-state-metrics is silent, for every pod with usage.

    measured : (n_pods, n_ticks) whether anything was measured
    """
    there = pods.life >= 0
    life = pods.life
    if (silent := pods.silent).any():
        there = there | (measured & silent)
        life = np.where(there & silent, pods.known_life(), life)
    tick, pod = np.nonzero(there.T)
    return Presence(tick, pod, life[pod, tick])


def usage_table(grid: DayGrid, pods: PodsOfDay, rows: Presence, usage: Floats32) -> pa.Table:
    """usage: (n_pods, n_ticks, n_resources), NaN = not measured. Network of pods on the host network is the host's."""
    values = usage[rows.pod, rows.tick]  # (n_rows, n_resources)
    on_host = np.array([life.host_network for life in pods.lives], dtype=bool)
    if on_host.any():
        values[on_host[rows.life], NETWORK] = np.nan
    lives = pods.lives
    return pa.table(
        {
            "timestamp": _times(grid, rows.tick),
            "namespace": _names([life.namespace for life in lives], rows.life),
            "service": _names([life.service.service for life in lives], rows.life),
            "pod": _names([life.pod for life in lives], rows.life),
            "node": _names([life.node for life in lives], rows.life),
            **_usage_columns(values),
        }
    )


def log_of_nodes(pods: PodsOfDay, rows: Presence, log: Floats32, nodes: Sequence[str], blind: Bools) -> Floats32:
    """Log bytes/s of each node as the sum over its pods, (n_nodes, n_ticks); NaN where none is measured.

    log   : (n_pods, n_ticks); a pod that no collector mentions logs nothing
    blind : (n_pods, n_ticks) where a pod logs an unknown amount: its node is not measured then
    """
    row = {node: number for number, node in enumerate(nodes)}
    node = np.array([row.get(life.node, -1) for life in pods.lives], dtype=np.int64)[rows.life]
    values = log[rows.pod, rows.tick].astype(np.float64)
    known = np.isfinite(values)
    total = np.zeros((len(nodes) + 1, log.shape[1]))  # the last row takes pods on unknown nodes
    n_known = np.zeros_like(total, dtype=np.int64)
    np.add.at(total, (node, rows.tick), np.where(blind[rows.pod, rows.tick], np.nan, np.where(known, values, 0.0)))
    np.add.at(n_known, (node, rows.tick), known)
    total[n_known == 0] = np.nan
    return total[:-1].astype(np.float32)


def node_table(grid: DayGrid, nodes: Sequence[str], usage: Floats32) -> pa.Table:
    """usage: (n_nodes, n_ticks, n_resources); a row where anything is measured."""
    tick, node = np.nonzero(np.isfinite(usage).any(axis=2).T)
    return pa.table(
        {
            "timestamp": _times(grid, tick),
            "node": _names(list(nodes), node),
            **_usage_columns(usage[node, tick]),
        }
    )


def requests_of(pods: PodsOfDay, requests: Mapping[tuple[str, str, str], Floats]) -> Floats:
    """(n_pods, 2) CPU and memory, NaN = unknown. requests: by (namespace, pod, uid), "" = any uid."""
    unknown = np.full(2, np.nan)
    values = [
        requests.get((life.namespace, life.pod, life.uid), requests.get((life.namespace, life.pod, ""), unknown))
        for life in (pods.lives[i] for i in pods.last_life())
    ]
    return np.array(values, dtype=np.float64).reshape(len(values), 2)


def last_nodes(pods: PodsOfDay, nodes: Sequence[str]) -> Ints:
    """(n_pods,) row of the node that each pod was on last; -1 = of none of them."""
    row = {node: number for number, node in enumerate(nodes)}
    return np.array([row.get(pods.lives[i].node, -1) for i in pods.last_life()], dtype=np.int64)


def pods_table(pods: PodsOfDay, requests: Floats) -> pa.Table:
    """One row per pod. requests: (n_pods, 2)."""
    lives = [pods.lives[i] for i in pods.last_life()]
    every = np.arange(len(lives))
    return pa.table(
        {
            "namespace": _names([life.namespace for life in lives], every),
            "service": _names([life.service.service for life in lives], every),
            "pod": _names([life.pod for life in lives], every),
            "request_cpu_cores": _numbers(requests[:, 0]),
            "request_memory_bytes": _numbers(requests[:, 1]),
        }
    )


def limit_hits_table(grid: DayGrid, pods: PodsOfDay, values: Floats32) -> pa.Table:
    """A row for each pod and half hour of which anything is known.

    grid   : of half hours
    values : (n_pods, n_slots, 2) share of CFS periods that were throttled, memory at an OOM kill; NaN = not known, none
    """
    tick, pod = np.nonzero(np.isfinite(values).any(axis=2).T)
    lives = [pods.lives[i] for i in pods.last_life()]
    here = values[pod, tick]  # (n_rows, 2)
    return pa.table(
        {
            "timestamp": _times(grid, tick),
            "namespace": _names([life.namespace for life in lives], pod),
            "pod": _names([life.pod for life in lives], pod),
            THROTTLED_SHARE: pa.array(here[:, 0], pa.float32(), from_pandas=True),
            OOM_BYTES: pa.array(here[:, 1], pa.float32(), from_pandas=True),
        }
    )


def capacity_table(nodes: Sequence[str], capacity: Floats, allocatable: Floats) -> pa.Table:
    """capacity: (n_nodes, n_resources), NaN = not a limit; allocatable: (n_nodes, 2) CPU and memory."""
    columns = {r.column: _numbers(capacity[:, i]) for i, r in enumerate(RESOURCES)}
    allocatable_columns = ("allocatable_cpu_cores", "allocatable_memory_bytes")
    columns |= {name: _numbers(allocatable[:, i]) for i, name in enumerate(allocatable_columns)}
    return pa.table({"node": _names(list(nodes), np.arange(len(nodes))), **columns})


def _times(grid: DayGrid, tick: Ints) -> pa.Array:
    return pa.array((grid.start + tick * grid.step_seconds) * 1000, pa.int64()).cast(_TIME)


def _names(names: Sequence[str], rows: Ints) -> pa.Array:
    """A dictionary-encoded column: names[rows], every name once in the dictionary."""
    unique = sorted(set(names))
    code = {name: number for number, name in enumerate(unique)}
    codes = np.array([code[name] for name in names], dtype=np.int32)
    indices = codes[rows] if len(codes) else np.empty(0, dtype=np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), pa.array(unique, pa.string())).cast(_NAME)


def _usage_columns(values: Floats32) -> dict[str, Any]:
    return {r.column: pa.array(values[:, i], pa.float32(), from_pandas=True) for i, r in enumerate(RESOURCES)}


def _numbers(values: Floats) -> pa.Array:
    return pa.array(values, pa.float64(), from_pandas=True)
