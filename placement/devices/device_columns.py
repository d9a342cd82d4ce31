"""What is known of devices in columns, one row per node as in the scorer's tables; arrays that grow."""

from __future__ import annotations

from typing import Final

import numpy as np

from base.arrays import Ints
from cluster.predicted.array_rows import grown
from cluster.tables.state import ClusterState
from placement.devices.declared_devices import NodeCards
from placement.devices.device_demand import WHOLE, GpuDemand
from placement.devices.node_devices import NodeDevices

_FEWEST_COLUMNS: Final = 8


class DeviceColumns:
    """Base of the device table, which writes here. What is read is valid until the next change, and not to be changed.

    models  : names of models as labels say them; an index stays the same for good
    version : a number that is larger after each change
    cards_version : the same of changes of what nodes have, rather than of what is left of it
    """

    def __init__(self, state: ClusterState) -> None:
        """state: whose rows are used."""
        self.models: Final[list[str]] = []
        self.version = self.cards_version = 0
        self._state = state
        self._model_index: dict[str, int] = {}
        self._all_changed_at = 0
        self._n_devices = np.zeros(0, dtype=np.int64)
        self._memory = np.zeros(0, dtype=np.int64)
        self._model = np.zeros(0, dtype=np.int64)
        self._free = np.zeros((0, _FEWEST_COLUMNS), dtype=np.int64)
        self._free_memory = np.zeros((0, _FEWEST_COLUMNS), dtype=np.int64)
        self._most_free_memory = np.zeros(0, dtype=np.int64)
        self._free_whole = np.zeros(0, dtype=np.int64)
        self._most_free = np.zeros(0, dtype=np.int64)
        self._by_index = np.zeros(0, dtype=np.int64)
        self._by_name = np.zeros(0, dtype=np.int64)
        self._changed_at = np.zeros(0, dtype=np.int64)
        self._has_offers = False  # some node ever had
        self._offered = np.zeros((0, 3), dtype=np.int64)  # by slices: cards, free ones, 1 + index of the model

    # What is read

    @property
    def n_devices(self) -> Ints:
        """(n_rows,)"""
        return self._n_devices[: self._ensured()]

    @property
    def free_milli(self) -> Ints:
        """(n_rows, most_devices) thousandths left of each device, 0..1000; -1 = there is no such device."""
        return self._free[: self._ensured()]

    @property
    def model(self) -> Ints:
        """(n_rows,) index into `models`; -1 = unknown, or there are no devices."""
        return self._model[: self._ensured()]

    @property
    def device_memory(self) -> Ints:
        """(n_rows,) units of the sharing plugin's memory that each device has; 0 = that plugin is not there."""
        return self._memory[: self._ensured()]

    @property
    def free_whole(self) -> Ints:
        """(n_rows,) devices that no pod holds a part of."""
        return self._free_whole[: self._ensured()]

    @property
    def most_free(self) -> Ints:
        """(n_rows,) thousandths left of the device of which the most is left; 0 = there are no devices."""
        return self._most_free[: self._ensured()]

    @property
    def free_memory(self) -> Ints:
        """(n_rows, most_devices) units of the sharing plugin's memory left of each device, rounded down; 0 where there
        is no such device, or no such plugin."""
        return self._free_memory[: self._ensured()]

    @property
    def most_free_memory(self) -> Ints:
        """(n_rows,) the same of the device of which the most is left."""
        return self._most_free_memory[: self._ensured()]

    @property
    def pods_by_index(self) -> Ints:
        """(n_rows,) pods that are handed their devices by index."""
        return self._by_index[: self._ensured()]

    @property
    def pods_by_name(self) -> Ints:
        """(n_rows,) pods that request whole devices by name."""
        return self._by_name[: self._ensured()]

    @property
    def n_cards(self) -> Ints:
        """(n_rows,) devices, and whole cards of nodes that offer them by slices alone."""
        n_rows = self._ensured()
        return self._n_devices[:n_rows] + self._offered[:n_rows, 0]

    def cards_on(self, rows: Ints) -> tuple[Ints, Ints, Ints]:
        """As `free_milli`, `model` and `n_devices` of the rows, with the cards that slices offer. Those stand in no
        order: free ones come first."""
        n_rows = self._ensured()
        free, model, n = self._free[:n_rows][rows], self._model[:n_rows][rows], self._n_devices[:n_rows][rows]
        if not self._has_offers or not len(free):
            return free, model, n
        offered = self._offered[:n_rows][rows]
        n_more = max(0, int(offered[:, 0].max()) - free.shape[1])
        free = np.pad(free, ((0, 0), (0, n_more)), constant_values=-1)
        place = np.arange(free.shape[1])
        cards = np.where(place < offered[:, 1:2], WHOLE, np.where(place < offered[:, :1], 0, -1))
        return np.maximum(free, cards), np.maximum(model, offered[:, 2] - 1), n + offered[:, 0]

    def milli_on(self, demand: GpuDemand) -> Ints:
        """(n_rows,) thousandths of each device that it takes on a node, rounded down; more than 1000 = no device there
        is large enough."""
        n_rows = self._ensured()
        if not demand.memory_units:
            return np.full(n_rows, demand.milli, dtype=np.int64)
        memory = self._memory[:n_rows]
        milli = np.maximum(WHOLE * demand.memory_units // np.maximum(memory, 1), demand.milli)
        return np.where(memory >= demand.memory_units, milli, WHOLE + 1)

    def typical_demand(self, demand: GpuDemand) -> GpuDemand:
        """The same without memory: in the thousandths of the median device of those that have memory."""
        if not demand.memory_units:
            return demand
        n_rows = self._ensured()
        memory = np.repeat(self._memory[:n_rows], self._n_devices[:n_rows])
        memory = np.sort(memory[memory > 0])
        median = int(memory[len(memory) // 2]) if len(memory) else 0
        return GpuDemand(demand.count, min(WHOLE, demand.on(median)))

    def changed_since(self, version: int) -> Ints | None:
        """Rows of nodes with devices on which anything has changed since then, ascending; None = maybe all."""
        if version < self._all_changed_at:
            return None
        return np.flatnonzero(self._changed_at[: self._ensured()] > version)

    # What is written

    def _clear(self) -> None:
        """Note that there are no devices, until they are written."""
        self._all_changed_at = self.version
        self.cards_version += 1
        self._free[:] = -1
        self._model[:] = -1
        self._free_memory[:] = 0
        for column in (self._n_devices, self._memory, self._free_whole, self._most_free, self._most_free_memory):
            column[:] = 0
        self._by_index[:] = self._by_name[:] = 0
        self._offered[:] = 0

    def _write_cards(self, row: int, cards: NodeCards) -> None:
        """What a node has."""
        if (n := cards.n) > self._free.shape[1]:
            n_more = max(n, 2 * self._free.shape[1]) - self._free.shape[1]
            self._free = np.pad(self._free, ((0, 0), (0, n_more)), constant_values=-1)
            self._free_memory = np.pad(self._free_memory, ((0, 0), (0, n_more)))
        self.cards_version += 1
        self._n_devices[row], self._memory[row] = n, cards.memory
        self._model[row] = self._index_of(cards.model)
        self._free[row, n:] = -1
        self._free_memory[row] = self._most_free_memory[row] = 0

    def _write_held(self, row: int, node: NodeDevices) -> None:
        """What is left of it."""
        free = node.free
        self._free[row, : len(free)] = free
        self._free_whole[row] = free.count(WHOLE)
        self._most_free[row] = max(free, default=0)
        if memory := node.free_memory:
            self._free_memory[row, : len(memory)] = memory
            self._most_free_memory[row] = max(memory)
        self._by_index[row] = node.by_index
        self._by_name[row] = len(node.holders) - node.by_index

    def _has_offer(self, row: int) -> bool:
        return self._has_offers and row < len(self._offered) and bool(self._offered[row, 0])

    def _write_offered(self, row: int, n: int, free: int, model: str) -> None:
        """Write what slices offer there, if there are no devices."""
        offered = (n, free, self._index_of(model) + 1 if n else 0)
        if tuple(self._offered[row]) != offered:
            self.cards_version += 1
            self._offered[row], self._has_offers = offered, True
            self._touch(row)

    def _touch(self, row: int) -> None:
        self._changed_at[row] = self.version

    def _index_of(self, model: str) -> int:
        if not model:
            return -1
        index = self._model_index.get(model)
        if index is None:
            index = self._model_index[model] = len(self.models)
            self.models.append(model)
        return index

    def _ensured(self, n_rows: int = 0) -> int:
        """Make room for `n_rows`, and return the rows of the tables."""
        of_state = self._state.n_rows
        n = n_rows if n_rows > of_state else of_state
        if n > len(self._n_devices):
            self._n_devices, self._memory = grown(self._n_devices, n), grown(self._memory, n)
            self._model, self._free = grown(self._model, n, fill=-1), grown(self._free, n, fill=-1)
            self._free_memory = grown(self._free_memory, n)
            self._most_free_memory = grown(self._most_free_memory, n)
            self._free_whole, self._most_free = grown(self._free_whole, n), grown(self._most_free, n)
            self._by_index, self._by_name = grown(self._by_index, n), grown(self._by_name, n)
            self._changed_at = grown(self._changed_at, n)
            self._offered = grown(self._offered, n)
        return of_state
