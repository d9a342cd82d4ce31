"""What the checks look at: the history, its last weeks, what cleaning removed, and the load of services and nodes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from base.arrays import AnyFloats, Bools, Floats
from forecast.cold_start import BORROWED_DAYS
from forecast.history import History
from forecast.resources import CPU
from forecast.usage_limits import CutSeries
from trainer.history.cleaning import CleaningReport

RECENT_DAYS: Final = BORROWED_DAYS
"""No predictor needs more than four weeks, so the shape of older days limits no forecast of today."""

LOAD_DAYS: Final = 7
"""A service weighs what it used on these last days: one that is gone limits nothing."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A history with what the checks have in common.

    recent       : the last `RECENT_DAYS` of the history
    alive        : (n_services,) whether the service had pods on one of the last `LOAD_DAYS` days
    service_load : (n_services, n_resources) mean usage of all pods of the service, base units; 0 = none known
    node_load    : (n_nodes, n_resources) mean usage of the node, base units; 0 = none known
    """

    history: History
    recent: History
    report: CleaningReport
    cut: Sequence[CutSeries]
    alive: Bools
    service_load: Floats
    node_load: Floats

    @classmethod
    def of(cls, history: History, report: CleaningReport, cut: Sequence[CutSeries] = ()) -> Evidence:
        """report, cut: from the `HistoryFiles` that read the history"""
        recent = history.before(history.n_days, keep=RECENT_DAYS)
        pods = recent.replicas
        with_data = np.flatnonzero(np.isfinite(pods).any(axis=(0, 2)))[-LOAD_DAYS:]
        n_resources = history.usage_per_pod.shape[1]
        service_load = np.zeros((len(history.services), n_resources))
        node_load = np.zeros((len(history.nodes), n_resources))
        for r in range(n_resources):
            total = service_total(recent, r)
            service_load[:, r] = _level(total[:, with_data], total)
            of_nodes = recent.node_usage[:, r]
            node_load[:, r] = _level(of_nodes[:, with_data], of_nodes)
        return cls(
            history=history,
            recent=recent,
            report=report,
            cut=cut,
            alive=np.asarray((pods[:, with_data] > 0).any(axis=(1, 2))),
            service_load=service_load,
            node_load=node_load,
        )

    def cluster_total(self) -> Floats:
        """(n_days, 48) usage of all services together, of CPU or else of the first resource that is measured; NaN
        where there is no data."""
        measured = np.flatnonzero(self.service_load.sum(axis=0) > 0)
        resource = int(measured[0]) if len(measured) else CPU
        total = service_total(self.history, resource)
        return np.where(np.isfinite(total).any(axis=0), np.nansum(total, axis=0), np.nan)


def service_total(history: History, resource: int) -> Floats:
    """Usage of all pods of each service: (n_services, n_days, 48) base units; 0 = no pods, NaN = not measured."""
    pods = history.replicas.astype(np.float64)
    return np.where(pods == 0, 0.0, history.usage_per_pod[:, resource] * pods)


def _level(last_days: AnyFloats, all_days: AnyFloats) -> Floats:
    """Mean of each row over the last days, or else over all of them, 0 if nothing is known: (n_rows,)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # rows without any value
        last = np.nanmean(last_days, axis=(1, 2), dtype=np.float64)
        level = np.where(np.isfinite(last), last, np.nanmean(all_days, axis=(1, 2), dtype=np.float64))
    return np.nan_to_num(level)
