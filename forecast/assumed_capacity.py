"""Capacities of disk, network and log that are not known: learned from nodes of one kind, or still missing."""

from __future__ import annotations

from typing import Final

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Ints
from forecast.calendar import SLOTS_PER_DAY
from forecast.history import History
from forecast.model import PeakModel
from forecast.resources import CPU, DISK, LOG, NETWORK, RESOURCES

ASSUMED_RESOURCES: Final = (DISK, NETWORK, LOG)
"""Resources whose capacity Kubernetes does not know."""

MARGIN: Final = 1.5
"""Factor on the sustained rate, 1. The busiest node of a kind then peaks at 67 % of the capacity, which leaves it a
fifth of growth until 80 %, above which a known capacity makes a node hot. Every training learns the growth anew.
Measured on the sample with its disk, network and log capacities taken away, hot node half hours by the real ones: none
assumed 0.82 %, margin 1 0.05 %, 1.5 0.01 %, 2 0.06 %, 3 0.32 %, real capacities 0.02 %
(docs/understand/placement.md)."""

LEAST_DAYS: Final = 7
"""Measured days that a node needs before its rates count: load differs by the day of the week."""

LEAST_NODES: Final = 3
"""Measured nodes that a kind needs: the rates of one or two say what their pods did, not what such a node can do."""

SAME_SIZE: Final = 0.01
"""Relative difference in CPU up to which two nodes are of one kind."""

_SUSTAINED_HALF_HOURS: Final = 4


def assumed_capacities(history: History) -> Floats:
    """Learned capacities where none is known: (n_nodes, n_resources) base units, NaN = none.

    A resource gets none on a kind of fewer than `LEAST_NODES` nodes that were measured on `LEAST_DAYS` days, or that
    never used it. Where the capacity of any node of the kind is known, the others get none either: they are taken to
    have as much as that node (cluster.predicted.node_capacity).
    """
    assumed = np.full(history.capacity.shape, np.nan)
    kinds = kinds_of_nodes(history.capacity[:, CPU])
    for resource in ASSUMED_RESOURCES:
        sustained = sustained_rates(as_now(history, history.node_usage[:, resource]))
        for kind in range(kinds.max(initial=-1) + 1):
            nodes = np.flatnonzero(kinds == kind)
            seen = sustained[nodes][np.isfinite(sustained[nodes])]
            if np.isnan(history.capacity[nodes, resource]).all() and len(seen) >= LEAST_NODES and seen.max() > 0:
                assumed[nodes, resource] = MARGIN * seen.max()
    return assumed


def kinds_of_nodes(cpu_cores: AnyFloats) -> Ints:
    """Number of each node's kind, 0 the smallest; -1 = its CPU is unknown: (n_nodes,)."""
    kinds = np.full(len(cpu_cores), -1, dtype=np.int64)
    smallest, kind = -np.inf, -1
    for node in np.argsort(cpu_cores, kind="stable").tolist():  # NaN comes last
        cores = float(cpu_cores[node])
        if np.isfinite(cores):
            if cores > smallest * (1 + SAME_SIZE) or kind < 0:
                smallest, kind = cores, kind + 1
            kinds[node] = kind
    return kinds


def as_now(history: History, usage: AnyFloats) -> AnyFloats:
    """Usage, (n_nodes, ..., n_days, 48), without the days on which its node was of another kind."""
    if history.daily_capacity is None:
        return usage
    with np.errstate(invalid="ignore"):
        change = np.abs(history.daily_capacity[:, CPU] / history.capacity[:, CPU, None] - 1)  # (n_nodes, n_days)
    other = (change > SAME_SIZE).reshape(len(change), *(1,) * (usage.ndim - 3), change.shape[1], 1)
    return np.where(other, np.nan, usage)


def sustained_rates(usage: AnyFloats) -> Floats:
    """Rate that each node sustained: (n_nodes,) base units; NaN = measured on fewer than `LEAST_DAYS` days.

    usage : (n_nodes, n_days, 48) base units, means over half hours; NaN = not measured. A day counts as measured if at
            least half of it was.
    """
    rates = np.full(len(usage), np.nan)
    for node, of_node in enumerate(usage):  # one by one: a sorted copy of all would need as much memory once more
        measured: Bools = np.isfinite(of_node)
        if (measured.sum(axis=1) >= SLOTS_PER_DAY / 2).sum() >= LEAST_DAYS:
            values = of_node[measured]
            rates[node] = np.partition(values, -_SUSTAINED_HALF_HOURS)[-_SUSTAINED_HALF_HOURS]
    return rates


def capacity_gaps(capacity: AnyFloats, measured: Bools) -> str:
    """Returns one line that names the resources without a capacity and the settings that give them one; "" = none.

    capacity : (n_nodes, n_resources) base units, NaN = neither known nor assumed; 0 = declared to be no limit
    measured : (n_resources,) whether the model knows any usage of the resource
    """
    n_nodes = len(capacity)
    without = {r: int(np.isnan(capacity[:, r]).sum()) for r in ASSUMED_RESOURCES}
    found = [r for r, n in without.items() if n]
    if not found:
        return ""
    where = ", ".join(
        f"{RESOURCES[r].name} on {'all' if without[r] == n_nodes else f'{without[r]} of'} {n_nodes} nodes"
        + ("" if measured[r] else " (its usage is not measured)")
        for r in found
    )
    named = ", ".join(f"prometheus.{RESOURCES[r].name}_capacity" for r in found)
    return (
        f"no capacity is known or can be learned of {where}: there it is no limit and enters no score; set {named} "
        "(bytes/s of one node) or the annotation forecast-scheduler.io/capacity of the nodes"
    )


def resources_measured(model: PeakModel) -> Bools:
    """Returns whether a model knows any usage of each resource, of services or of nodes: (n_resources,)."""
    of_services = np.isfinite(model.usage_day_type).any(axis=(0, 2, 3))
    return np.asarray(of_services | np.asarray((model.node_base > 0).any(axis=(0, 2, 3))))
