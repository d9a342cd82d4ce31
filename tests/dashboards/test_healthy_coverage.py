"""ForecastCoverageBroken on the bundled sample, which is sound: one day of it would fire, three days do not."""

from __future__ import annotations

import numpy as np
import pytest

from dashboards.alerting.forecast_alerts import LEAST_COVERAGE
from forecast.fit import fit
from forecast.history import History
from forecast.progress import silent
from forecast.resources import RESOURCES
from forecast_scheduler.commands.history_directory import open_history
from forecast_scheduler.reports.peaks_report.day_reading import read_day, runs_of_day
from forecast_scheduler.settings.document import Settings
from testing.processes.scorer_process import ROOT

_WEEK = 7


@pytest.mark.long
def test_the_last_week_of_the_sample_is_no_alarm_though_a_day_of_it_is_odd() -> None:
    history = open_history(Settings(), ROOT / "data" / "sample", silent).history()
    days = [_coverage(history, day) for day in range(history.n_days - _WEEK, history.n_days)]
    by_day = np.array(days)  # (n_days, n_resources)
    of_three = (by_day[2:] + by_day[1:-1] + by_day[:-2]) / 3  # every day has as many node half hours
    assert by_day.min() < LEAST_COVERAGE < of_three.min(), (by_day.round(3), of_three.round(3))


def _coverage(history: History, day: int) -> list[float]:
    """Share of node half hours below the 0.95 bound of the model of the night before: one of each resource."""
    model = fit(history.before(day), progress=silent)
    replicas = history.replicas[:, day, 0]
    reading = read_day(model, history, model.first_day, runs_of_day(history, day), replicas, widen=1.0)
    actual, bound = history.node_usage[:, :, day], reading.node_bound  # (n_nodes, n_resources, 48)
    known = np.isfinite(actual) & np.isfinite(bound)
    return [float((actual[:, r] <= bound[:, r])[known[:, r]].mean()) for r in range(len(RESOURCES))]
