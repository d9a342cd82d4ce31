"""Everything that was read of a day, put together: dense arrays, log rates, unit checks, tables. Pure."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from forecast.arrays import Bools, Floats, Floats32
from forecast.resources import DISK, LOG, MEMORY, NETWORK, RESOURCES
from trainer.history.cleaning import Cause, Tally
from trainer.history.layout import Layout
from trainer.prometheus import day_tables as tables
from trainer.prometheus.day_grid import DayGrid
from trainer.prometheus.gauge_reading import LogOfGauge
from trainer.prometheus.labels import node_names, pod_names
from trainer.prometheus.node_facts import NodeFacts
from trainer.prometheus.options import SourceOptions
from trainer.prometheus.pods_of_day import PodsOfDay
from trainer.prometheus.samples import Samples, place
from trainer.prometheus.units import check_units


@dataclass(frozen=True, slots=True)
class DayRead:
    """What was read.

    samples  : by query name
    requests : (cpu, memory) by (namespace, pod, uid)
    gauge    : where log bytes come from the kubelet's gauge
    """

    pods: PodsOfDay
    samples: Mapping[str, Samples]
    requests: Mapping[tuple[str, str, str], Floats]
    facts: NodeFacts
    gauge: LogOfGauge | None
    recorded_share: float


def assemble(options: SourceOptions, grid: DayGrid, read: DayRead, tally: Tally) -> tables.DayTables:
    """The tables of the day; raises InputError for wrong labels and units."""
    pods = read.pods
    nodes = read.facts.all_nodes(_node_names(read))
    usage, node_usage, blind = _dense(grid, read, nodes, tally)
    measured: Bools = np.any(np.isfinite(usage), axis=2)
    rows = tables.presence(pods, measured)
    if np.isfinite(usage[:, :, LOG]).any():
        # Per-pod collectors: a node logs what its pods log.
        log = tables.log_of_nodes(pods, rows, usage[:, :, LOG], nodes, blind)
        node_usage[:, :, LOG] = np.where(np.isnan(node_usage[:, :, LOG]), log, node_usage[:, :, LOG])
    capacity = read.facts.capacity(nodes)
    _check_units(pods, rows, usage, nodes, node_usage, capacity)
    limits = ((DISK, options.disk_capacity), (NETWORK, options.network_capacity), (LOG, options.log_capacity))
    for index, limit in limits:
        if limit is not None:
            capacity[:, index] = limit
    return tables.DayTables(
        grid.day,
        tables.usage_table(grid, pods, rows, usage),
        tables.node_table(grid, nodes, node_usage),
        tables.pods_table(pods, read.requests),
        tables.capacity_table(nodes, capacity, read.facts.allocatable(nodes)),
        tally.report().counts,
        read.recorded_share,
    )


def _node_names(read: DayRead) -> set[str]:
    """Every node that runs pods or has samples."""
    names = {life.node for life in read.pods.lives}
    for name, samples in read.samples.items():
        if name.startswith("node_"):
            for part in (*samples.recorded, *samples.raw):
                names.update(node_names(name, part.labels, once=False))
    return names


def _dense(grid: DayGrid, read: DayRead, nodes: tuple[str, ...], tally: Tally) -> tuple[Floats32, Floats32, Bools]:
    """Usage of pods and nodes, (n_pods or n_nodes, n_ticks, n_resources), and where a pod logs an unknown amount."""
    pods = read.pods
    pod_row = {name: number for number, name in enumerate(pods.pods)}
    node_row = read.facts.rows(nodes)
    shape = (grid.n_ticks, len(RESOURCES))
    usage = np.full((len(pods.pods), *shape), np.nan, dtype=np.float32)
    node_usage = np.full((len(nodes), *shape), np.nan, dtype=np.float32)
    unknown: set[tuple[str, str]] = set()
    for index, resource in enumerate(RESOURCES):
        if (found := read.samples.get(f"pod_{resource.name}")) is not None:
            unknown |= place(found, usage[:, :, index], pod_row, pod_names, Layout.usage, tally)
        if (found := read.samples.get(f"node_{resource.name}")) is not None:
            place(found, node_usage[:, :, index], node_row, node_names, Layout.nodes, tally)
    tally.add(Layout.usage, Cause.UNKNOWN_OWNER, len(unknown))
    blind = np.zeros(usage.shape[:2], dtype=bool)
    if read.gauge is not None:
        empty = np.isnan(usage[:, :, LOG])
        usage[:, :, LOG] = np.where(empty, read.gauge.rates, usage[:, :, LOG])
        blind = read.gauge.blind & empty
    return usage, node_usage, blind


def _check_units(
    pods: PodsOfDay,
    rows: tables.Presence,
    usage: Floats32,
    nodes: tuple[str, ...],
    node_usage: Floats32,
    capacity: Floats,
) -> None:
    """Compare medians over the day."""
    if not usage.size or not nodes:
        return
    row = {node: number for number, node in enumerate(nodes)}
    node = np.array([row[life.node] for life in pods.lives], dtype=np.int64)[rows.life]
    sums = np.zeros(node_usage.shape, dtype=np.float64)
    known = np.zeros(node_usage.shape, dtype=bool)
    values = usage[rows.pod, rows.tick]  # (n_rows, n_resources)
    np.add.at(sums, (node, rows.tick), np.nan_to_num(values))
    np.logical_or.at(known, (node, rows.tick), np.isfinite(values))
    sums[~known] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # medians of what was never measured are NaN, as they should
        check_units(
            np.nanmedian(node_usage, axis=1),
            capacity,
            np.nanmedian(sums, axis=1),
            np.nanmedian(usage[:, :, MEMORY], axis=1),
        )
