"""Backtest: would the published model have foreseen each day's peak?

The definition is fixed, others compare against it. Series are per-pod means of a service; origins are the last 28 local
midnights that leave a full day (5 where history is under 40 days); the target is that day's peak, the maximum of
half-hour means. Quantile losses at 0.5 and 0.95, every series divided by the 0.9 quantile of its daily peaks, are
summed and divided by the sum of actual peaks. Series with median daily peak 0 or under 95 % of samples are left out.

The model is refitted at every origin on what lay before, and read through `PeakModel` as the scorer reads it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from base.arrays import AnyFloats, Bools, Floats
from base.errors import InputError, NotEnoughHistory
from base.progress import Progress, silent
from forecast.baselines import BASELINES
from forecast.calendar import SLOTS_PER_DAY
from forecast.history import History
from forecast.model import PEAK_QUANTILES, PeakModel
from forecast.online_calibration import daily_peaks, node_hits
from forecast.quantiles import pinball_loss
from forecast.resources import RESOURCES

OURS = "forecast-scheduler"
_ORIGINS, _FEW_ORIGINS, _SHORT_HISTORY_DAYS = 28, 5, 40
_MINIMUM_HISTORY_DAYS = 8
SAMPLES_NEEDED = 0.95
"""A series with a smaller share of samples is not scored: its peak may have gone unseen."""

FitModel = Callable[[History, PeakModel | None], PeakModel]


@dataclass(frozen=True, slots=True)
class BacktestScore:
    """Losses of one forecaster on one resource. coverage95 = share of peaks at or below the 0.95 forecast."""

    loss50: float
    loss95: float
    coverage95: float
    n: int

    def to_json(self) -> dict[str, float | int]:
        return {"loss50": self.loss50, "loss95": self.loss95, "coverage95": self.coverage95, "n": self.n}


@dataclass(frozen=True, slots=True)
class Backtest:
    """scores[resource][forecaster]; resources without a usable series are absent.

    node_coverage : resource -> (share of node-days whose peak stayed under the 0.95 bound, number of node-days)
    left_out      : resource -> measured series that the definition leaves out
    peaks         : what was forecast and what came, for plots
    """

    scores: dict[str, dict[str, BacktestScore]]
    components: dict[str, dict[str, BacktestScore]]
    node_coverage: dict[str, tuple[float, int]]
    left_out: dict[str, int]
    origins: tuple[str, ...]
    peaks: PeakTable

    def to_json(self) -> dict[str, Any]:
        """The layout that other tools rely on."""
        return {
            "resources": {
                resource: {
                    OURS: by_name[OURS].to_json(),
                    "baselines": {name: score.to_json() for name, score in by_name.items() if name != OURS},
                    "components": {name: score.to_json() for name, score in self.components.get(resource, {}).items()},
                }
                for resource, by_name in self.scores.items()
            },
            "left_out": self.left_out,
            "node_coverage95": {r: {"coverage": share, "n": n} for r, (share, n) in self.node_coverage.items()},
            "origins": list(self.origins),
        }


@dataclass(frozen=True, slots=True)
class PeakTable:
    """Actual peaks and those of every forecaster, for plots and for comparisons series by series.

    actual    : (n_services, n_resources, n_origins) base units
    forecasts : forecaster -> (n_services, n_resources, n_origins, n_quantiles)
    used      : (n_services, n_resources) series the definition scores
    scale     : (n_services, n_resources) what losses of a series are divided by
    """

    actual: Floats
    forecasts: dict[str, Floats]
    used: Bools
    scale: Floats

    @property
    def forecast(self) -> Floats:
        """Ours: (n_services, n_resources, n_origins, n_quantiles)."""
        return self.forecasts[OURS]


def scored_series(usage: AnyFloats) -> tuple[Bools, Floats]:
    """Which series the definition scores, and their scales: (n_services, n_resources) each."""
    peaks = daily_peaks(usage)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        complete = np.isfinite(usage).mean(axis=(2, 3)) >= SAMPLES_NEEDED
        used = complete & (np.nan_to_num(np.nanmedian(peaks, axis=2)) > 0)
        scale = np.nanquantile(peaks, 0.9, axis=2)
    return used, np.where(used, scale, np.nan)


def origin_days(n_days: int) -> range:
    """Day indices forecast from the midnight they begin with; raises NotEnoughHistory."""
    wanted = _FEW_ORIGINS if n_days < _SHORT_HISTORY_DAYS else _ORIGINS
    if n_days < _MINIMUM_HISTORY_DAYS:
        raise NotEnoughHistory(
            days=n_days, needed=_MINIMUM_HISTORY_DAYS, purpose="backtest (a week and a day to forecast)"
        )
    return range(max(_MINIMUM_HISTORY_DAYS - 1, n_days - wanted), n_days)


def backtest(history: History, fit_model: FitModel, *, progress: Progress = silent) -> Backtest:
    """Run the definition above. `fit_model(known history, model of the night before)` is what train would publish."""
    usage = history.usage_per_pod
    used, scale = scored_series(usage)
    actual = daily_peaks(usage)
    left_out = {
        r.name: int((np.isfinite(actual[:, i]).any(axis=1) & ~used[:, i]).sum()) for i, r in enumerate(RESOURCES)
    }
    if not used.any():
        raise InputError(
            f"no series can be scored, {sum(left_out.values())} are left out: a series needs {SAMPLES_NEEDED:.0%} of "
            f"the samples of the {history.n_days} days and a median daily peak above 0; export days without gaps"
        )
    days = origin_days(history.n_days)
    tallies: dict[str, list[Floats]] = {}
    component_tallies: dict[str, list[Floats]] = {}
    hits: list[Floats] = []
    model: PeakModel | None = None
    progress("backtest", 0, len(days))
    for done, day in enumerate(days, start=1):
        known = history.before(day)
        model = fit_model(known, model)
        tallies.setdefault(OURS, []).append(model.service_peaks(history.days[day]))
        for name, forecast in _baseline_forecasts(known, actual[:, :, :day]):
            tallies.setdefault(name, []).append(forecast)
        for name, forecast in model.component_peaks.items():
            component_tallies.setdefault(name, []).append(forecast)
        hits.append(node_hits(history, model, day))
        progress("backtest", done, len(days))
    targets = actual[:, :, days.start : days.stop]
    forecasts = _stacked(tallies)
    return Backtest(
        scores=peak_scores(forecasts, targets, used, scale),
        components=peak_scores(_stacked(component_tallies), targets, used, scale),
        node_coverage=_coverage(np.stack(hits)),
        left_out=left_out,
        origins=tuple(history.days[day].isoformat() for day in days),
        peaks=PeakTable(targets, forecasts, used, scale),
    )


def _baseline_forecasts(known: History, peaks: Floats) -> Iterator[tuple[str, Floats]]:
    """Every fixed baseline: name, (n_services, n_resources, n_quantiles)."""
    n_services, n_resources, n_days = peaks.shape
    flat_peaks = peaks.reshape(-1, n_days)
    flat_usage = known.usage_per_pod.reshape(-1, n_days, SLOTS_PER_DAY)
    for name, baseline in BASELINES.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # series without a single sample
            q50, q95 = baseline(flat_peaks, flat_usage)
        yield name, np.stack([q50, q95], axis=-1).reshape(n_services, n_resources, 2)


def _stacked(tallies: dict[str, list[Floats]]) -> dict[str, Floats]:
    """Per forecaster (n_services, n_resources, n_origins, n_quantiles)."""
    return {name: np.stack(nightly, axis=2) for name, nightly in tallies.items()}


def peak_scores(
    forecasts: dict[str, Floats], targets: Floats, used: Bools, scale: Floats
) -> dict[str, dict[str, BacktestScore]]:
    """Losses per resource and forecaster, all on the peaks that every one of them could forecast.

    forecasts   : forecaster -> (n_services, n_resources, n_days, n_quantiles)
    targets     : (n_services, n_resources, n_days) the peaks that came, NaN = not measured
    used, scale : (n_services, n_resources), see `scored_series`
    Resources without a used series are absent.
    """
    result: dict[str, dict[str, BacktestScore]] = {}
    for index, resource in enumerate(RESOURCES):
        rows = used[:, index]
        if not rows.any():
            continue
        target = targets[rows, index] / scale[rows, index, None]  # (n_used, n_origins)
        known = np.isfinite(target)
        for forecast in forecasts.values():
            known &= np.isfinite(forecast[rows, index]).all(axis=2)
        for name, forecast in forecasts.items():
            result.setdefault(resource.name, {})[name] = _score(
                known, target, forecast[rows, index] / scale[rows, index, None, None]
            )
    return result


def _score(known: Bools, target: Floats, forecast: Floats) -> BacktestScore:
    """known, target: (n_series, n_origins), forecast: (n_series, n_origins, n_quantiles), both scaled."""
    total = target[known].sum()
    losses = [
        float(pinball_loss(target[known], forecast[known][:, i], q).sum() / total) if total > 0 else float("nan")
        for i, q in enumerate(PEAK_QUANTILES)
    ]
    covered = float((target[known] <= forecast[known][:, -1]).mean()) if known.any() else float("nan")
    return BacktestScore(losses[0], losses[1], covered, int(known.sum()))


def _coverage(hits: Floats) -> dict[str, tuple[float, int]]:
    """hits: (n_origins, n_nodes, n_resources)."""
    return {
        resource.name: (float(np.nanmean(hits[:, :, i])), int(np.isfinite(hits[:, :, i]).sum()))
        for i, resource in enumerate(RESOURCES)
        if np.isfinite(hits[:, :, i]).any()
    }
