"""What the regressions look at: which days, which nodes are alike, and what the measured pods leave unexplained."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Floats32, Ints
from forecast.calendar import SLOTS_PER_DAY, DayType
from forecast.history import History, Placements
from forecast.peak_weights.pods_on_nodes import day_counts, felt_beyond, pod_slots, sum_on_nodes
from forecast.resources import CPU, MEMORY

WINDOW_DAYS = 28
"""What a service adds to a node changes with its releases; older days say little."""

_LEAST_DAYS = 7
_MOST_ENTRIES = 48_000_000
"""Days are left out beyond this many pods x half hours: about 0.5 GB of matrix."""

_MOST_CLASSES = 8
_LEAST_LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class Observations:
    """A window of recent days, ready for regression.

    history    : the days of the window
    kinds      : day types that occur, workdays first
    kind       : (n_days,) index into kinds
    measured   : (n_services, n_resources) whether a pod was measured in the window
    placed     : (n_services,) whether a pod sat on a node
    n_on       : (n_services,) nodes it ever sat on
    beside     : (n_nodes, n_resources, n_days, 48) node total - measured pods, base units; NaN = unknown
    level      : (n_nodes, n_resources) what a node typically uses, > 0 where anything is; NaN = never measured
    shape      : (n_resources, n_kinds, 48) how the cluster's load goes through the day, mean about 1
    usable     : (n_resources,) whether enough nodes and days were measured
    node_class : (n_nodes,) nodes of the same class are thought to have the same base, in proportion to node_size
    node_size  : (n_nodes,) about 1
    """

    history: History
    kinds: tuple[DayType, ...]
    kind: Ints
    measured: Bools
    placed: Bools
    n_on: Ints
    beside: Floats32
    level: Floats
    shape: Floats
    usable: Bools
    node_class: Ints
    node_size: Floats

    def day(self, index: int) -> Placements:
        """The runs of one day, counted from its midnight."""
        begin = index * SLOTS_PER_DAY
        return self.history.placements.between(begin, begin + SLOTS_PER_DAY)

    def last(self, n_days: int) -> Observations:
        """Return the last days only. What is known of services, nodes and shapes still comes from the whole window."""
        kept = min(n_days, self.history.n_days)
        return replace(
            self,
            history=self.history.before(self.history.n_days, keep=kept),
            kind=self.kind[-kept:],
            beside=self.beside[:, :, -kept:],
        )


def observe(history: History, *, least_nodes: int = 3, least_days: int = 2) -> Observations:
    """The recent days of a history as the regressions want them.

    least_nodes, least_days : a resource measured on fewer cannot be taken apart
    """
    history = history.before(history.n_days, keep=_window_days(history))
    day_type = history.describe_days().day_type
    kinds = tuple(kind for kind in DayType if (day_type == kind).any())
    kind = np.array([kinds.index(DayType(t)) for t in day_type], dtype=np.int64)
    measured = np.asarray(np.isfinite(history.usage_per_pod).any(axis=(2, 3)))
    n_services, n_nodes = len(history.services), len(history.nodes)
    runs = history.placements
    pairs = np.unique(runs.service * max(n_nodes, 1) + runs.node)
    n_on = np.bincount(pairs // max(n_nodes, 1), minlength=n_services)
    beside = _beside(history, measured)
    total = np.where(np.isfinite(beside), history.node_usage, np.nan)
    known_nodes = np.isfinite(total).mean(axis=(2, 3)) > 0
    known_days = np.isfinite(total).any(axis=(0, 3)).sum(axis=1)
    usable = (known_nodes.sum(axis=0) >= least_nodes) & (known_days >= least_days)
    node_class, node_size = _classes(history.capacity)
    level = _levels(total, node_size)
    usable &= np.nan_to_num(level).max(axis=0, initial=0.0) > 0
    return Observations(
        history=history,
        kinds=kinds,
        kind=kind,
        measured=measured,
        placed=n_on > 0,
        n_on=n_on,
        beside=beside,
        level=level,
        shape=_shape(total, level, kind, len(kinds)),
        usable=usable,
        node_class=node_class,
        node_size=node_size,
    )


def without_costs(seen: Observations, resource: int, correction: Floats, cost: Floats) -> Observations:
    """One resource alone, as if nodes felt what its pods use and nothing more: the others count as not usable.

    correction : (n_services,) node load / measured usage of a pod
    cost       : (48,) of every pod besides, measured or not
    """
    beside, history = seen.beside.copy(), seen.history
    for index in range(history.n_days):
        counts = day_counts(seen.day(index), len(history.services), len(history.nodes))
        beside[:, resource, index] -= felt_beyond(counts, history.usage_per_pod[:, resource, index], correction, cost)
    alone = np.arange(len(seen.usable)) == resource
    return replace(seen, beside=beside, usable=seen.usable & alone)


def _window_days(history: History) -> int:
    n_days = min(WINDOW_DAYS, history.n_days)
    while n_days > _LEAST_DAYS:
        first = (history.n_days - n_days) * SLOTS_PER_DAY
        if pod_slots(history.placements.between(first, history.n_days * SLOTS_PER_DAY)) <= _MOST_ENTRIES:
            break
        n_days -= 7 if n_days >= 2 * _LEAST_DAYS else 1
    return n_days


def _beside(history: History, measured: Bools) -> Floats32:
    """Node total minus the pods that are measured, NaN where either is unknown. May be negative.

    Where a node never shows its pods (its runtime names no containers), they are taken to use what others of their
    services use: such nodes alone may run what is measured nowhere.
    """
    pods = history.node_pod_usage
    out = history.node_usage - np.nan_to_num(pods)
    # A node none of whose pods was measured: nothing to take off if its services never are, a gap otherwise.
    open_cells = np.isnan(pods) & np.isfinite(history.node_usage)
    n_services, n_nodes = len(history.services), len(history.nodes)
    has_sum: Bools = np.asarray((np.nan_to_num(pods) > 0).any(axis=(2, 3)))  # (n_nodes, n_resources)
    for r in np.flatnonzero(measured.any(axis=0) & open_cells.any(axis=(0, 2, 3))):
        of_slots = np.tile(measured[:, r].astype(np.float32), SLOTS_PER_DAY)
        for d in np.flatnonzero(open_cells[:, r].any(axis=(0, 2))):
            begin = int(d) * SLOTS_PER_DAY
            counts = day_counts(history.placements.between(begin, begin + SLOTS_PER_DAY), n_services, n_nodes)
            missing = (counts @ of_slots).reshape(SLOTS_PER_DAY, n_nodes).T > 0
            out[:, r, d][missing & open_cells[:, r, d] & has_sum[:, r, None]] = np.nan
            dark = open_cells[:, r, d] & ~has_sum[:, r, None]
            if dark.any():
                like_others = sum_on_nodes(counts, np.nan_to_num(history.usage_per_pod[:, r, d]))
                out[:, r, d] -= np.where(dark, like_others, 0.0)
    return np.asarray(out, dtype=np.float32)


def _classes(capacity: Floats) -> tuple[Ints, Floats]:
    """Nodes of equal size in CPU and memory are a class; with many sizes, one class and base in proportion."""
    size = np.where(np.isfinite(capacity[:, CPU]), capacity[:, CPU], np.nan)
    if not np.isfinite(size).all():
        size = capacity[:, MEMORY]
    if not np.isfinite(size).all():
        return np.zeros(len(capacity), dtype=np.int64), np.ones(len(capacity))
    rounded = np.round(np.log(np.maximum(np.nan_to_num(capacity[:, [CPU, MEMORY]]), 1e-9)) * 20)
    _, node_class, members = np.unique(rounded, axis=0, return_inverse=True, return_counts=True)
    if len(members) > _MOST_CLASSES or members.min() < 3:
        return np.zeros(len(capacity), dtype=np.int64), size / np.median(size)
    return node_class.ravel().astype(np.int64), np.ones(len(capacity))


def _levels(total: AnyFloats, node_size: Floats) -> Floats:
    """Mean usage of each node, at least 5 % of what one of its size typically uses: (n_nodes, n_resources)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # nodes or resources without data
        level = np.nanmean(total, axis=(2, 3), dtype=np.float64)
        typical = np.nanmedian(level / node_size[:, None], axis=0)
    floor = _LEAST_LEVEL * typical * node_size[:, None]
    return np.where(np.isfinite(level), np.maximum(level, floor), np.nan)


def _shape(total: AnyFloats, level: Floats, kind: Ints, n_kinds: int) -> Floats:
    """Mean over nodes of usage / level for each kind of day and slot, 1 where unknown: (n_resources, n_kinds, 48)."""
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        relative = total / level[:, :, None, None].astype(np.float32)
        shape = np.stack([np.nanmean(relative[:, :, kind == k], axis=(0, 2)) for k in range(n_kinds)], axis=1)
    return np.where(np.isfinite(shape) & (shape > 0), shape, 1.0).astype(np.float64)
