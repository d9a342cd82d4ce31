"""Nodes whose usage stays above what the forecast holds possible, reading by reading.

    calm --`readings` in a row above--> overloaded --`calm_readings` in a row not above--> calm

A reading is above if any resource exceeds both its bound and the hot share of its capacity. A reading that is missing
is neither: it ends a row of readings above, and an overloaded node that is not measured is not acted on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from base.arrays import Bools, Floats, Ints
from base.errors import InputError
from forecast.service_key import ServiceKey
from rebalancer.rebalance_settings import UnforeseenOptions


@dataclass(frozen=True, slots=True)
class UnforeseenState:
    """What the readings so far say.

    nodes    : names, n_nodes
    above    : (n_nodes,) readings above in a row
    calm     : (n_nodes,) readings not above in a row
    active   : (n_nodes,) overloaded
    measured : (n_nodes,) the last reading was there
    """

    nodes: tuple[str, ...]
    above: Ints
    calm: Ints
    active: Bools
    measured: Bools

    @classmethod
    def empty(cls, nodes: Sequence[str] = ()) -> UnforeseenState:
        """Return the state before the first reading."""
        n = len(nodes)
        nothing = np.zeros(n, dtype=bool)
        return cls(tuple(nodes), np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64), nothing, nothing)

    @property
    def overloaded(self) -> tuple[str, ...]:
        """Nodes to relieve now."""
        return tuple(self.nodes[row] for row in np.flatnonzero(self.active & self.measured))


def step(
    state: UnforeseenState,
    nodes: Sequence[str],
    measured: Floats,
    bound: Floats,
    capacity: Floats,
    options: UnforeseenOptions,
    hot: float,
) -> UnforeseenState:
    """Return the state after one more reading.

    measured : (n_nodes, n_resources) usage now; NaN = not measured
    bound    : (n_nodes, n_resources) upper bound of the forecast for now; NaN = no forecast, so nothing is unforeseen
    capacity : (n_nodes, n_resources); NaN = not a limit
    hot      : share of capacity above which a node is hot

    Nodes may come and go between readings.
    """
    shape = (len(nodes), measured.shape[1] if measured.ndim == 2 else 0)
    if not measured.shape == bound.shape == capacity.shape == shape:
        raise InputError(
            f"usage {measured.shape}, bounds {bound.shape} and capacities {capacity.shape} of {len(nodes)} nodes: "
            "each must be (nodes, resources)"
        )
    before = _aligned(state, nodes)
    with np.errstate(invalid="ignore"):  # comparisons with NaN are false
        is_above = ((measured > bound) & (measured > hot * capacity)).any(axis=1)  # (n_nodes,)
    is_measured: Bools = np.asarray(np.isfinite(measured).any(axis=1))
    is_calm = is_measured & ~is_above
    above = np.where(is_above, before.above + 1, 0)
    calm = np.where(is_calm, before.calm + 1, np.where(is_above, 0, before.calm))
    active: Bools = np.asarray((before.active & (calm < options.calm_readings)) | (above >= options.readings))
    return UnforeseenState(tuple(nodes), above, calm, active, is_measured)


def _aligned(state: UnforeseenState, nodes: Sequence[str]) -> UnforeseenState:
    """The state with these nodes in this order; new ones have had no reading."""
    if state.nodes == tuple(nodes):
        return state
    row_of = {name: row for row, name in enumerate(state.nodes)}
    rows = np.array([row_of.get(name, -1) for name in nodes], dtype=np.int64)
    known, fresh = rows >= 0, UnforeseenState.empty(nodes)
    fresh.above[known], fresh.calm[known] = state.above[rows[known]], state.calm[rows[known]]
    active = np.zeros(len(nodes), dtype=bool)
    active[known] = state.active[rows[known]]
    return replace(fresh, active=active)


def moves_left(moved_today: Sequence[ServiceKey], service: ServiceKey, options: UnforeseenOptions) -> int:
    """Return how many pods of a service may still move today.

    moved_today : the service of each pod that was moved because of the unforeseen, on this local day
    """
    if not options.enabled:
        return 0
    left = min(options.per_day - len(moved_today), options.per_service - sum(one == service for one in moved_today))
    return max(0, left)
