"""Everything that was read of a day, put together: dense arrays, log rates, unit checks, tables. Pure."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from base.arrays import Bools, Floats, Floats32
from forecast.resources import CPU, DISK, LOG, MEMORY, NETWORK, RESOURCES
from forecast.usage_limits import bounded_by_nodes
from trainer.history.cleaning import CleaningCause, Tally
from trainer.history.history_layout import Layout
from trainer.prometheus import day_tables as tables
from trainer.prometheus.day_consistency import (
    check_places,
    check_pods,
    check_units,
    remarks_of_shapes,
    uncounted_sidecars,
    unmatched_nodes,
    unowned_pods,
)
from trainer.prometheus.day_remarks import (
    nodes_below_their_pods,
    pods_against_nodes,
    requests_against_nodes,
    requests_beyond_nodes,
    unknown_of_nodes,
    unmeasured_pods,
)
from trainer.prometheus.day_tables import Remark
from trainer.prometheus.kubelet_log_gauge import LogOfGauge
from trainer.prometheus.limit_hits import LimitHitsRead
from trainer.prometheus.matrix import Matrix
from trainer.prometheus.node_names import NodeFacts, NodeNames, node_facts, node_names, nodes_named, pod_names
from trainer.prometheus.pods_of_day import PodsOfDay, pods_of_day
from trainer.prometheus.prometheus_settings import SourceOptions
from trainer.prometheus.query_times import DayGrid
from trainer.prometheus.samples import Samples, forget_invented_zeros, place
from trainer.prometheus.shape_reading import Recognised, ShapeAnswer


@dataclass(frozen=True, slots=True)
class DayRead:
    """What was read.

    samples    : by query name
    more       : what other shapes and collectors than the first say, by query name; the first to be believed in front
    requests   : (cpu, memory) by (namespace, pod, uid)
    speed      : answers to node_network_speed
    recognised : the shapes besides the first
    n_sidecars : init containers that run beside their pods, with unknown restart policy or requests
    gauge      : where log bytes come from the kubelet's gauge
    hits       : how limits held pods back
    """

    pods: PodsOfDay
    samples: Mapping[str, Samples]
    more: Mapping[str, Sequence[ShapeAnswer]]
    requests: Mapping[tuple[str, str, str], Floats]
    facts: NodeFacts
    names: NodeNames
    speed: Sequence[Matrix]
    recognised: Sequence[Recognised]
    n_sidecars: int
    gauge: LogOfGauge | None
    recorded_share: float
    hits: LimitHitsRead

    @classmethod
    def nothing(cls, grid: DayGrid) -> DayRead:
        """Of a day of which there is no tick."""
        facts, names = node_facts([], [], []), NodeNames(frozenset(), {})
        return cls(pods_of_day([], 0, {}), {}, {}, {}, facts, names, (), (), 0, None, 0.0, LimitHitsRead(grid, (), {}))


def assemble(options: SourceOptions, grid: DayGrid, read: DayRead, tally: Tally) -> tables.DayTables:
    """The tables of the day; raises InputError for wrong labels and units, and where facts contradict each other."""
    pods = read.pods
    nodes = _all_nodes(read)
    usage, node_usage, blind, unlisted = _dense(grid, read, nodes, tally)
    measured: Bools = np.any(np.isfinite(usage), axis=2)
    rows = tables.presence(pods, measured)
    check_pods(pods, np.any(np.isfinite(usage[:, :, [CPU, MEMORY]]), axis=2), unlisted)
    _nothing_written(read, rows, usage, nodes)
    if np.isfinite(usage[:, :, LOG]).any():
        # Per-pod collectors: a node logs what its pods log.
        log = tables.log_of_nodes(pods, rows, usage[:, :, LOG], nodes, blind)
        node_usage[:, :, LOG] = np.where(np.isnan(node_usage[:, :, LOG]), log, node_usage[:, :, LOG])
    for answer in read.more.get("node_log", ()):
        row = {node: number for number, node in enumerate(nodes)}
        _fill_nodes(read, "node_log", answer.parts, node_usage[:, :, LOG], row, tally)
    capacity = read.facts.capacity(nodes, read.speed, read.names)
    sums = _sums_by_node(pods, rows, usage, nodes)
    _check_units(sums, usage, node_usage, capacity)
    allocatable = read.facts.allocatable(nodes, read.names)
    asked = tables.requests_of(pods, read.requests)
    with_pods = {life.node for life in pods.lives}
    may_ask = np.where(np.isnan(allocatable), capacity[:, [CPU, MEMORY]], allocatable)
    requests = bounded_by_nodes(asked, may_ask, tables.last_nodes(pods, nodes))
    remarks = (
        *_account(read, rows, usage, nodes, node_usage),
        *unknown_of_nodes(nodes, node_usage, capacity, allocatable, with_pods),
        *pods_against_nodes(sums, node_usage, len(pods.pods)),
        *nodes_below_their_pods(nodes, sums, node_usage),
        *requests_against_nodes(pods, asked, may_ask, nodes),
        *requests_beyond_nodes(pods, asked, requests),
        *read.hits.remarks,
    )
    limits = ((DISK, options.disk_capacity), (NETWORK, options.network_capacity), (LOG, options.log_capacity))
    for index, limit in limits:
        if limit is not None:
            capacity[:, index] = limit
    return tables.DayTables(
        grid.day,
        tables.usage_table(grid, pods, rows, usage),
        tables.node_table(grid, nodes, node_usage),
        tables.pods_table(pods, requests),
        tables.capacity_table(nodes, capacity, allocatable),
        read.hits.table(pods),
        tally.report().counts,
        read.recorded_share,
        remarks,
        {name: read.names.node(name) for name in sorted(read.names.of)},
    )


def _all_nodes(read: DayRead) -> tuple[str, ...]:
    """Every node that Kubernetes lists or that runs pods; where it lists none, every one that has samples."""
    nodes = set(read.facts.names) | {life.node for life in read.pods.lives}
    if not nodes:
        nodes = {read.names.node(name) for name in _seen_nodes(read)}
    return tuple(sorted(nodes))


def _seen_nodes(read: DayRead) -> set[str]:
    """Every name that answers have for a node."""
    parts = [part for name, one in read.samples.items() if name.startswith("node_") for part in one.parts]
    more = [
        part for name, answers in read.more.items() if name.startswith("node_") for one in answers for part in one.parts
    ]
    return nodes_named([*parts, *more, *read.speed])


def _account(
    read: DayRead, rows: tables.Presence, usage: Floats32, nodes: tuple[str, ...], node_usage: Floats32
) -> tuple[Remark, ...]:
    """What the user should know of this reading; raises InputError where facts contradict each other."""
    seen = _seen_nodes(read)
    with_pods = {life.node for life in read.pods.lives}
    strangers = read.names.strangers(seen)
    check_places(read.pods, {read.names.node(name) for name in seen - set(strangers)}, read.facts)
    return (
        *remarks_of_shapes(read.recognised),
        *unmeasured_pods(read.pods, rows, usage, read.facts),
        *unmatched_nodes(nodes, node_usage, with_pods, strangers, read.facts),
        *uncounted_sidecars(read.n_sidecars),
        *unowned_pods(read.pods),
    )


def _dense(
    grid: DayGrid, read: DayRead, nodes: tuple[str, ...], tally: Tally
) -> tuple[Floats32, Floats32, Bools, set[tuple[str, str]]]:
    """Usage of pods and nodes, (n_pods or n_nodes, n_ticks, n_resources), where a pod logs an unknown amount, and pods
    that are measured though kube-state-metrics does not list them.
    """
    pods = read.pods
    pod_row = {name: number for number, name in enumerate(pods.pods)}
    node_row = {name: number for number, name in enumerate(nodes)}
    shape = (grid.n_ticks, len(RESOURCES))
    usage = np.full((len(pods.pods), *shape), np.nan, dtype=np.float32)
    node_usage = np.full((len(nodes), *shape), np.nan, dtype=np.float32)
    unknown: set[tuple[str, str]] = set()
    for index, resource in enumerate(RESOURCES):
        name, every_tick = f"pod_{resource.name}", np.ones(grid.n_ticks, dtype=bool)
        if (found := read.samples.get(name)) is not None:
            unknown |= place(found, usage[:, :, index], pod_row, pod_names, Layout.usage, tally)
        for answer in read.more.get(name, ()):
            other = np.full_like(usage[:, :, index], np.nan)
            place(Samples((), answer.parts, every_tick, name), other, pod_row, pod_names, Layout.usage, tally)
            here = usage[:, :, index]
            usage[:, :, index] = np.fmax(here, other) if answer.larger else np.where(np.isnan(here), other, here)
        name = f"node_{resource.name}"
        if (found := read.samples.get(name)) is not None:
            place(_of_nodes(read.names, found), node_usage[:, :, index], node_row, _named, Layout.nodes, tally)
        for answer in read.more.get(name, ()) if name != "node_log" else ():
            _fill_nodes(read, name, answer.parts, node_usage[:, :, index], node_row, tally)
    forget_invented_zeros(usage)
    forget_invented_zeros(node_usage)
    tally.add(Layout.usage, CleaningCause.UNKNOWN_OWNER, len(unknown))
    blind = np.zeros(usage.shape[:2], dtype=bool)
    if read.gauge is not None:
        empty = np.isnan(usage[:, :, LOG])
        usage[:, :, LOG] = np.where(empty, read.gauge.rates, usage[:, :, LOG])
        blind = read.gauge.blind & empty
    return usage, node_usage, blind, unknown


def _of_nodes(names: NodeNames, samples: Samples) -> Samples:
    """The same with the names of nodes; replicas record everything twice."""
    recorded = names.renamed(samples.name, samples.recorded, once=False)
    return Samples(recorded, names.renamed(samples.name, samples.raw), samples.raw_ticks, samples.name)


def _named(name: str, labels: Sequence[Mapping[str, str]], *, once: bool) -> list[str]:
    """Nodes of series whose names were checked before they were renamed: a node may have had two names."""
    return node_names(name, labels, once=False)


def _fill_nodes(
    read: DayRead, name: str, parts: Sequence[Matrix], out: Floats32, row: Mapping[str, int], tally: Tally
) -> None:
    """Put an answer where a node has no other the whole day. out: (n_nodes, n_ticks)"""
    other = np.full_like(out, np.nan)
    samples = Samples((), read.names.renamed(name, parts, once=False), np.ones(out.shape[1], dtype=bool), name)
    place(samples, other, row, _named, Layout.nodes, tally)
    empty = ~np.isfinite(out).any(axis=1)
    out[empty] = other[empty]


def _nothing_written(read: DayRead, rows: tables.Presence, usage: Floats32, nodes: tuple[str, ...]) -> None:
    """Set disk of pods to 0 that never read or wrote: cAdvisor has no such series before the first byte.

    It is 0 where the containers of a pod are measured, and other pods of its node have series of disks.
    usage: (n_pods, n_ticks, n_resources), changed: also to NaN for pods of which some containers have no name
    """
    pods = read.pods
    in_part = {pod for one in read.recognised if one.shape.beyond for pod in one.pods}
    usage[[number for number, name in enumerate(pods.pods) if name in in_part], :, DISK] = np.nan
    row = {node: number for number, node in enumerate(nodes)}
    node = np.array([row[life.node] for life in pods.lives], dtype=np.int64)[rows.life]
    here = usage[rows.pod, rows.tick]  # (n_rows, n_resources)
    has_disks = np.zeros(len(nodes), dtype=bool)
    has_disks[node[np.isfinite(here[:, DISK])]] = True
    by_containers = np.ones(len(pods.pods), dtype=bool)
    whole = {pod for one in read.recognised for pod in one.pods if "pod_disk" not in one.queries}
    by_containers[[number for number, name in enumerate(pods.pods) if name in whole]] = False
    zero = has_disks[node] & by_containers[rows.pod] & np.isnan(here[:, DISK]) & np.isfinite(here[:, CPU])
    usage[rows.pod[zero], rows.tick[zero], DISK] = 0.0


def _sums_by_node(pods: PodsOfDay, rows: tables.Presence, usage: Floats32, nodes: tuple[str, ...]) -> Floats:
    """(n_nodes, n_ticks, n_resources), NaN where no pod of a node is measured."""
    sums: Floats = np.zeros((len(nodes), *usage.shape[1:]), dtype=np.float64)
    if not usage.size or not nodes:
        return np.full_like(sums, np.nan)
    row = {node: number for number, node in enumerate(nodes)}
    node = np.array([row[life.node] for life in pods.lives], dtype=np.int64)[rows.life]
    known = np.zeros(sums.shape, dtype=bool)
    values = usage[rows.pod, rows.tick]  # (n_rows, n_resources)
    np.add.at(sums, (node, rows.tick), np.nan_to_num(values))
    np.logical_or.at(known, (node, rows.tick), np.isfinite(values))
    sums[~known] = np.nan
    return sums


def _check_units(sums: Floats, usage: Floats32, node_usage: Floats32, capacity: Floats) -> None:
    """Compare medians over the day. sums: of _sums_by_node"""
    if not usage.size or not len(node_usage):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # medians of what was never measured are NaN, as they should
        check_units(
            np.nanmedian(node_usage, axis=1),
            capacity,
            np.nanmedian(sums, axis=1),
            np.nanmedian(usage[:, :, MEMORY], axis=1),
        )
