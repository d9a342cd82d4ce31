"""Was what the model in use knows still measured on the days since its cut-off? Pure.

A query that broke leaves no evidence against a new model, which would then replace what is known by priors.
"""

from __future__ import annotations

from datetime import date

import numpy as np

from forecast.arrays import Bools, Floats
from forecast.history import History
from forecast.model import PeakModel
from trainer.gate.node_evidence import node_only

_DAYS_LOOKED_AT = 28


def measured_share(history: History, current: PeakModel, days: tuple[date, ...]) -> Floats:
    """Share of the half hours of pods, of services that `current` knows usage of, that was measured: (n_resources,).

    For resources that only nodes are measured for, the share of the nodes' half hours. NaN: nothing was to be measured.
    """
    index = [history.days.index(day) for day in days]
    row = {service: number for number, service in enumerate(current.services)}
    found = np.array([row.get(service, -1) for service in history.services], dtype=np.int64)
    knows: Bools = np.all(np.isfinite(current.usage_dated), axis=(2, 3))  # (n_model_services, n_resources)
    known = np.zeros((len(found), knows.shape[1]), dtype=np.bool_)
    known[found >= 0] = knows[found[found >= 0]]
    pods = np.nan_to_num(history.replicas[:, index].astype(np.float64))  # (n_services, n_days, 48)
    measured = np.isfinite(history.usage_per_pod[:, :, index])
    there = np.einsum("sdt,sr->r", pods, known)
    seen = np.einsum("sdt,srdt,sr->r", pods, measured, known)
    share: Floats = np.where(there > 0, seen / np.maximum(there, 1e-300), np.nan)
    by_node = node_only(history, _DAYS_LOOKED_AT)
    of_nodes = np.isfinite(history.node_usage[:, :, index]).mean(axis=(0, 2, 3)) if len(history.nodes) else share
    return np.where(by_node & np.isfinite(share), of_nodes, share)
