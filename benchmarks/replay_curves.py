"""The pods of a replay placed by other curves of the same model, in the replays that `benchmarks.replay` plays.

    expected        the expected curve of each half hour
    half hours, q   the quantile q of each half hour
    daily peak, q   the expected curve, each day raised to the quantile q of its peak

The rule `forecast` weighs one more: the expected curve with the deviations of a past week (PeakModel.placement_curves).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date

import numpy as np

from base.arrays import Floats
from forecast.model import PEAK_QUANTILES, PeakModel
from scorer.replay.curves import CurveForecast
from scorer.replay.preparation import by_curves
from scorer.replay.recording import Recording
from scorer.replay.replay import Replay
from scorer.replay.replay_figures import RuleFigures, figures_of, shares
from scorer.replay.running_cluster import play
from scorer.replay.window import ReplayWindow

LEVELS = (0.75, 0.9)
"""Of half hours: those that packed best at equal utilisation (benchmarks.decisions)."""


def by_other_curves(played: Replay, seed: int) -> Mapping[str, RuleFigures]:
    """Figures of the same pods in the same order, by name of the curve."""
    recording = played.recording
    found = {}
    for name, forecast in other_curves(played.forecasts["forecast"], played.window, recording):
        playback = play(recording, by_curves(recording, forecast), seed=seed)
        share = shares(playback.node_load(recording), recording.capacity)
        found[name] = figures_of(share, playback.unplaced, {}, recording.hot, recording.assumed)
    return found


def other_curves(
    forecast: CurveForecast, window: ReplayWindow, recording: Recording
) -> Iterator[tuple[str, CurveForecast]]:
    """Yield the forecast with each of the other curves in place of the one that placement weighs."""
    model = forecast.model
    if model is None:
        return

    share = model.load_share(recording.replicas_at_start())
    # Pods of Jobs, and services that nothing was measured of, keep what is expected of them.
    stays = np.isfinite(forecast.run_seconds) | np.isnan(model.usage_day_type).all(axis=(1, 2, 3))

    def with_usage(usage: Floats) -> CurveForecast:
        felt = window.cut(np.nan_to_num(model.felt(usage, window.days, share)))
        curve = np.where(stays[:, None, None], forecast.mean, felt)
        return replace(forecast, curves=curve[:, :, None], curve_weights=np.ones(1))

    yield "expected", replace(forecast, curves=forecast.mean[:, :, None], curve_weights=np.ones(1))
    for level in LEVELS:
        yield f"half hours, {level:g}", with_usage(model.usage_at(level, window.days))
    for quantile in PEAK_QUANTILES:
        yield f"daily peak, {quantile:g}", with_usage(raised_to_peaks(model, quantile, window.days))


def raised_to_peaks(model: PeakModel, quantile: float, days: tuple[date, ...]) -> Floats:
    """Return expected usage, each day scaled to a quantile of its peak: (n_services, n_resources, n_days, 48).

    quantile : one of PEAK_QUANTILES
    """
    usage, at = model.usage(days), PEAK_QUANTILES.index(quantile)
    peaks = np.stack([model.service_peaks(day)[:, :, at] for day in days], axis=2)
    with np.errstate(invalid="ignore", divide="ignore"):
        factor = peaks / usage.max(axis=3)  # (n_services, n_resources, n_days)
    return usage * np.where(np.isfinite(factor), factor, 1.0)[..., None]
