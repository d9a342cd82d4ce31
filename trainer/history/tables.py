"""The tables of pods and nodes: requests and capacities, joined to what the samples mention.

Names that occur on one side only are no error: a pod without a row has unknown requests, a node without a row unknown
capacity, and rows of pods that never reported are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date

import numpy as np

from base.arrays import Floats, Ints
from base.errors import InputError
from forecast.aggregation import NodeTable, PodTable
from forecast.calendar import Calendar
from forecast.one_off_owners import group_of_each
from forecast.pod_bounds import bounded_by_nodes
from forecast.resources import CPU, MEMORY, RESOURCES
from forecast.service_key import ServiceKey
from trainer.history.capacity_file import COLUMNS, NodeCapacity, daily_capacities
from trainer.history.cleaning import Cause, Tally
from trainer.history.layout import Layout, LayoutFile, positive
from trainer.history.series_file import Inventory

_STILL_THERE_SECONDS = 900
"""An owner that was sampled so shortly before the end of the history may run on."""

_REQUESTS = ("request_cpu_cores", "request_memory_bytes")


def read_requests(file: LayoutFile, tally: Tally) -> Mapping[tuple[str, str], Floats]:
    """Requests (CPU cores, memory bytes; NaN = unknown) by (namespace, pod); the last row of a pod counts."""
    table = file.read(["namespace", "pod", *_REQUESTS])
    values = positive(table, _REQUESTS, file.name, tally, zero_allowed=True)  # (n_rows, 2)
    names = zip(table["namespace"].to_pylist(), table["pod"].to_pylist(), strict=True)
    return {name: row for name, row in zip(names, values, strict=True) if None not in name}


def node_table(
    capacity: Mapping[str, NodeCapacity],
    seen: Collection[str],
    calendar: Calendar,
    days: Sequence[date],
    tally: Tally,
) -> NodeTable:
    """All nodes that have a capacity or a sample, sorted by name; days: local days that are judged."""
    tally.set(Layout.capacity, Cause.UNKNOWN_NODE, len(set(seen) - set(capacity)))
    nodes = tuple(sorted({*capacity, *seen}))
    known = [capacity.get(node) for node in nodes]
    unknown = np.full(len(COLUMNS), np.nan)
    values = np.array([unknown if one is None else one.last for one in known]).reshape(len(nodes), len(unknown))
    last, daily = values[:, : len(RESOURCES)], None
    if changed := daily_capacities(known, calendar, days):
        daily = np.repeat(last[:, :, None], len(days), axis=2)
        for row, of_node in changed.items():
            daily[row] = of_node
        # Changes long before the first day concern nothing here.
        daily = None if np.array_equal(daily, np.broadcast_to(last[:, :, None], daily.shape), equal_nan=True) else daily
    return NodeTable(nodes, capacity=last, allocatable=values[:, len(RESOURCES) :], daily_capacity=daily)


def pod_table(
    stock: Inventory, requests: Mapping[tuple[str, str], Floats], nodes: NodeTable, tally: Tally
) -> tuple[PodTable, Ints]:
    """Return all pods with samples, sorted by service and name, and the row of each series of the file (-1 = left out).

    Requests are bounded by the largest node: a pod that requests more can use no more.

    Pods of DaemonSets and static pods are left out: they come with their node, and what they use is its base load.
    Owners that ran once under generated names are one service together (forecast.one_off_owners).
    """
    parsed = {pair: _service(*pair) for pair in {key[:2] for key in stock.keys}}
    placed = [i for i, key in enumerate(stock.keys) if not parsed[key[:2]].belongs_to_node]
    tally.set(Layout.usage, Cause.WITH_NODE, len(stock.keys) - len(placed))
    if not placed:
        raise InputError(
            f"{Layout.usage} holds no pod that a scheduler places, only DaemonSets and static pods: "
            "check the export's column service"
        )
    owners = {pair: service for pair, service in parsed.items() if not service.belongs_to_node}
    groups = _groups(stock, owners)
    tally.set(Layout.usage, Cause.ONE_OFF, len(groups))
    parsed |= {pair: groups[service] for pair, service in owners.items() if service in groups}
    services = tuple(sorted({parsed[stock.keys[i][:2]] for i in placed}))
    index = {service: number for number, service in enumerate(services)}
    rows = sorted((index[parsed[stock.keys[i][:2]]], stock.keys[i][2], i) for i in placed)
    rank = np.full(len(stock.keys), -1, dtype=np.int64)
    rank[[i for _, _, i in rows]] = np.arange(len(rows))
    unknown = np.full(len(_REQUESTS), np.nan)
    names = [(stock.keys[i][0], pod) for _, pod, i in rows]
    tally.set(Layout.pods, Cause.UNKNOWN_POD, sum(name not in requests for name in names))
    return (
        PodTable(
            pods=tuple(f"{namespace}/{pod}" for namespace, pod in names),
            services=services,
            service=np.array([service for service, _, _ in rows], dtype=np.int64),
            requests=bounded_by_nodes(
                np.array([requests.get(name, unknown) for name in names]).reshape(len(rows), len(_REQUESTS)),
                nodes.capacity[:, [CPU, MEMORY]],
            ),
        ),
        rank,
    )


def _groups(stock: Inventory, owners: Mapping[tuple[str, ...], ServiceKey]) -> dict[ServiceKey, ServiceKey]:
    """The group of each owner that is counted as a part of one; owners: by namespace and service of the file."""
    services = sorted(set(owners.values()))
    index = {service: number for number, service in enumerate(services)}
    rows = [i for i, key in enumerate(stock.keys) if key[:2] in owners]
    owner = np.array([index[owners[stock.keys[i][:2]]] for i in rows], dtype=np.int64)
    first, last = np.full(len(services), np.iinfo(np.int64).max), np.full(len(services), -1)
    np.minimum.at(first, owner, stock.first[rows])
    np.maximum.at(last, owner, stock.last[rows])
    # One of the last samples: a restart of the agent may have cost some.
    still_there = last >= last.max() - _STILL_THERE_SECONDS
    return group_of_each(services, last - first, ~still_there)


def node_lookup(names: Sequence[str], nodes: NodeTable) -> Ints:
    """Row of each name in the node table, and -1 at the end: (len(names) + 1,)."""
    index = {name: number for number, name in enumerate(nodes.nodes)}
    return np.array([*(index[name] for name in names), -1], dtype=np.int64)


def _service(namespace: str, service: str) -> ServiceKey:
    try:
        return ServiceKey.from_columns(namespace, service)
    except InputError as error:
        raise InputError(
            f"{Layout.usage}: service {service!r} in namespace {namespace!r} is not Kind/name of the top owner: "
            "write for instance Deployment/cart"
        ) from error
