"""The one line about resources that have no capacity."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from forecast.assumed_capacity import capacity_gaps, resources_measured
from forecast.fit import fit
from forecast.resources import DISK, LOG, RESOURCES
from tests.synthetic import synthetic_history

ALL = np.ones(len(RESOURCES), dtype=bool)


def test_nothing_is_said_where_every_node_has_all_capacities() -> None:
    assert capacity_gaps(np.full((3, len(RESOURCES)), 40.0), ALL) == ""
    declared_no_limit = np.zeros((3, len(RESOURCES)))
    assert capacity_gaps(declared_no_limit, ALL) == ""


def test_one_line_names_resources_nodes_and_settings() -> None:
    capacity = np.full((3, len(RESOURCES)), 40.0)
    capacity[0, DISK], capacity[:, LOG] = np.nan, np.nan
    measured = ALL.copy()
    measured[LOG] = False
    line = capacity_gaps(capacity, measured)
    assert "\n" not in line and "disk on 1 of 3 nodes," in line
    assert "log on all 3 nodes (its usage is not measured)" in line
    assert "prometheus.disk_capacity, prometheus.log_capacity" in line and "network" not in line
    assert "forecast-scheduler.io/capacity" in line


def test_a_model_knows_what_was_measured_of_services_or_of_nodes() -> None:
    model = fit(synthetic_history(n_days=2))
    assert resources_measured(model).all()
    usage, base = model.usage_day_type.copy(), model.node_base.copy()
    usage[:, DISK], usage[:, LOG], base[:, LOG] = np.nan, np.nan, 0.0
    found = resources_measured(replace(model, usage_day_type=usage, node_base=base))
    assert found[DISK] and not found[LOG]
