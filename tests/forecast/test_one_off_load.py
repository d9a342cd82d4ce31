"""What one-off owners bring to nodes is expected by the hour, and multiplies nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from base.arrays import Floats
from forecast.composition import peak_at
from forecast.fit import fit
from forecast.history import History
from forecast.model import PeakModel
from forecast.node_base import with_one_offs, without_one_offs
from forecast.node_forecast import node_forecast
from forecast.resources import CPU
from forecast.service_key import ServiceKey
from tests.forecast.six_nodes import BASE, WEB_POD, history_of, with_nights_of_etl
from trainer.gate.reproduction import reproductions

NIGHT = slice(2, 10)


@pytest.fixture(scope="module")
def history() -> History:
    return with_nights_of_etl()


@pytest.fixture(scope="module")
def model(history: History) -> PeakModel:
    return fit(history)


def cpu_of_nodes(model: PeakModel, history: History) -> Floats:
    (day,) = model.calendar.horizon(model.first_day, 1)
    return node_forecast(model, history.placements.between(0, 48), (day,))[CPU].mean


def test_nodes_are_forecast_at_the_level_and_the_hour_of_the_recorded_days(model: PeakModel, history: History) -> None:
    expected, recorded = cpu_of_nodes(model, history), history.node_usage[:, CPU].mean(axis=1)
    assert expected[:, NIGHT].mean() == pytest.approx(recorded[:, NIGHT].mean(), rel=0.05)
    assert expected.mean(axis=1) == pytest.approx(recorded.mean(axis=1), rel=0.1)
    assert set(expected.argmax(axis=1)) <= set(range(2, 10))
    assert expected[:, 40] == pytest.approx(BASE + 2 * WEB_POD[40], rel=0.05), "no more than there was in the evening"


def test_chance_is_in_the_bound_and_not_in_what_is_expected(model: PeakModel, history: History) -> None:
    (day,) = model.calendar.horizon(model.first_day, 1)
    load = node_forecast(model, history.placements.between(0, 48), (day,))[CPU]
    expected, bound = (peak_at(load, float(model.node_z[CPU, q])) for q in range(2))
    assert (expected < 1.1 * load.mean.max(axis=1, keepdims=True)).all()
    came = history.node_usage[:, CPU].max(axis=2)
    assert 0.85 <= np.mean(came <= bound) <= 1.0


def test_pods_that_are_there_are_not_counted_again(model: PeakModel, history: History) -> None:
    runs = history.placements.between(0, 48)
    sitting = replace(runs, service=np.where(np.arange(len(runs.pod)) == 0, 1, runs.service))
    (day,) = model.calendar.horizon(model.first_day, 1)
    with_it = node_forecast(model, sitting, (day,))[CPU].mean
    assert with_it[0] == pytest.approx(cpu_of_nodes(model, history)[0] - WEB_POD, rel=0.05), "one pod of web less"


def test_services_are_learned_as_if_one_off_owners_were_not_there(history: History) -> None:
    rest = without_one_offs(history)
    assert rest.node_usage[:, CPU] == pytest.approx(history_of(ServiceKey("a", "B", "c"), [0] * 6).node_usage[:, CPU])
    assert rest.one_off_usage is None and without_one_offs(rest) is rest


def test_a_history_without_them_stays_as_it_is() -> None:
    plain = history_of(ServiceKey("shop", "Deployment", "mail"), [0] * 6)
    base = object()
    assert with_one_offs(base, plain, plain.describe_days()) is base  # type: ignore[arg-type]


def test_the_model_reproduces_the_days_that_it_learned_from(model: PeakModel, history: History) -> None:
    assert not reproductions(history, model)["cpu"].fails
