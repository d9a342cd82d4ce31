"""Means of five minutes from counters that restart, go missing and begin."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

import pytest

from trainer.sampling.cells import OpenCells, Usage
from trainer.sampling.readings import NODE, Measured, NodeReading, Series

_START = 1_800_000_000 // 300 * 300
_MAIN: Series = ("shop", "cart-0", "main")
_KEY = ("shop", "cart-0", "n1")


def _reading(
    at: float, cpu: Mapping[Series, float], memory: Mapping[Series, float], *, age: float = 0.0
) -> NodeReading:
    """Measured `age` seconds before it was asked."""
    return NodeReading(
        at,
        cpu_seconds={series: Measured(value, at - age) for series, value in cpu.items()},
        memory={series: Measured(value, at - age) for series, value in memory.items()},
    )


def _read(
    cells: OpenCells, times: Iterable[float], cores: Callable[[float], float], *, since: float = -1e9, age: float = 0.0
) -> None:
    """Readings of n1 at seconds after _START; cores: core-seconds of the pod by then, the node has twice as many."""
    for at in times:
        pod = {_MAIN: cores(at)} if at >= since else {}
        held = {_MAIN: 1e6} if at >= since else {}
        cells.add("n1", _reading(_START + at, {NODE: 2 * cores(at), **pod}, {NODE: 5e6, **held}, age=age))


def _closed(cells: OpenCells, number: int = 0) -> tuple[Usage | None, Usage | None]:
    pods, nodes = cells.close(_START + 300 * number)
    return pods.get(_KEY), nodes.get("n1")


def test_a_steady_pod_has_its_cores_in_every_cell() -> None:
    cells = OpenCells()
    _read(cells, range(-20, 700, 30), lambda at: 100 + 0.25 * at)
    assert cells.over(_START + 600) == [_START - 300, _START, _START + 300]
    pod, node = _closed(cells)
    assert pod is not None and node is not None
    assert pod.cores == pytest.approx(0.25) and node.cores == pytest.approx(0.5)
    assert pod.memory == 1e6 and node.memory == 5e6


def test_growth_between_two_readings_is_shared_by_the_cells_it_touches() -> None:
    cells = OpenCells()
    _read(cells, [0, 60, 120, 180, 240, 280, 340, 400, 460, 520, 580, 640], lambda at: max(at - 280.0, 0) / 60)
    first, _ = _closed(cells)
    second, _ = _closed(cells, 1)
    assert first is not None and first.cores == pytest.approx(20 / 60 / 300)
    assert second is not None and second.cores == pytest.approx(1 / 60)


def test_a_counter_that_begins_anew_counts_from_nothing() -> None:
    cells = OpenCells()
    _read(cells, range(0, 301, 30), lambda at: 1000 + at if at < 150 else at - 150 + 3)
    pod, _ = _closed(cells)
    # 120 s of one core, then the 3 core-seconds since the restart, then 150 s more.
    assert pod is not None and pod.cores == pytest.approx((120 + 3 + 150) / 300)


def test_missed_readings_are_a_gap_and_never_a_zero() -> None:
    cells = OpenCells()
    _read(cells, [0, 30, 60, 600, 630, 660, 690], lambda at: 100 + at)
    assert _closed(cells) == (None, None)
    assert cells.over(_START + 600) == []
    cells = OpenCells()
    _read(cells, [0, 30, 200, 230, 300], lambda at: 100 + at)  # 170 s apart: bridged
    pod, _ = _closed(cells)
    assert pod is not None and pod.cores == pytest.approx(1.0)


def test_half_a_cell_is_enough() -> None:
    cells = OpenCells()
    _read(cells, [0, 60, 120, 150], lambda at: 0.5 * at)
    pod, _ = _closed(cells)
    assert pod is not None and pod.cores == pytest.approx(0.5)
    cells = OpenCells()
    _read(cells, [0, 60, 120, 140], lambda at: 0.5 * at)
    assert _closed(cells) == (None, None)


def test_a_pod_of_half_a_cell_counts_as_a_rate_over_the_whole_cell() -> None:
    cells = OpenCells()
    _read(cells, range(0, 301, 30), lambda at: float(at), since=150)
    pod, node = _closed(cells)
    assert pod is not None and pod.cores == pytest.approx(0.5) and pod.memory == 1e6
    assert node is not None and node.cores == pytest.approx(2.0)


def test_what_the_kubelet_measured_before_is_put_where_it_was() -> None:
    cells = OpenCells()
    _read(cells, range(0, 901, 30), lambda at: 5 + at, age=12.0)
    pod, _ = _closed(cells, 1)
    assert pod is not None and pod.cores == pytest.approx(1.0)


def test_a_pod_that_moves_counts_on_each_node_alone() -> None:
    cells = OpenCells()
    for at in range(0, 301, 30):
        for node, cores in (("n1", 1.0), ("n2", 3.0)):
            cells.add(node, _reading(_START + at, {NODE: cores * at, _MAIN: cores * at}, {}))
    pods, _ = cells.close(_START)
    assert pods["shop", "cart-0", "n1"].cores == pytest.approx(1.0)
    assert pods["shop", "cart-0", "n2"].cores == pytest.approx(3.0)


def test_means_of_another_counter_hold_since_the_reading_before() -> None:
    cells = OpenCells()
    for at in range(0, 301, 30):
        measured = {series: Measured(0.5, _START + at) for series in (NODE, _MAIN)}
        cells.add("n1", NodeReading(_START + at, cores=measured))
    pod, node = _closed(cells)
    assert pod is not None and pod.cores == pytest.approx(0.5) and math.isnan(pod.memory)
    assert node is not None and node.cores == pytest.approx(0.5)


def test_a_clock_that_is_set_back_or_ahead_leaves_a_gap() -> None:
    cells = OpenCells()
    _read(cells, [0, 30, 60, 7200, 7230, 90, 120, 150, 180, 210, 240, 270, 300], lambda at: float(at))
    cells.drop_after(_START + 600)
    pod, _ = _closed(cells)
    assert pod is not None and pod.cores == pytest.approx(1.0)
    assert cells.over(_START + 100_000) == [_START + 300]


def test_what_comes_too_late_does_not_open_a_closed_cell_again() -> None:
    cells = OpenCells()
    _read(cells, range(0, 331, 30), lambda at: float(at))
    cells.add("slow", _reading(_START + 200, {NODE: 1.0}, {}))
    cells.close(_START)
    cells.add("slow", _reading(_START + 400, {NODE: 2.0}, {}))
    assert cells.over(_START + 600) == [_START + 300]
    cells.drop_after(_START - 10_000)  # the clock was set back by hours
    _read(cells, range(0, 331, 30), lambda at: float(at))
    assert _START in cells.over(_START + 600)
