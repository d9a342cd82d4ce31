"""How much of what should have been measured was: per resource and day."""

from __future__ import annotations

import numpy as np

from forecast.arrays import Bools, Floats
from forecast.history import History
from forecast.resources import RESOURCES


def measured_share(history: History) -> Floats:
    """Measured share of the half hours in which a service had pods: (n_resources, n_days), NaN = no service had any."""
    expected = _expected(history)  # (n_services, n_days, 48)
    n_expected = expected.sum(axis=(0, 2))
    measured = (np.isfinite(history.usage_per_pod) & expected[:, None]).sum(axis=(0, 3))  # (n_resources, n_days)
    return np.where(n_expected > 0, measured / np.maximum(n_expected, 1), np.nan)


def gap_slots(history: History) -> dict[str, int]:
    """Half hours of services that were not measured on the last day; resources that never are, are absent."""
    expected = _expected(history)[:, -1]  # (n_services, 48)
    return {
        RESOURCES[index].name: int((expected & ~np.isfinite(history.usage_per_pod[:, index, -1])).sum())
        for index in _measured_at_all(history)
    }


def expected_slots(history: History) -> dict[str, int]:
    """Half hours of the last day in which services had pods, of which `gap_slots` are some; of the same resources."""
    n_expected = int(_expected(history)[:, -1].sum())
    return {RESOURCES[index].name: n_expected for index in _measured_at_all(history)}


def _measured_at_all(history: History) -> list[int]:
    """Indices of resources that somebody has measured on some day."""
    ever: Bools = np.any(np.isfinite(history.usage_per_pod), axis=(0, 2, 3))  # (n_resources,)
    return [index for index in range(len(RESOURCES)) if ever[index]]


def _expected(history: History) -> Bools:
    """When a service had pods, as seen, or as last seen where nothing at all was: (n_services, n_days, 48)."""
    replicas = history.replicas.reshape(len(history.services), -1)
    known = np.isfinite(replicas)
    last_known = np.maximum.accumulate(np.where(known, np.arange(replicas.shape[1]), -1), axis=1)
    seen = np.take_along_axis(replicas, np.maximum(last_known, 0), axis=1)
    expected: Bools = (last_known >= 0) & (np.nan_to_num(seen) > 0)
    return expected.reshape(history.replicas.shape)
