"""Marks say when something began that was not so before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.dashboards.grafana_queries import annotation_queries, filled_in
from tests.dashboards.promtool_tests import run_rule_tests, series

GRAFANA: Final = Path(__file__).parents[2] / "dashboards" / "grafana"
NAMES: Final = ("gpu-and-jobs", "model", "peaks", "scheduling")
HOUR: Final = 3600


def _asked(name: str, at: str, *, is_there: bool) -> Iterator[dict[str, Any]]:
    dashboard = json.loads((GRAFANA / f"{name}.json").read_text())
    for asked in annotation_queries(name, dashboard):
        if asked.where.endswith("First pods bound after our advice"):
            query, _ = filled_in(asked.query, dashboard, HOUR, {})
            samples = [{"labels": "{}", "value": 1}] if is_there else []
            yield {"eval_time": at, "expr": query, "exp_samples": samples}


@pytest.mark.parametrize("name", NAMES)
def test_a_shadow_is_no_adoption_and_what_comes_after_it_is(tmp_path: Path, name: str) -> None:
    """For ten minutes there is a shadow, then an extender whose advice is told, both with pods of every outcome."""
    given = [
        series("forecast_decisions_total", values, mode=mode, outcome=outcome, instance=mode)
        for outcome in ("as_advised", "elsewhere")
        for mode, values in (("shadow", "0 0 1+1x38"), ("active", "_x40 0 1 1 1 1"))
        if (mode, outcome) != ("active", "elsewhere")
    ]
    looks = (("45s", False), ("9m", False), ("10m", False), ("10m15s", True), ("10m30s", False))
    asked = [one for at, is_there in looks for one in _asked(name, at, is_there=is_there)]
    assert len(asked) == len(looks), "the mark was renamed"
    test = {"interval": "15s", "input_series": [one.written() for one in given], "promql_expr_test": asked}
    complaints = run_rule_tests(tmp_path, [], [test], every="15s")
    assert not complaints, complaints
