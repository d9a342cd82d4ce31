"""What many nodes have left, as arrays with one row per node, and which of them have room for a pod."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from base.arrays import Bools, Floats, Ints
from profiles.gpu.fragmentation.pod_shapes import PodShape


@dataclass(slots=True)
class NodeStates:
    """n_nodes rows.

    cpu_free, cpu_total       : (n_nodes,) thousandths of a core
    memory_free, memory_total : (n_nodes,) MiB
    free_milli                : (n_nodes, most_devices) 0 to 1000 of each card; -1 = no such card
    model                     : (n_nodes,) index into the list of models; -1 = unknown, or no card
    n_devices                 : (n_nodes,)
    """

    cpu_free: Floats
    memory_free: Floats
    free_milli: Ints
    model: Ints
    cpu_total: Floats
    memory_total: Floats
    n_devices: Ints

    def take(self, rows: Ints | slice) -> NodeStates:
        """Some of the rows, in that order; views where `rows` is a slice."""
        return NodeStates(
            self.cpu_free[rows],
            self.memory_free[rows],
            self.free_milli[rows],
            self.model[rows],
            self.cpu_total[rows],
            self.memory_total[rows],
            self.n_devices[rows],
        )

    @property
    def n_nodes(self) -> int:
        return len(self.cpu_free)

    def distinct(self) -> tuple[Ints, Ints]:
        """One node of each state, (n_states,), and of each node the index of its state among these, (n_nodes,)."""
        amounts = (self.cpu_free, self.memory_free, self.cpu_total, self.memory_total)
        counts = (self.model, self.n_devices, self.free_milli)
        states = np.column_stack([*(one.astype(np.float64).view(np.int64) for one in amounts), *counts])
        factors = np.random.default_rng(0).integers(1, 2**62, states.shape[1])
        _, first, state = np.unique(states @ factors, return_index=True, return_inverse=True)  # modulo 2^64
        if not np.array_equal(states, states[first][state]):  # two states of one sum
            every = np.arange(self.n_nodes)
            return every, every
        return first, state


def model_accepted(accepted: Collection[str], models: Sequence[str]) -> Bools:
    """(n_models + 1,) whether a pod that takes the models `accepted` takes each; the last is the unknown one, index -1.

    accepted : empty = any
    """
    return np.array([not accepted or model in accepted for model in models] + [not accepted], dtype=bool)


def fits(shape: PodShape, nodes: NodeStates, models: Sequence[str]) -> Bools:
    """(n_nodes,) whether the pod can run there: cores, memory, and cards of a model that it takes.

    models : names, by index in `nodes.model`
    """
    room: Bools = (nodes.cpu_free >= shape.cpu_milli) & (nodes.memory_free >= shape.memory_mib)
    if shape.count:
        room &= (nodes.free_milli >= shape.milli).sum(axis=1) >= shape.count
        room &= model_accepted(shape.models, models)[nodes.model]
    return room
