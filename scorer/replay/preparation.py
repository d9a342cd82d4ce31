"""What a what-if on recorded pods needs before it plays: window, recording, doubled replicas, what each rule believed,
and the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from base.arrays import Floats, Floats32, Ints
from base.errors import InputError
from cluster.degradation import widening
from forecast.calendar import SLOTS_PER_DAY
from forecast.history import History, PodUsage
from forecast.model import PeakModel
from forecast.resources import HOT_RESOURCES
from scorer.replay.curves import CurveForecast, at_requests, from_model, job_pods, last_week, true_future, true_runs
from scorer.replay.recording import Attribution, Recording, attribute_usage, record
from scorer.replay.replay_rules import ByCurves, Live, Native, ReplayRule
from scorer.replay.window import ReplayWindow, replay_window

FitModel = Callable[[History], PeakModel]

Forecaster = Callable[[History, ReplayWindow, Floats], CurveForecast]
"""From what is known (a history that ends before the window), the window and the pods of each service that are placed,
(n_services,), to curves over the window. The history may end days before the window begins: a model past its time."""

SLOTS_BEFORE = 4
"""Two hours: live usage knows the new pods when the placement begins, and the model of last midnight does not."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What happened, and what each rule believed would happen.

    forecasts : rule -> curves it places by, of the rules that place by curves; for the nodes of `recording`
    attributed: resource -> what moves by regression, of resources that some pods are not measured for
    """

    window: ReplayWindow
    recording: Recording
    forecasts: Mapping[str, CurveForecast]
    attributed: Mapping[str, Attribution]


def prepare(
    history: History,
    pod_usage: PodUsage,
    forecaster: Forecaster,
    *,
    at: datetime | None = None,
    days: int = 7,
    hot: float,
) -> Prepared:
    """Cut the window out of the history, and make the forecasts from what lay before it; arguments as `replay`'s."""
    window = replay_window(history, at, days)
    recording = record(history, pod_usage, window, hot)
    check_limits(recording)
    fresh = forecast_from(history, window, recording, forecaster, age=0)
    completed, by_regression = attribute_usage(history, window, fresh.model)
    if by_regression:
        recording = record(completed, pod_usage, window, hot)
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

    def forecaster(known: History, window: ReplayWindow, current_replicas: Floats) -> CurveForecast:
        model = fit(known)
        age = (window.days[0] - model.first_day).days
        return from_model(model, window, current_replicas, widen=widening(age))

    return forecaster


def forecast_from(
    history: History, window: ReplayWindow, recording: Recording, forecaster: Forecaster, *, age: int
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


def named_rule(name: str, recording: Recording, forecasts: Mapping[str, CurveForecast], seed: int) -> ReplayRule:
    """The rule that `replay` plays under this name; forecasts are for the nodes of the recording."""
    if name == "native":
        return Native(ties(seed))
    if name == "live":
        return Live()
    if name == "oracle":  # knows when each pod of a Job really ends
        return ByCurves(forecasts[name], recording.capacity, jobs=true_runs(recording))
    return by_curves(recording, forecasts[name])


def doubled_replicas(history: History, pods: PodUsage, window: ReplayWindow, chosen: Ints) -> tuple[History, PodUsage]:
    """The history and its pods as if some services had twice the replicas of half the size from then on.

    pods   : at least of the days of the window
    chosen : (n_chosen,) services; their total load and their total requests stay
    """
    first_slot = pods.days.index(window.days[0]) * SLOTS_PER_DAY + window.first_slot
    later = _half_from(first_slot - SLOTS_BEFORE, len(pods.days))
    halved = np.isin(pods.service, chosen)  # (n_pods,)
    usage, requests = pods.usage.copy(), pods.requests.copy()
    usage[halved] *= later
    requests[halved] *= 0.5
    twins = np.flatnonzero(halved & ((pods.present > 0) & (later < 1)).any(axis=(1, 2)))
    together = replace(
        pods,
        pods=(*pods.pods, *(f"{pods.pods[pod]}-twin" for pod in twins)),
        service=np.concatenate([pods.service, pods.service[twins]]),
        requests=np.concatenate([requests, requests[twins]]),
        usage=np.concatenate([usage, usage[twins]]),
        present=np.concatenate([pods.present, np.where(later < 1, pods.present[twins], 0)]),
        node=np.concatenate([pods.node, pods.node[twins]]),
        row=np.concatenate([pods.row, np.full(len(twins), -1)]),
    )
    later = _half_from(window.history_slot - SLOTS_BEFORE, history.n_days)
    usage_per_pod, replicas = history.usage_per_pod.copy(), history.replicas.copy()
    usage_per_pod[chosen] *= later
    replicas[chosen] /= later
    return replace(history, usage_per_pod=usage_per_pod, replicas=replicas), together


def _half_from(slot: int, n_days: int) -> Floats32:
    """(n_days, 48): 1 before the slot, 0.5 from it on."""
    return np.where(np.arange(n_days * SLOTS_PER_DAY) < slot, 1.0, 0.5).astype(np.float32).reshape(n_days, -1)
