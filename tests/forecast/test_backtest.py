"""The backtest scores the published model: definition, exclusions, and what it reads."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import joblib
import numpy as np
import pytest

from base.errors import InputError, NotEnoughHistory
from forecast.backtest import OURS, Backtest, backtest, origin_days, scored_series
from forecast.history import History
from forecast.model import PeakModel
from forecast.resources import CPU
from testing.fitted_models import fitted
from tests.synthetic import synthetic_history


@dataclass
class Fitted:
    """Gives models, and keeps them by the number of days that each of them knows.

    A history that was fitted already, to the last bit and after the same model, is not fitted again.
    """

    models: dict[int, PeakModel] = field(default_factory=dict)
    known: dict[tuple[str, int], PeakModel] = field(default_factory=dict)

    def __call__(self, history: History, previous: PeakModel | None) -> PeakModel:
        told = str(joblib.hash(history)), id(previous)  # models in `known` live on, so that no other one has their id
        if told not in self.known:
            self.known[told] = fitted(history, previous=previous)
        self.models[history.n_days] = model = self.known[told]
        return model


def three_weeks() -> History:
    return synthetic_history(n_services=8, n_days=21)


@pytest.fixture(scope="module")
def scored() -> tuple[Backtest, Fitted]:
    """The backtest of the synthetic history, and the models in it."""
    fit_model = Fitted()
    return backtest(three_weeks(), fit_model), fit_model


def test_origins_are_the_last_28_midnights_or_5_of_a_short_history() -> None:
    assert origin_days(91) == range(63, 91)
    assert origin_days(40) == range(12, 40)
    assert origin_days(39) == range(34, 39)
    with pytest.raises(NotEnoughHistory):
        origin_days(7)


def test_series_without_load_or_with_gaps_are_left_out() -> None:
    usage = synthetic_history().usage_per_pod.copy()
    usage[0, CPU] = 0
    usage[1, CPU, :2] = np.nan
    usage[2, CPU, 0, :40] = np.nan
    used, scale = scored_series(usage)
    assert used[:, CPU].tolist() == [False, False, True, True, True, True]
    assert scale[4, CPU] == pytest.approx(np.quantile(usage[4, CPU].max(axis=1), 0.9))


def test_the_report_has_the_agreed_layout_and_beats_yesterday(scored: tuple[Backtest, Fitted]) -> None:
    document = scored[0].to_json()
    cpu = document["resources"]["cpu"]
    assert set(document["resources"]) == {"cpu", "memory", "disk", "network", "log"}
    assert set(cpu[OURS]) == {"loss50", "loss95", "coverage95", "n"} and cpu[OURS]["n"] == 8 * 5
    assert {"yesterday", "same_day_last_week", "seven_days", "n_sigma", "rc_like"} <= set(cpu["baselines"])
    assert cpu["components"]
    assert cpu[OURS]["loss50"] < cpu["baselines"]["yesterday"]["loss50"]
    assert 0 <= document["node_coverage95"]["cpu"]["coverage"] <= 1 and document["node_coverage95"]["cpu"]["n"] == 4 * 5


def test_what_is_scored_is_the_artefact_the_scorer_reads(scored: tuple[Backtest, Fitted]) -> None:
    honest, fits = scored

    def perturbed(known: History, previous: PeakModel | None) -> PeakModel:
        model = fits.models[known.n_days]
        return replace(model, usage_dated=model.usage_dated * np.float32(0.5))

    wrong = backtest(three_weeks(), perturbed)
    assert wrong.scores["cpu"][OURS].loss50 > 3 * honest.scores["cpu"][OURS].loss50
    assert wrong.node_coverage["cpu"][0] < honest.node_coverage["cpu"][0] - 0.5
    assert wrong.scores["cpu"]["yesterday"] == honest.scores["cpu"]["yesterday"]


def test_a_forecast_cannot_see_the_day_it_is_scored_on(scored: tuple[Backtest, Fitted]) -> None:
    history = three_weeks()
    later = history.usage_per_pod.copy()
    later[:, :, -1] *= 3
    n_fits = len(scored[1].known)
    other = backtest(replace(history, usage_per_pod=later), scored[1]).peaks.forecast
    np.testing.assert_array_equal(scored[0].peaks.forecast, other)
    assert len(scored[1].known) == n_fits, "a fit was told of the day"


def test_a_history_of_which_every_series_is_left_out_is_refused_with_the_count() -> None:
    history = synthetic_history()
    usage = history.usage_per_pod.copy()
    usage[:, :, 3:6] = np.nan
    with pytest.raises(InputError, match="30 are left out"):
        backtest(replace(history, usage_per_pod=usage), Fitted())
