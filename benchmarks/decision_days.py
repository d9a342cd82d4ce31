"""What every forecaster said at a few midnights of a trace, and what came. Nothing is forecast twice."""

from __future__ import annotations

import time
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from base.arrays import Bools, Floats, Ints
from base.errors import InputError
from benchmarks.decision_forecasters import (
    FEWEST_DAYS,
    NAIVE,
    OURS,
    QUANTILES,
    Forecaster,
    auto_ets,
    daily_copy,
    filled,
    light_gbm,
    model_curves,
    model_quantiles,
    ridge,
    seasonal_naive,
)
from forecast.backtest import scored_series
from forecast.fit import fit
from forecast.history import History
from forecast.model import PeakModel
from forecast.resources import RESOURCES

FORECASTERS = (OURS, NAIVE, "AutoETS", "LightGBM", "ridge")
YESTERDAY = "day before"

_ORIGINS, _DAYS_BETWEEN = 4, 5
_MOST_SERVICES = 60


@dataclass(frozen=True, slots=True)
class Days:
    """Forecasts of single days, and the days themselves, in base units.

    used        : (n_services, n_resources) series that count (`forecast.backtest.scored_series`)
    size        : (n_services, n_resources) 0.9 quantile of the daily peaks
    actual      : (n_origins, n_services, n_resources, 48)
    curves      : (n_forecasters, n_origins, n_services, n_resources, 48, n_quantiles) by FORECASTERS, then YESTERDAY
    mean        : (n_origins, n_services, n_resources, 48) of our model
    variance    : same shape; all of a single pod's error, which on a node does not add up alone (cluster_std)
    cluster_std : (n_origins, n_resources)
    node_z      : (n_origins, n_resources, 2) as published, for the 0.5 and 0.95 quantile of a node's daily peak
    peaks       : (n_origins, n_services, n_resources, 2) the model's 0.5 and 0.95 quantile of the day's peak
    difference  : (n_origins, n_services, n_resources) mean absolute difference of the history to the day before
    """

    used: Bools
    size: Floats
    actual: Floats
    curves: Floats
    mean: Floats
    variance: Floats
    cluster_std: Floats
    node_z: Floats
    peaks: Floats
    difference: Floats

    def of(self, forecaster: str) -> Floats:
        """(n_origins, n_services, n_resources, 48, n_quantiles)"""
        return np.asarray(self.curves[(*FORECASTERS, YESTERDAY).index(forecaster)])

    def save(self, path: Path) -> None:
        np.savez_compressed(path, **{field.name: getattr(self, field.name) for field in fields(self)})

    @staticmethod
    def load(path: Path) -> Days:
        with np.load(path) as stored:
            return Days(**{field.name: stored[field.name] for field in fields(Days)})


def origins(n_days: int) -> list[int]:
    """Days to forecast: the last one and others five days apart, so that their weekdays differ."""
    days = [n_days - 1 - _DAYS_BETWEEN * back for back in range(_ORIGINS)]
    return sorted(day for day in days if day >= FEWEST_DAYS)


def forecast_days(name: str, history: History) -> Days:
    """Fit every forecaster at every origin. All learn from all series; at most 60 services are kept.

    Raises InputError if the history is too short, or no series of it counts.
    """
    if history.n_days <= FEWEST_DAYS:
        raise InputError(f"{name}: {history.n_days} days of history, {FEWEST_DAYS + 1} needed: name a longer one")
    used, size = scored_series(history.usage_per_pod)
    kept = np.flatnonzero(used.any(axis=1))
    if not len(kept):
        raise InputError(f"{name}: no series is used enough to be scored: name another history")
    kept = kept[np.unique(np.linspace(0, len(kept) - 1, _MOST_SERVICES).round().astype(np.int64))]
    model: PeakModel | None = None
    parts: list[dict[str, Floats]] = []
    for day in origins(history.n_days):
        started = time.perf_counter()
        known = history.before(day)
        model = fit(known, previous=model)
        part = _of_model(model, history, day, kept)
        shape = (len(used), len(RESOURCES))
        curves = [model_quantiles(model)[kept]]
        curves += _rivals(known, history.days[day].weekday(), used, kept)
        part["curves"] = np.stack(curves)
        past = known.usage_per_pod.reshape(*shape, -1)
        steps = np.abs(past[..., 48:].astype(np.float64) - past[..., :-48])[kept]
        part["difference"] = np.nan_to_num(np.nansum(steps, axis=-1) / np.maximum(np.isfinite(steps).sum(axis=-1), 1))
        parts.append(part)
        print(f"{name}: forecast {history.days[day]} in {time.perf_counter() - started:.0f} s", flush=True)
    stacked = {key: np.stack([part[key] for part in parts]) for key in parts[0]}
    stacked["curves"] = np.moveaxis(stacked["curves"], 0, 1)
    return Days(used=used[kept], size=size[kept], **stacked)


def _of_model(model: PeakModel, history: History, day: int, kept: Ints) -> dict[str, Floats]:
    mean, variance = model_curves(model)
    return {
        "actual": history.usage_per_pod[kept, :, day].astype(np.float64),
        "mean": np.nan_to_num(mean[kept]),
        "variance": variance[kept],
        "cluster_std": model.cluster_std.astype(np.float64),
        "node_z": model.node_z.astype(np.float64),
        "peaks": np.nan_to_num(model.service_peaks(history.days[day])[kept]),
    }


def _rivals(known: History, weekday: int, used: Bools, kept: Ints) -> list[Floats]:
    """In the order of FORECASTERS without ours, then YESTERDAY: (n_kept, n_resources, 48, n_quantiles) each."""
    service, resource = np.nonzero(used)
    past = filled(known.usage_per_pod[service, resource])
    scale = np.maximum(past[:, -28:].mean(axis=(1, 2)), np.finfo(np.float32).tiny)
    past /= scale[:, None, None]
    weekdays = (weekday - known.n_days + np.arange(known.n_days + 1)) % 7
    is_kept = np.isin(service, kept)
    row_of = np.searchsorted(kept, service[is_kept])
    result = []
    forecasters: tuple[Forecaster, ...] = (seasonal_naive, auto_ets, light_gbm, ridge, daily_copy)
    for forecaster in forecasters:
        # One by one for each series: no reason to run AutoETS where its answer is not looked at.
        rows = is_kept if forecaster is auto_ets else np.ones_like(is_kept)
        said = np.zeros((len(service), *past.shape[2:], len(QUANTILES)))
        said[rows] = forecaster(past[rows], resource[rows], weekdays) * scale[rows, None, None]
        table = np.zeros((len(kept), len(RESOURCES), *said.shape[1:]))
        table[row_of, resource[is_kept]] = said[is_kept]
        result.append(table)
    return result
