"""The tables next to the samples: requests of pods and capacities of nodes, joined to what the samples mention.

Names that occur on one side only are no error: a pod without a row has unknown requests, a node without a row unknown
capacity, and rows of pods that never reported are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pyarrow as pa

from forecast.aggregation import NodeTable, PodTable
from forecast.arrays import Floats, Ints
from forecast.errors import InputError
from forecast.one_off_owners import group_of_each
from forecast.resources import RESOURCES
from forecast.service_key import ServiceKey
from trainer.history.cleaning import Cause, Tally
from trainer.history.layout import Layout, LayoutFile, numbers
from trainer.history.series_file import Inventory

_STILL_THERE_SECONDS = 900
"""An owner that was sampled so shortly before the end of the history may run on."""

_REQUESTS = ("request_cpu_cores", "request_memory_bytes")
_CAPACITY = tuple(resource.column for resource in RESOURCES)
_ALLOCATABLE = ("allocatable_cpu_cores", "allocatable_memory_bytes")


def read_requests(file: LayoutFile, tally: Tally) -> Mapping[tuple[str, str], Floats]:
    """Requests (CPU cores, memory bytes; NaN = unknown) by (namespace, pod); the last row of a pod counts."""
    table = file.read(["namespace", "pod", *_REQUESTS])
    values = _positive(table, _REQUESTS, file.name, tally, zero_allowed=True)  # (n_rows, 2)
    names = zip(table["namespace"].to_pylist(), table["pod"].to_pylist(), strict=True)
    return {name: row for name, row in zip(names, values, strict=True) if None not in name}


def read_capacity(file: LayoutFile, tally: Tally) -> Mapping[str, Floats]:
    """Capacities and allocatable CPU and memory (NaN = not a limit, unknown) by node: (n_resources + 2,)."""
    columns = (*_CAPACITY, *_ALLOCATABLE)
    table = file.read(["node", *columns])
    values = _positive(table, columns, file.name, tally)
    return {name: row for name, row in zip(table["node"].to_pylist(), values, strict=True) if name is not None}


def node_table(capacity: Mapping[str, Floats], seen: Collection[str], tally: Tally) -> NodeTable:
    """All nodes that have a capacity or a sample, sorted by name."""
    tally.set(Layout.capacity, Cause.UNKNOWN_NODE, len(set(seen) - set(capacity)))
    nodes = tuple(sorted({*capacity, *seen}))
    unknown = np.full(len(_CAPACITY) + len(_ALLOCATABLE), np.nan)
    values = np.array([capacity.get(node, unknown) for node in nodes]).reshape(len(nodes), len(unknown))
    return NodeTable(nodes, capacity=values[:, : len(_CAPACITY)], allocatable=values[:, len(_CAPACITY) :])


def pod_table(stock: Inventory, requests: Mapping[tuple[str, str], Floats], tally: Tally) -> tuple[PodTable, Ints]:
    """Return all pods with samples, sorted by service and name, and the row of each series of the file (-1 = left out).

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
            requests=np.array([requests.get(name, unknown) for name in names]).reshape(len(rows), len(_REQUESTS)),
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


def _positive(
    table: pa.Table, columns: Sequence[str], name: str, tally: Tally, *, zero_allowed: bool = False
) -> Floats:
    """Columns side by side, (n_rows, n_columns); what is missing or cannot be true is NaN."""
    values = np.full((table.num_rows, len(columns)), np.nan)
    for index, column in enumerate(columns):
        if column in table.column_names:
            data = table[column].combine_chunks()
            values[:, index] = numbers(data)
            with np.errstate(invalid="ignore"):
                good = np.isfinite(values[:, index]) & (values[:, index] >= 0 if zero_allowed else values[:, index] > 0)
            tally.add(name, Cause.BAD_CAPACITY, int(np.count_nonzero(~good)) - data.null_count)
            values[~good, index] = np.nan
    return values
