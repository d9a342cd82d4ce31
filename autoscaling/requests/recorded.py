"""Recommendations from recorded days: the forecast knows what was before the window, the risk comes from the window."""

from __future__ import annotations

import warnings
from typing import Final

import numpy as np

from autoscaling.requests.use import ServiceUse, use_of
from forecast.history import History
from forecast.resources import CPU, MEMORY
from scorer.replay.preparation import Prepared

_MEMORY_DAYS: Final = 14
"""Days back whose highest memory counts: older peaks are of versions that no longer run."""


def recorded_use(history: History, prepared: Prepared, *, rule: str = "forecast") -> ServiceUse:
    """What was known before the window, by a forecast of `prepared`. history: all of it, as `prepare` got it"""
    recording, window, forecast = prepared.recording, prepared.window, prepared.forecasts[rule]
    known = history.before(window.first_day)
    usage = known.usage_per_pod[:, [CPU, MEMORY]]  # (n_services, 2, n_days, 48)
    first = recording.first_requests()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # services that were not measured
        seen = np.nanmax(usage[:, 1, -_MEMORY_DAYS:].astype(np.float64), axis=(1, 2), initial=-np.inf)
    return use_of(
        forecast,
        window,
        history.calendar,
        history.services,
        requests=np.where(first > 0, first, recording.service_requests),
        seen_memory=np.where(np.isfinite(seen), seen, np.nan),
        measured=np.asarray(np.isfinite(usage).any(axis=(2, 3))),
        capacity=recording.known_capacity,
        allocatable=recording.allocatable,
    )
