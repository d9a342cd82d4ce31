"""Requests as the recommender of the VerticalPodAutoscaler would set them: a rival.

Formulas of kubernetes/autoscaler, vertical-pod-autoscaler/pkg/recommender (model/aggregations_config.go,
util/histogram.go, logic/recommender.go) with their defaults: samples go into a histogram of exponential buckets (ratio
1.05; first 0.01 cores or 10 MB), their weight halves every 24 hours; the target is the end of the bucket with the 0.9
quantile, plus 15 %. Samples of CPU are usage; of memory the peaks of the last eight days. At least 25m and 250 MiB. The
real one sees a sample a minute, this one half hours; weights by request are the same for all pods of a service.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from base.arrays import AnyFloats, Floats
from forecast.history import History
from forecast.resources import CPU, MEMORY

_RATIO: Final = 1.05
_FIRST: Final = (0.01, 1e7)
_LEAST: Final = (0.025, 250 * 2.0**20)
_QUANTILE: Final = 0.9
_MARGIN: Final = 1.15
_MEMORY_DAYS: Final = 8


def vpa_requests(history: History, today: Floats) -> Floats:
    """Cores and bytes of one pod of each service, (n_services, 2); today's where nothing was measured.

    history : what was known
    """
    usage = history.usage_per_pod.astype(np.float64)  # (n_services, n_resources, n_days, 48)
    n_services, _, n_days, n_slots = usage.shape
    age = np.arange(n_days * n_slots)[::-1] / n_slots  # days
    found = np.array(today, dtype=np.float64)
    for service in range(n_services):
        cpu = _target(usage[service, CPU].reshape(-1), age, _FIRST[0])
        with np.errstate(invalid="ignore"):
            peaks = np.nan_to_num(usage[service, MEMORY], nan=-np.inf).max(axis=1)[-_MEMORY_DAYS:]
        memory = _target(np.where(np.isfinite(peaks), peaks, np.nan), np.arange(float(len(peaks)))[::-1], _FIRST[1])
        for column, value in enumerate((cpu, memory)):
            if np.isfinite(value):
                found[service, column] = max(_MARGIN * value, _LEAST[column])
    return found


def _target(samples: AnyFloats, age_days: AnyFloats, first: float) -> float:
    """End of the bucket with the quantile; NaN = no samples."""
    known = np.isfinite(samples)
    if not known.any():
        return float("nan")
    # Starts of buckets: 0, first, first (1 + 1.05), ...: first * (1.05 ** n - 1) / 0.05
    bucket = np.floor(np.log1p(np.maximum(samples[known], 0.0) * (_RATIO - 1) / first) / np.log(_RATIO)).astype(int)
    weights = np.bincount(bucket, weights=0.5 ** age_days[known])
    reached = int(np.searchsorted(np.cumsum(weights), _QUANTILE * weights.sum()))
    return float(first * (_RATIO ** (reached + 1) - 1) / (_RATIO - 1))
