"""Usage that stops at a ceiling, so that demand above it is not in the history.

A CPU limit throttles a container in periods of 0.1 s. The history has means over half hours and no counter of
throttling: it shows a limit only where usage stays at it for whole half hours. That is clipping, and is found as in
inverter power (pvanalytics, `features.clipping.levels`): many values in one narrow level at the top, few below it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from base.arrays import AnyFloats, Floats
from forecast.calendar import SLOTS_PER_DAY
from forecast.quantiles import nan_quantile
from forecast.resources import CPU, RESOURCES
from trainer.doctor.evidence import Evidence
from trainer.doctor.finding import Finding, Kind, node_finding, service_finding

LEVEL_WIDTH: Final = 0.01
"""Width of the level at the top, as a share of the ceiling."""

LEAST_SHARE: Final = 0.05
"""Of the measured half hours that are at the ceiling: 72 minutes a day."""

_TOP_QUANTILE: Final = 0.999  # one wrong sample does not move the ceiling
_CROWDING = 2.0  # times as many values in the level as in the band of twice its width below; a smooth day has 1.4
_LOW, _LEAST_LOW = 0.8, 0.1  # a tenth is well below the ceiling: an even load is no limit
_LEAST_CORES = 0.01
_LEAST_SLOTS: Final = 7 * SLOTS_PER_DAY

FULL_NODE: Final = 0.95
_LEAST_FULL: Final = 0.01


def ceiling(usage: AnyFloats) -> tuple[Floats, Floats]:
    """The ceiling of each series, and the share of its values at it: (n_series,) each; NaN, 0 where there is none.

    usage : (n_series, n_values), NaN = not measured
    """
    top = nan_quantile(usage, _TOP_QUANTILE)
    n_known = np.isfinite(usage).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        height = usage / np.where(top > 0, top, np.nan)[:, None]
        at_top = (height >= 1 - LEVEL_WIDTH).sum(axis=1) / n_known
        below = ((height >= 1 - 3 * LEVEL_WIDTH) & (height < 1 - LEVEL_WIDTH)).sum(axis=1) / n_known
        low = (height < _LOW).sum(axis=1) / n_known
        found = (
            (n_known >= _LEAST_SLOTS) & (at_top >= LEAST_SHARE) & (at_top >= _CROWDING * below) & (low >= _LEAST_LOW)
        )
    return np.where(found, top, np.nan), np.where(found, at_top, 0.0)


def cpu_ceilings(evidence: Evidence) -> Finding | None:
    """Finds services whose pods stop at one level of CPU."""
    usage = evidence.recent.usage_per_pod[:, CPU]
    top, share = ceiling(usage.reshape(len(usage), -1))
    touched = np.zeros((len(usage), len(RESOURCES)), dtype=np.bool_)
    with np.errstate(invalid="ignore"):
        touched[:, CPU] = top >= _LEAST_CORES
    return service_finding(
        Kind.CPU_CEILING,
        evidence,
        touched,
        what=f"{{n}} use the same CPU at their top in {100 * LEAST_SHARE:g} % of half hours or more, as under a CPU "
        "limit (or with a fixed number of busy threads): demand above is not in the history",
        advice="divide rate(container_cpu_cfs_throttled_periods_total[5m]) by rate(container_cpu_cfs_periods_total[5m])"
        " of these pods; where it is above a few per cent, raise or remove limits.cpu and keep requests.cpu",
        detail=lambda s, _: f"{100 * share[s]:.0f} % of half hours at {top[s]:.3g} cores per pod",
    )


def full_nodes(evidence: Evidence) -> Finding | None:
    """Finds nodes whose CPU is used up now and then."""
    usage, capacity = evidence.recent.node_usage[:, CPU], evidence.recent.capacity_of_days[:, CPU]
    with np.errstate(invalid="ignore", divide="ignore"):
        n_full = (usage >= FULL_NODE * capacity[:, :, None]).sum(axis=(1, 2))
        share = n_full / np.maximum(np.isfinite(usage).sum(axis=(1, 2)), 1)
    touched = np.zeros((len(usage), len(RESOURCES)), dtype=np.bool_)
    touched[:, CPU] = share >= _LEAST_FULL
    return node_finding(
        Kind.FULL_NODES,
        evidence,
        touched,
        what=f"{{n}} use {100 * FULL_NODE:g} % of their CPU or more in {100 * _LEAST_FULL:g} % of half hours: their "
        "pods would have used more elsewhere",
        advice="forecasts of these pods are low until they ran on nodes with room: move some away (forecast-scheduler "
        "rebalance --plan), or add nodes (forecast-scheduler capacity --history DIR)",
        detail=lambda n, _: f"full in {100 * share[n]:.1f} % of half hours",
    )
