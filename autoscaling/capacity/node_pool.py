"""Which nodes a cluster of n nodes has, and one try on it: the recorded pods placed by a rule, then the true usage
played back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from autoscaling.prices.node_prices import shape_name
from base.arrays import Bools, Floats, Ints
from base.errors import InputError
from forecast.resources import CPU, MEMORY
from scorer.replay.curves import CurveForecast
from scorer.replay.preparation import Prepared, named_rule
from scorer.replay.recording import Recording
from scorer.replay.replay_figures import hot_node_slots, shares
from scorer.replay.replay_rules import ReplayRule
from scorer.replay.running_cluster import play

_DIGITS = 3
"""Significant digits up to which sizes are compared: nodes of one machine type differ by a few pages of memory."""

BY_REQUESTS = "native"
"""The rule of a cluster in which requests decide: pods that fit nowhere wait, so all requests have to fit."""


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes of one shape. rows: (n_group,) rows of the recording's nodes."""

    name: str
    rows: Ints


def node_groups(recording: Recording) -> tuple[NodeGroup, ...]:
    """The shapes of the recorded nodes, the most frequent first."""
    size = np.concatenate([recording.known_capacity, recording.allocatable], axis=1)
    _, of_node = np.unique(_rounded(size), axis=0, return_inverse=True)
    of_node = of_node.reshape(-1)
    shapes = [np.flatnonzero(of_node == shape) for shape in range(int(of_node.max()) + 1)]
    shapes.sort(key=lambda rows: (-len(rows), int(rows[0])))
    names = [_name(recording, int(rows[0])) for rows in shapes]
    return tuple(
        NodeGroup(name if names.count(name) == 1 else f"{name} #{names[:number].count(name) + 1}", rows)
        for number, (name, rows) in enumerate(zip(names, shapes, strict=True))
    )


def chosen_group(groups: Sequence[NodeGroup], name: str) -> NodeGroup:
    """The group of this name. Raises InputError."""
    for group in groups:
        if group.name == name:
            return group
    raise InputError(f"no node group {name!r} in the window: choose {', '.join(repr(one.name) for one in groups)}")


@dataclass(frozen=True, slots=True)
class RecordedPool:
    """What a cluster is made of.

    A smaller cluster is part of a larger one: the first n nodes of one order, in which the groups are mixed evenly.
    Beyond the recorded nodes the order begins again: a new node is like a recorded one, with its base load.
    """

    groups: tuple[NodeGroup, ...]

    @property
    def order(self) -> Ints:
        """Rows of the recording's nodes: (n_recorded,)."""
        rows = np.concatenate([group.rows for group in self.groups])
        place = np.concatenate([(np.arange(len(group.rows)) + 0.5) / len(group.rows) for group in self.groups])
        return np.asarray(rows[np.argsort(place, kind="stable")], dtype=np.int64)

    def rows(self, n_nodes: int) -> Ints:
        """The recorded node that each of n nodes is like: (n_nodes,)."""
        return np.resize(self.order, n_nodes)

    def mix(self, n_nodes: int) -> Mapping[str, int]:
        """How many nodes of each group n nodes are."""
        rows = self.rows(n_nodes)
        return {group.name: int(np.isin(rows, group.rows).sum()) for group in self.groups}


def on_nodes(recording: Recording, rows: Ints) -> Recording:
    """The same pods on other nodes: copies of the nodes in these rows. (n_nodes,)"""
    return replace(
        recording,
        base=recording.base[rows],
        live_base=recording.live_base[rows],
        first_node=np.full_like(recording.first_node, -1),
        nodes=recording.nodes[rows],
        capacity=recording.capacity[rows],
        assumed=recording.assumed[rows],
        allocatable=recording.allocatable[rows],
    )


def _name(recording: Recording, row: int) -> str:
    """Such as `16 cores, 64 GiB`: capacity, else what is allocatable."""
    known = recording.known_capacity[row]
    cores = known[CPU] if np.isfinite(known[CPU]) else recording.allocatable[row, 0]
    memory = known[MEMORY] if np.isfinite(known[MEMORY]) else recording.allocatable[row, 1]
    return shape_name(float(cores), float(memory))


def _rounded(size: Floats) -> Floats:
    """To _DIGITS significant digits; unknown sizes are all alike."""
    size = np.where(np.isfinite(size), size, 0.0)
    digits = np.floor(np.log10(np.where(size > 0, size, 1.0)))
    unit = 10.0 ** (digits - _DIGITS + 1)
    return np.asarray(np.round(size / unit) * unit)


# One try: the recorded pods on n nodes, placed by a rule; then the true usage is played back.
#
# A node half hour counts as hot as in `replay`: CPU, disk, network or log over the hot share of a known capacity.
# In addition it counts if its memory is over capacity: fewer nodes must not be bought with pods that are killed.


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of a rule on a number of nodes.

    hot_share : of node half hours
    unplaced  : pods whose requests fitted on no node; they went to one of the least overcommitted
    """

    n_nodes: int
    hot_share: float
    unplaced: int

    def holds(self, rule: str, target: float) -> bool:
        """Whether so many nodes are enough for the rule."""
        return self.hot_share <= target and (rule != BY_REQUESTS or self.unplaced == 0)


def prepared_on(prepared: Prepared, pool: RecordedPool, n_nodes: int) -> Prepared:
    """The same pods and beliefs on a cluster of n nodes."""
    rows = pool.rows(n_nodes)
    forecasts: Mapping[str, CurveForecast] = {
        name: forecast.on_nodes(rows) for name, forecast in prepared.forecasts.items()
    }
    return replace(prepared, recording=on_nodes(prepared.recording, rows), forecasts=forecasts)


def rule_on(prepared: Prepared, rule: str, seed: int) -> ReplayRule:
    """A rule as `replay` plays it."""
    return named_rule(rule, prepared.recording, prepared.forecasts, seed)


def try_nodes(prepared: Prepared, pool: RecordedPool, rule: str, n_nodes: int, seed: int) -> Trial:
    """Place all pods anew by the rule on n nodes, and play the window back."""
    there = prepared_on(prepared, pool, n_nodes)
    playback = play(there.recording, rule_on(there, rule, seed), seed=seed)
    hot = hot_or_full(playback.node_load(there.recording), there.recording)
    return Trial(n_nodes, float(hot.mean()), playback.unplaced)


def hot_or_full(load: Floats, recording: Recording) -> Bools:
    """Which node is too small when: (n_nodes, n_slots). load: (n_nodes, n_resources, n_slots) base units."""
    share = shares(load, recording.known_capacity)
    return np.asarray(hot_node_slots(share, recording.hot) | (np.nan_to_num(share[:, MEMORY]) > 1.0))
