"""Bounds follow what came: the 0.95 bounds as issued the nights before are held against the peaks since.

Adaptive conformal inference (Gibbs & Candès 2021, NeurIPS) in the form of Angelopoulos, Candès & Tibshirani 2023,
"Conformal PID control for time series prediction", eq. 3: after each night's model

    offset  +=  gain n / (n + 20) (share of the n peaks above their bound - 0.05)

n: the peaks of all days since that model, usually of one day. One offset for the services and one for the nodes of
each resource. What a rehearsal cannot know, a drift or a change of the cluster, moves them within days; a cluster that
stays as it was leaves them near 0. Days without a new model are one step: a bound that could not move misses on every
one of them for the same reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from base.arrays import Floats
from forecast.history import History
from forecast.issued_bounds import node_hits, service_hits
from forecast.model import PEAK_QUANTILES, PeakModel
from forecast.resources import RESOURCES

INFO = "bound_offsets"
"""Where a model keeps its offsets, in `PeakModel.info`."""

SERVICE_GAIN, NODE_GAIN = 1.5, 2.0
_PEAKS_OF_HALF_TRUST = 20.0
_LONGEST_DAYS = 7
"""A forecast of days further ahead was replaced before they came, or is too old to be judged by."""
_LIMIT = 1.5


@dataclass(frozen=True, slots=True)
class BoundOffsets:
    """services, nodes: (n_resources,); how they enter the bounds say `PeakForecaster.predict` and `of_node_z`."""

    services: Floats
    nodes: Floats

    @classmethod
    def none(cls) -> BoundOffsets:
        """Where no bound was issued yet."""
        return cls(np.zeros(len(RESOURCES)), np.zeros(len(RESOURCES)))

    @classmethod
    def of(cls, info: Mapping[str, Any]) -> BoundOffsets:
        """Those that a model was published with; 0 where it says nothing, or nothing that can be used."""
        known = info.get(INFO)
        known = known if isinstance(known, dict) else {}
        return cls(_numbers(known.get("services")), _numbers(known.get("nodes")))

    def to_info(self) -> dict[str, dict[str, float]]:
        """For `PeakModel.info`, by the names of the resources."""
        names = [resource.name for resource in RESOURCES]
        return {
            "services": dict(zip(names, self.services.round(4).tolist(), strict=True)),
            "nodes": dict(zip(names, self.nodes.round(4).tolist(), strict=True)),
        }

    def with_resource(self, other: BoundOffsets, resource: int) -> BoundOffsets:
        """The same, with those of one resource as `other` has them."""
        services, nodes = self.services.copy(), self.nodes.copy()
        services[resource], nodes[resource] = other.services[resource], other.nodes[resource]
        return BoundOffsets(services, nodes)

    def of_node_z(self, node_z: Floats) -> Floats:
        """node_z (n_resources, n_quantiles) with its bounds, the last quantile, times exp(offset)."""
        moved = node_z.copy()
        moved[:, -1] *= np.exp(self.nodes)
        return moved


def next_offsets(history: History, previous: PeakModel | None) -> BoundOffsets:
    """The offsets of the night before, moved by the days that came since its cut-off.

    history  : whole days; those from `previous.first_day` on were not known when its bounds were issued
    previous : the model that was in use; None = the first night
    """
    if previous is None:
        return BoundOffsets.none()
    offsets = BoundOffsets.of(previous.info)
    since = [i for i, day in enumerate(history.days) if 0 <= (day - previous.first_day).days < _LONGEST_DAYS]
    if not since:
        return offsets
    of_services = np.concatenate([service_hits(history, previous, index) for index in since])
    of_nodes = np.concatenate([node_hits(history, previous, index) for index in since])
    services = offsets.services + SERVICE_GAIN * excess_misses(of_services)
    nodes = offsets.nodes + NODE_GAIN * excess_misses(of_nodes)
    return BoundOffsets(np.clip(services, -_LIMIT, _LIMIT), np.clip(nodes, -_LIMIT, _LIMIT))


def excess_misses(hits: Floats) -> Floats:
    """Misses beyond those that a 0.95 bound allows, less where few were measured: (n_resources,).

    hits : (n, n_resources) 1, 0, NaN = unknown
    """
    counted = np.isfinite(hits).sum(axis=0)
    missed = (hits == 0).sum(axis=0) / np.maximum(counted, 1)
    trust = counted / (counted + _PEAKS_OF_HALF_TRUST)
    return np.asarray(trust * (missed - (1 - PEAK_QUANTILES[-1])), dtype=np.float64)


def _numbers(known: Any) -> Floats:
    known = known if isinstance(known, dict) else {}
    values = [known.get(resource.name, 0.0) for resource in RESOURCES]
    usable = [float(v) if isinstance(v, int | float) and np.isfinite(v) else 0.0 for v in values]
    return np.clip(np.array(usable, dtype=np.float64), -_LIMIT, _LIMIT)
