"""What the predicted load of a node consists of: its pods as the tables count them, and what it uses besides."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from datetime import date

import numpy as np

from base.arrays import AnyFloats, Bools, Floats
from forecast.model import PeakModel


@dataclass(frozen=True, slots=True)
class PlacedPod:
    """A pod on a node.

    weight  : 1 = counts in what is predicted, 0 = does not (terminating, superseded, part of the node's base)
    present : it uses something now, whether or not it will be there in the evening; False = part of the base
    shadow  : row of the node on which its curve counts instead; what it uses now it uses on `node`. None = no other
    """

    node: int
    profile: int
    weight: float
    present: bool
    qos: int
    shadow: int | None = None

    @property
    def counts_on(self) -> int:
        """Row of the node whose predicted load it adds to."""
        return self.node if self.shadow is None else self.shadow


@dataclass(frozen=True, slots=True)
class Sums:
    """Copies for a check of what is kept in addition to the curves, and of its sources.

    now          : (n_nodes, n_resources); qos_memory: (n_nodes, 3); unknown_pods: of the whole cluster
    use_now      : (n_profiles, n_resources) of one pod; memory_peak: (n_profiles,) bytes
    known        : (n_profiles,) whether the model knows the service
    """

    now: Floats
    qos_memory: Floats
    unknown_pods: int
    use_now: Floats
    memory_peak: Floats
    known: Bools


class NodeBases:
    """Base load of nodes by name."""

    def __init__(self, model: PeakModel) -> None:
        self._model = model
        self._z = model.z_of_nodes()
        self._row_of = {name: row for row, name in enumerate(model.nodes)}
        capacity = model.node_capacity.astype(np.float64)
        with warnings.catch_warnings(), np.errstate(invalid="ignore", divide="ignore"):
            warnings.simplefilter("ignore", RuntimeWarning)  # a resource without capacity anywhere
            share = np.nanmedian(model.node_base / capacity[:, :, None, None], axis=0)  # (n_resources, 4, 48)
            share_std = np.nanmedian(model.node_base_std / capacity[:, :, None], axis=0)  # (n_resources, 48)
        self._lent = np.nan_to_num(share, posinf=0.0, neginf=0.0)
        self._lent_std = np.nan_to_num(share_std, posinf=0.0, neginf=0.0)

    def mean(self, node: str, capacity: AnyFloats, days: tuple[date, ...]) -> Floats:
        """Expected base of a node on local days: (n_resources, n_days * 48).

        capacity : (n_resources,) of the node, for one the model does not know
        """
        types = self._model.calendar.describe(days).day_type
        row = self._row_of.get(node)
        if row is None:
            profile = self._lent * np.nan_to_num(capacity)[:, None, None]
        else:
            profile = self._model.node_base[row].astype(np.float64)
        return profile[:, types].reshape(len(profile), -1)

    def z(self, node: str) -> Floats:
        """Standard deviations from its mean curve to its daily peak: (n_resources, n_quantiles)."""
        row = self._row_of.get(node)
        z = self._model.node_z.astype(np.float64) if row is None else self._z[row]
        return np.asarray(np.nan_to_num(z))

    def std(self, node: str, capacity: AnyFloats) -> Floats:
        """Its error: (n_resources, 48)."""
        row = self._row_of.get(node)
        if row is None:
            return self._lent_std * np.nan_to_num(capacity)[:, None]
        return np.asarray(self._model.node_base_std[row], dtype=np.float64)
