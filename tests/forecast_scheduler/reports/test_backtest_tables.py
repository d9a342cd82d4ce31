"""Tables hold the figures of the JSON, and a dash where there is none."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console
from rich.table import Table

from forecast_scheduler.reports.history_tables import ServicePeak, baselines_table, peaks_table, rules_table


def text_of(table: Table) -> list[str]:
    file = io.StringIO()
    Console(file=file, width=160).print(table)
    return file.getvalue().splitlines()


def row(table: Table, name: str) -> str:
    (line,) = [line for line in text_of(table) if line.startswith(f"│ {name} ")]
    return line


def score(loss50: float, loss95: float) -> dict[str, float]:
    return {"loss50": loss50, "loss95": loss95, "coverage95": 0.951, "n": 100}


BACKTEST: dict[str, Any] = {
    "resources": {
        "cpu": {"forecast-scheduler": score(0.1, 0.12), "baselines": {"yesterday": score(0.2, 0.24)}},
        "log": {"forecast-scheduler": score(0.3, 0.32), "baselines": {}},
    },
    "node_coverage95": {"cpu": {"coverage": 0.94, "n": 500}},
}

REPLAY: dict[str, Any] = {
    "rules": {
        "native": {"hot_share": 0.0812, "peak_cv": {"cpu": 0.3, "memory": 0.2}, "p99_peak": {"cpu": 1.02}},
        "forecast": {"hot_share": 0.001, "peak_cv": {"cpu": 0.07, "memory": 0.1}, "p99_peak": {"cpu": 0.7}},
    },
    "gap_closed": {"hot_share": 0.96, "peak_cv": {"cpu": None}},
}


def test_losses_and_coverage_stand_under_their_resource() -> None:
    table = baselines_table(BACKTEST)
    assert "0.100 / 0.120 │ 0.300 / 0.320" in row(table, "forecast-scheduler")
    assert "0.200 / 0.240 │             –" in row(table, "yesterday")
    assert row(table, "peaks under our 95 % bound").count("95.1 %") == 2
    assert "94.0 %" in row(table, "same, daily peaks of nodes")
    assert "–" in row(table, "same, daily peaks of nodes")


def test_each_rule_has_its_figures_and_a_missing_gap_its_reason() -> None:
    table = rules_table(REPLAY["rules"], title="Rules", gap_closed=REPLAY["gap_closed"])
    assert [cell.strip() for cell in row(table, "native").strip("│").split("│")] == [
        "native",
        "8.12 %",
        "0.300",
        "102 %",
    ]
    assert "96 %" in row(table, "gap closed, oracle = 100 %")
    assert "–" in row(table, "gap closed, oracle = 100 %")
    table = rules_table(
        REPLAY["rules"],
        title="Rules",
        gap_closed=REPLAY["gap_closed"],
        no_gap={"hot_share": None, "peak_cv": {"cpu": "the true future gains nothing over native"}},
        by_regression={"cpu": {"moved": 0.75, "error": 0.21, "identified": 0.9}},
    )
    text = " ".join(" ".join(text_of(table)).split())
    assert "cpu* CV" in text
    assert "cpu*: by regression, error 21%; 75% of it moves with pods" in text
    assert "– cpu CV: the true future gains nothing over native" in text


def test_peaks_are_in_readable_units_with_their_error() -> None:
    table = peaks_table(
        [
            ServicePeak("shop/Deployment/cart", "cpu", expected=1.1, bound=1.4, actual=1.0),
            ServicePeak("shop/Deployment/idle", "memory", expected=2.0**20, bound=2.0**21, actual=0.0),
        ],
        day="2026-11-14",
    )
    assert "1.1" in row(table, "shop/Deployment/cart")
    assert "+10%" in row(table, "shop/Deployment/cart")
    assert "MiB" in row(table, "shop/Deployment/idle")
    assert "nan" not in row(table, "shop/Deployment/idle")
    assert text_of(rules_table({}, title="Rules")), "a report without rules is an empty table"
