"""Nodes that the load of each hour of the day would need, if pods could be packed anew every hour.

    nodes[hour] = ceil(k * max over days and half hours of sum[slot])
    sum[slot]   = max over resources of load / (ceiling of a node - what a node uses besides its pods)
    k           = nodes that the rule needed for the whole window / max over the window of the true sum

`sum` is what the cluster's load would fill without any waste, and k is the waste that the rule was measured to have. So
the busiest hour needs as many nodes as the window. This is an estimate: nothing is placed for single hours, and
requests are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from base.arrays import Floats, Ints
from forecast.calendar import SLOTS_PER_DAY
from forecast.resources import HOT_RESOURCES, MEMORY
from scorer.replay.curves import CurveForecast
from scorer.replay.recording import Recording

_HOURS = 24


@dataclass(frozen=True, slots=True)
class HourlyNodes:
    """Nodes by local hour of the day.

    needed   : (24,) most of any day, by the usage that came, with the waste of the oracle
    expected : (24,) the same by the forecast, with the waste of the forecast
    under    : share of the window's half hours in which the forecast expects fewer nodes than the usage that came
               needed, both with the waste of the forecast
    """

    needed: Ints
    expected: Ints
    under: float


def hourly_nodes(
    recording: Recording, forecast: CurveForecast, first_slot: int, nodes_by_forecast: int, nodes_by_truth: int
) -> HourlyNodes:
    """Estimate the nodes of each hour.

    recording, forecast : on the nodes that a new node is like on average
    first_slot          : local half hour of the day at which the recording begins
    """
    truth = filled_nodes(recording, recording.load.sum(axis=0, dtype=np.float64), recording.base)
    pods = np.einsum("srt,st->rt", forecast.mean, forecast.replicas)
    belief = filled_nodes(recording, pods, forecast.base)
    highest = max(float(truth.max()), np.finfo(np.float64).tiny)
    expected = np.ceil(belief * nodes_by_forecast / highest - 1e-9)
    came = np.ceil(truth * nodes_by_forecast / highest - 1e-9)
    needed = np.ceil(truth * nodes_by_truth / highest - 1e-9)
    return HourlyNodes(
        needed=_by_hour(needed, first_slot),
        expected=_by_hour(expected, first_slot),
        under=float((expected < came).mean()),
    )


def filled_nodes(recording: Recording, pods: Floats, base: Floats) -> Floats:
    """Average nodes that a load fills up to the ceiling: (n_slots,).

    pods : (n_resources, n_slots) of all pods together; base : (n_nodes, n_resources, n_slots)
    """
    ceiling = np.full(len(pods), np.nan)
    ceiling[list(HOT_RESOURCES)], ceiling[MEMORY] = recording.hot, 1.0
    capacity = np.nan_to_num(recording.known_capacity).sum(axis=0) / recording.n_nodes  # (n_resources,)
    room = (ceiling * capacity)[:, None] - base.mean(axis=0)
    limits = np.isfinite(room) & (capacity > 0)[:, None]
    # A node whose own load is over the ceiling has no room: a thousandth of it stands for none.
    room = np.maximum(room, np.where(limits, 1e-3 * (np.nan_to_num(ceiling) * capacity)[:, None], 1.0))
    filled = np.where(limits, pods / np.where(limits, room, 1.0), 0.0)
    return np.asarray(filled.max(axis=0))


def _by_hour(nodes: Floats, first_slot: int) -> Ints:
    """The most of any half hour of each hour of the day: (24,)."""
    of_day = np.roll(nodes.reshape(-1, SLOTS_PER_DAY), first_slot, axis=1)  # from midnight on
    return np.asarray(of_day.reshape(len(of_day), _HOURS, -1).max(axis=(0, 2)), dtype=np.int64)
