"""Lines of utilisation against violations, their picture, and the tables of the benchmark."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.decision_days import FORECASTERS, YESTERDAY, Days, forecast_days, origins
from benchmarks.decision_forecasters import QUANTILES
from benchmarks.decision_lines import BY_NODE, NO_MARGIN, TRUE_FUTURE, node_line, quantile_line, sweep
from benchmarks.decision_picture import Panel, draw
from benchmarks.decision_tables import Merged, difference, merge, reached_by
from benchmarks.decisions import main
from forecast.errors import InputError
from forecast.resources import RESOURCES
from tests.synthetic import synthetic_history

N_RESOURCES = len(RESOURCES)


def test_midnights_are_five_days_apart_and_leave_two_weeks_before_them() -> None:
    assert origins(45) == [29, 34, 39, 44]
    assert origins(27) == [16, 21, 26]
    assert origins(14) == []


def test_a_history_that_is_too_short_or_idle_is_refused() -> None:
    history = synthetic_history(n_days=15)
    with pytest.raises(InputError, match="14 days of history, 15 needed"):
        forecast_days("short", history.before(14))
    idle = replace(history, usage_per_pod=np.zeros_like(history.usage_per_pod))
    with pytest.raises(InputError, match="no series is used enough"):
        forecast_days("idle", idle)


def days_of(n_pods: int = 16) -> Days:
    """Two midnights at which every forecaster knows the truth, and our model believes in errors of 10 %."""
    rng = np.random.default_rng(0)
    shape = (2, n_pods, N_RESOURCES, 48)
    actual = rng.uniform(0.2, 1.0, shape)
    used = np.zeros((n_pods, N_RESOURCES), dtype=np.bool_)
    used[:, 0] = True
    curves = np.repeat(actual[..., None], len(QUANTILES), axis=-1)
    return Days(
        used=used,
        size=np.ones((n_pods, N_RESOURCES)),
        actual=actual,
        curves=np.stack([*[curves] * len(FORECASTERS), 1.5 * curves]),
        mean=actual,
        variance=(0.1 * actual) ** 2,
        cluster_std=np.zeros((2, N_RESOURCES)),
        node_z=np.ones((2, N_RESOURCES, 2)),
        peaks=np.repeat(actual.max(axis=-1)[..., None], 2, axis=-1),
        difference=np.ones(shape[:3]),
    )


def test_who_knows_the_future_violates_nothing_and_a_bound_costs_utilisation() -> None:
    cell = sweep("trace", days_of(), "cpu", seed=0)
    assert cell is not None
    assert cell.lines[TRUE_FUTURE][NO_MARGIN].violation_rate == 0
    assert cell.lines[quantile_line(0.5)] == cell.lines[TRUE_FUTURE]
    assert cell.lines[node_line(4.0)][NO_MARGIN].utilisation < cell.best
    assert cell.lines[TRUE_FUTURE][-1].violation_rate > 0
    merged = merge([cell])
    assert merged.at(TRUE_FUTURE, 0.5) == 0
    assert difference([merged, merged], FORECASTERS[0], FORECASTERS[1], 0.9) == (0, 0, 0)


def test_figures_are_of_the_cells_that_the_lines_reach() -> None:
    def cell(last: float) -> Merged:
        low, high = [0.5, 0.0, 0.0], [last, 0.1, 0.3]
        return Merged("trace", "cpu", 8, 0.5, {"a": np.array([[low, high]]), "b": np.array([[low, [1.0, 0.0, 0.0]]])})

    short, long = cell(0.6), cell(0.9)
    assert reached_by([short, long], 0.8, "a", "b") == [long]
    assert reached_by([short, long], 0.8, "b") == [short, long]
    assert reached_by([short, long], 0.95, "a") == []
    assert difference([long], "a", "b", 0.9)[0] == pytest.approx(0.1)


def test_a_trace_without_the_resource_has_no_cell() -> None:
    assert sweep("trace", days_of(), "memory", seed=0) is None


def test_days_come_back_from_disk_as_they_were(tmp_path: Path) -> None:
    days = days_of()
    days.save(tmp_path / "trace.npz")
    again = Days.load(tmp_path / "trace.npz")
    assert (again.of(YESTERDAY) == days.of(YESTERDAY)).all() and (again.used == days.used).all()


def test_the_picture_has_a_panel_for_each_cell_and_a_line_for_each_forecaster() -> None:
    line = np.array([[0.5, 0.0], [1.5, 0.1]])
    svg = draw([Panel(f"cell <{n}>", {"forecast": line, "true future": line}) for n in range(5)], 0.9)
    root = ET.fromstring(svg)
    drawn = root.findall(".//{http://www.w3.org/2000/svg}polyline")
    assert len(drawn) == 2 + 5 * 2
    assert "cell &lt;4&gt;" in svg


def test_the_benchmark_prints_all_its_tables_from_kept_forecasts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    days_of().save(tmp_path / "trace.npz")
    assert main(["--keep", str(tmp_path), "--seeds", "2", "--picture", str(tmp_path / "all.svg")]) == 0
    said = capsys.readouterr().out
    for line in (*FORECASTERS, BY_NODE, TRUE_FUTURE, "BOOM's table", "trace cpu", "node_z 0.95"):
        assert line in said
    ET.parse(tmp_path / "all.svg")
