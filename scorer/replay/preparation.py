"""What a what-if on recorded pods needs before it plays: window, recording, what each rule believed, and the rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from base.arrays import Floats
from base.errors import InputError
from cluster.degradation import widening
from forecast.history import History, PodUsage
from forecast.model import PeakModel
from forecast.resources import HOT_RESOURCES
from scorer.replay.attribution import Attribution, attribute_usage
from scorer.replay.curves import CurveForecast, at_requests, from_model, last_week, true_future
from scorer.replay.job_pods import job_pods, true_runs
from scorer.replay.recording import Recording, record
from scorer.replay.rules import ByCurves, Live, Native, Rule
from scorer.replay.window import Window, replay_window

FitModel = Callable[[History], PeakModel]

Forecaster = Callable[[History, Window, Floats], CurveForecast]
"""From what is known (a history that ends before the window), the window and the pods of each service that are placed,
(n_services,), to curves over the window. The history may end days before the window begins: a model past its time."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What happened, and what each rule believed would happen.

    forecasts : rule -> curves it places by, of the rules that place by curves; for the nodes of `recording`
    attributed: resource -> what moves by regression, of resources that some pods are not measured for
    """

    window: Window
    recording: Recording
    forecasts: Mapping[str, CurveForecast]
    attributed: Mapping[str, Attribution]


def prepare(
    history: History, pod_usage: PodUsage, forecaster: Forecaster, *, at: datetime | None = None, days: int = 7
) -> Prepared:
    """Cut the window out of the history, and make the forecasts from what lay before it; arguments as `replay`'s."""
    window = replay_window(history, at, days)
    recording = record(history, pod_usage, window)
    check_limits(recording)
    fresh = forecast_from(history, window, recording, forecaster, age=0)
    completed, by_regression = attribute_usage(history, window, fresh.model)
    if by_regression:
        recording = record(completed, pod_usage, window)
    forecasts = {
        "last_week": last_week(completed, window).on_nodes(recording.nodes),
        "forecast": fresh,
        "oracle": true_future(recording, fresh.autoscaled),
    }
    return Prepared(window, recording, forecasts, by_regression)


def check_limits(recording: Recording) -> None:
    """Raise InputError if no node of the recording can be hot."""
    if not np.isfinite(recording.known_capacity[:, list(HOT_RESOURCES)]).any():
        raise InputError(
            "no node has a known capacity of CPU, disk, network or log, so no node can be hot: fill in capacity.parquet"
        )


def forecast_with(fit: FitModel) -> Forecaster:
    """Forecasts read from the model that `fit` makes of what is known, its bounds widened with the model's age."""

    def forecaster(known: History, window: Window, current_replicas: Floats) -> CurveForecast:
        model = fit(known)
        age = (window.days[0] - model.first_day).days
        return from_model(model, window, current_replicas, widen=widening(age))

    return forecaster


def forecast_from(
    history: History, window: Window, recording: Recording, forecaster: Forecaster, *, age: int
) -> CurveForecast:
    """Curves from what was known `age` days before the day of the placement."""
    known = history.before(window.first_day - age)
    forecast = forecaster(known, window, recording.replicas_at_start())
    if forecast.model is not None:
        forecast = at_requests(forecast, forecast.model, window, recording.first_requests())
    return forecast.on_nodes(recording.nodes)


def ties(seed: int) -> np.random.Generator:
    """Decides between nodes that are equally good; the same stream for every rule."""
    return np.random.default_rng((seed, 1))


def by_curves(recording: Recording, forecast: CurveForecast, *, live_correction: bool = True) -> ByCurves:
    """A rule that takes pods of Jobs to end when the forecast expects it."""
    jobs = job_pods(recording, forecast.run_seconds)
    return ByCurves(forecast, recording.capacity, jobs=jobs, live_correction=live_correction)


def named_rule(name: str, recording: Recording, forecasts: Mapping[str, CurveForecast], seed: int) -> Rule:
    """The rule that `replay` plays under this name; forecasts are for the nodes of the recording."""
    if name == "native":
        return Native(ties(seed))
    if name == "live":
        return Live()
    if name == "oracle":  # knows when each pod of a Job really ends
        return ByCurves(forecasts[name], recording.capacity, jobs=true_runs(recording))
    return by_curves(recording, forecasts[name])
