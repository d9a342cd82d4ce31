"""Node groups of a recording, and which nodes a cluster of n nodes has.

A group is one shape: nodes with the same capacity and allocatable resources. A history names no node pools, so shapes
stand for them. A cluster of n nodes holds the groups in their recorded proportion, or one group alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from base.arrays import Floats, Ints
from base.errors import InputError
from forecast.resources import CPU, MEMORY
from scorer.replay.recording import Recording

_DIGITS = 3
"""Significant digits up to which sizes are compared: nodes of one machine type differ by a few pages of memory."""


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
class NodePool:
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
    parts = [f"{cores:.3g} cores"] if np.isfinite(cores) else []
    if np.isfinite(memory):
        parts.append(f"{memory / 2**30:.3g} GiB")
    return ", ".join(parts)


def _rounded(size: Floats) -> Floats:
    """To _DIGITS significant digits; unknown sizes are all alike."""
    size = np.where(np.isfinite(size), size, 0.0)
    digits = np.floor(np.log10(np.where(size > 0, size, 1.0)))
    unit = 10.0 ** (digits - _DIGITS + 1)
    return np.asarray(np.round(size / unit) * unit)
