"""Readings -> means of five minutes, as a rate of Prometheus over five minutes would say. Pure.

    reading   t0 ────────────── t1 ─────────────── t2            counters of each container, at the kubelet's times
    cells     │ 12:00           │ 12:05 │          │ 12:10       what a counter grew is spread evenly from t0 to t1

    grew less than nothing   the container began anew: it has used what its counter says
    readings far apart       what lies between is not measured: a gap, never a zero
    half a cell unread       the cell is not measured on that node
    a pod of half a cell     the mean over the whole cell, as for a rate: it used nothing while it was not there

Memory is the mean of the readings in the cell.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from trainer.sampling.readings import NODE, NodeReading, Series, of_pods

CELL_SECONDS: Final = 300
"""The step of the history: `prometheus.step` as it is by default."""

MOST_GAP_SECONDS: Final = float(CELL_SECONDS)
"""Between two readings that belong together. A rate over five minutes bridges as much."""

_LEAST_READ: Final = 0.5
"""Share of a cell that must lie between readings of its node."""

PodOnNode = tuple[str, str, str]
"""(namespace, pod, node): a pod of a StatefulSet that moves keeps its name."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Of a pod or a node in one cell. cores, memory: bytes; NaN = not measured"""

    cores: float
    memory: float


@dataclass(slots=True)
class _Sums:
    """core_seconds: grown; None = no counter was read twice. memory, n: sum and number of the readings"""

    core_seconds: float | None = None
    memory: float = 0.0
    n: int = 0

    def grow(self, core_seconds: float) -> None:
        self.core_seconds = (self.core_seconds or 0.0) + core_seconds


@dataclass(slots=True)
class _Cell:
    """read_seconds: by node, how much of the cell lies between its readings"""

    pods: dict[PodOnNode, _Sums] = field(default_factory=dict)
    nodes: dict[str, _Sums] = field(default_factory=dict)
    read_seconds: dict[str, float] = field(default_factory=dict)


class OpenCells:
    """The cells that are not over, from readings in the order in which they were taken of each node."""

    def __init__(self) -> None:
        self._cells: dict[int, _Cell] = {}
        self._before: dict[str, NodeReading] = {}
        self._closed_until = 0

    def add(self, node: str, reading: NodeReading) -> None:
        """Take in one answer."""
        before = self._before.get(node)
        self._before[node] = reading
        self._add_memory(node, reading)
        if before is None or not 0 < reading.at - before.at <= MOST_GAP_SECONDS:
            return
        for start, seconds in _shares(before.at, reading.at):
            cell = self._cell(start)
            cell.read_seconds[node] = cell.read_seconds.get(node, 0.0) + seconds
        grown: dict[int, dict[Series, float]] = {}
        for series, core_seconds, began, ended in _growth(before, reading):
            for start, seconds in _shares(began, ended):
                grown.setdefault(start, {})[series] = core_seconds * seconds / (ended - began)
        for start, of_series in grown.items():
            cell = self._cell(start)
            for (namespace, pod), core_seconds in of_pods(of_series).items():
                cell.pods.setdefault((namespace, pod, node), _Sums()).grow(core_seconds)
            if NODE in of_series:
                cell.nodes.setdefault(node, _Sums()).grow(of_series[NODE])

    def keep_only(self, nodes: Collection[str]) -> None:
        """Forget what was read of all other nodes, which are gone."""
        self._before = {node: reading for node, reading in self._before.items() if node in nodes}

    def over(self, until: float) -> list[int]:
        """Unix seconds at which the cells begin that ended by then, oldest first."""
        return sorted(start for start in self._cells if start + CELL_SECONDS <= until)

    def close(self, start: int) -> tuple[Mapping[PodOnNode, Usage], Mapping[str, Usage]]:
        """Take a cell out: what pods and nodes used in it; empty where no node was read for half of it."""
        cell = self._cells.pop(start)
        self._closed_until = max(self._closed_until, start + CELL_SECONDS)
        read = {node: s for node, s in cell.read_seconds.items() if s >= _LEAST_READ * CELL_SECONDS}
        pods = {key: _mean(sums, read[key[2]]) for key, sums in cell.pods.items() if key[2] in read}
        return pods, {node: _mean(sums, read[node]) for node, sums in cell.nodes.items() if node in read}

    def drop_after(self, until: float) -> None:
        """Forget cells that begin after a time: of a clock that was ahead and has been set back."""
        self._cells = {start: cell for start, cell in self._cells.items() if start <= until}
        if self._closed_until > until + CELL_SECONDS:
            self._closed_until = 0

    def _add_memory(self, node: str, reading: NodeReading) -> None:
        here: dict[int, dict[Series, float]] = {}
        for series, measured in reading.memory.items():
            here.setdefault(_start(measured.at), {})[series] = measured.value
        # The containers of a pod are measured seconds apart: all belong to the cell in which the last of them was.
        newest = max(here, default=None)
        if newest is None:
            return
        cell = self._cell(newest)
        of_all = {series: value for _, of_cell in sorted(here.items()) for series, value in of_cell.items()}
        for (namespace, pod), value in of_pods(of_all).items():
            sums = cell.pods.setdefault((namespace, pod, node), _Sums())
            sums.memory, sums.n = sums.memory + value, sums.n + 1
        if NODE in of_all:
            sums = cell.nodes.setdefault(node, _Sums())
            sums.memory, sums.n = sums.memory + of_all[NODE], sums.n + 1

    def _cell(self, start: int) -> _Cell:
        """A cell to add to; what comes too late for one that is closed is lost."""
        return _Cell() if start < self._closed_until else self._cells.setdefault(start, _Cell())


def _growth(before: NodeReading, now: NodeReading) -> Iterator[tuple[Series, float, float, float]]:
    """(series, core-seconds used, from, to) of what both readings know."""
    for series, measured in now.cpu_seconds.items():
        was = before.cpu_seconds.get(series)
        if was is not None and 0 < measured.at - was.at <= MOST_GAP_SECONDS:
            grown = measured.value - was.value
            yield series, grown if grown >= 0 else measured.value, was.at, measured.at
    for series, measured in now.cores.items():
        was = before.cores.get(series)
        if was is not None and 0 < measured.at - was.at <= MOST_GAP_SECONDS:
            yield series, measured.value * (measured.at - was.at), was.at, measured.at


def _shares(began: float, ended: float) -> Iterator[tuple[int, float]]:
    """(beginning of a cell, seconds of the interval in it)."""
    start = _start(began)
    while start < ended:
        yield start, min(ended, start + CELL_SECONDS) - max(began, start)
        start += CELL_SECONDS


def _start(at: float) -> int:
    return int(at // CELL_SECONDS) * CELL_SECONDS


def _mean(sums: _Sums, seconds: float) -> Usage:
    nan = float("nan")
    cores = nan if sums.core_seconds is None else sums.core_seconds / seconds
    return Usage(cores, sums.memory / sums.n if sums.n else nan)
