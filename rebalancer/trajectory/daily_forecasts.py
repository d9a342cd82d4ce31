"""What is believed on each day of a trajectory, from what was known at its midnight.

The replay fits one model and keeps it. A trajectory lasts longer: each day has a forecast of its own, made of the whole
local days before it, as the nightly trainer makes one.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Protocol

import numpy as np

from base.arrays import Floats
from cluster.degradation import widening
from forecast.history import History
from forecast.model import PeakModel
from scorer.replay.curves import CurveForecast, at_requests, from_model, last_week
from scorer.replay.preparation import FitModel
from scorer.replay.recording import Recording
from scorer.replay.window import Window

DAYS_AHEAD = 8
"""Local days of a forecast: a week from any hour of its first day."""


class DailyForecasts(Protocol):
    """Forecasts by day of the trajectory."""

    def of(self, day: int, replicas: Floats, requests: Floats) -> CurveForecast:
        """Curves from the midnight of day `day` on, over DAYS_AHEAD local days, for the nodes of the recording.

        replicas : (n_services,) pods of each service that are there now
        requests : (n_services, 2) what one of them requests; 0 = nothing known
        """


def window_of_day(window: Window, day: int) -> Window:
    """The window that a forecast of day `day` covers; its days may lie behind the end of the history."""
    first = window.days[0] + timedelta(days=day)
    days = tuple(first + timedelta(days=ahead) for ahead in range(DAYS_AHEAD))
    return replace(window, first_day=window.first_day + day, days=days, first_slot=0, n_days=DAYS_AHEAD)


class ByModels:
    """Forecasts of models, each fitted on the days before."""

    def __init__(
        self, history: History, window: Window, recording: Recording, fit: FitModel, *, every: int = 1
    ) -> None:
        """
        fit   : called once for each first day; its result is kept
        every : a model is used for so many nights; its bounds widen with its age
        """
        self._history, self._window, self._recording = history, window, recording
        self._fit, self._every = fit, every
        self._models: dict[int, PeakModel] = {}
        self._last: tuple[tuple[int, bytes, bytes], CurveForecast] | None = None

    def model(self, day: int) -> PeakModel:
        """The model in use on day `day`."""
        fitted = day - day % self._every
        if fitted not in self._models:
            self._models[fitted] = self._fit(self._history.before(self._window.first_day + fitted))
        return self._models[fitted]

    def of(self, day: int, replicas: Floats, requests: Floats) -> CurveForecast:
        key = day, replicas.tobytes(), requests.tobytes()
        if self._last is None or self._last[0] != key:
            model, window = self.model(day), window_of_day(self._window, day)
            age = (window.days[0] - model.first_day).days
            forecast = from_model(model, window, replicas, widen=widening(age))
            forecast = at_requests(forecast, model, window, requests).on_nodes(self._recording.nodes)
            self._last = key, forecast
        return self._last[1]


class ByLastWeek:
    """The week before each day, as it was. Promises no bound."""

    def __init__(self, history: History, window: Window, recording: Recording) -> None:
        self._history, self._window, self._recording = history, window, recording
        self._by_day: dict[int, CurveForecast] = {}

    def of(self, day: int, replicas: Floats, requests: Floats) -> CurveForecast:
        del requests
        if day not in self._by_day:
            forecast = last_week(self._history, window_of_day(self._window, day))
            self._by_day[day] = forecast.on_nodes(self._recording.nodes)
        known = self._by_day[day]
        scaled = known.autoscaled | np.isfinite(known.run_seconds)
        return replace(known, replicas=np.where(scaled[:, None], known.replicas, replicas[:, None]))
