"""What a pod that runs for a while only is expected to use meanwhile, whenever that is: by a model, in one figure each.

The model says what one pod of a Job owner uses while it runs (`run_usage`). Where it does not, the half hours in which
the service's pods ran say it: a pod that starts at another hour uses as much, so the highest of these holds for all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from base.arrays import Floats
from forecast.model import PeakModel
from forecast.resources import MEMORY, RESOURCES

_WEEK = 7


@dataclass(frozen=True, slots=True)
class RunLevel:
    """(n_resources,) each, base units: what a node feels of one pod (NaN = never measured), and its error (own, and
    what its service's pods share; 0 = not known)."""

    mean: Floats
    own_std: Floats
    shared_std: Floats


class RunLevels:
    """Levels computed when they are first asked for, by any thread: a second thread computes the same again."""

    def __init__(self, model: PeakModel) -> None:
        self._model = model
        self._of: dict[int, RunLevel] = {}  # at most one for each of the model's services
        ratio = model.request_ratio.astype(np.float64).reshape(len(RESOURCES), -1)
        self._ratio = np.nan_to_num(ratio)  # usage per requested unit, day types and half hours in one axis
        self._cost = np.nan_to_num(model.per_pod_cost.astype(np.float64)).reshape(len(RESOURCES), -1)

    def of(self, row: int) -> RunLevel:
        """Of the service in a row of the model: in the half hours of its first week with any pods of it, else in all.

        At the replica count that the model refers to: how much work a run has does not depend on others.
        """
        level = self._of.get(row)
        if level is None:
            level = self._of[row] = self._made(row)
        return level

    def from_requests(self, cpu_cores: float, memory_bytes: float) -> Floats:
        """The highest of the usage that pods with such requests are expected to have: (n_resources,), finite."""
        unit = np.full((len(RESOURCES), 1), cpu_cores)
        unit[MEMORY] = memory_bytes
        return np.asarray((unit * self._ratio + self._cost).max(axis=1))

    def _made(self, row: int) -> RunLevel:
        model = self._model.of_services(np.array([row]))
        days = model.calendar.horizon(model.first_day, _WEEK)
        usage = model.usage_on_node(days)[0].reshape(len(RESOURCES), -1)
        there = np.nan_to_num(model.replicas(days)[0]) > 0  # (n_days, 48)
        if not there.any():
            there[:] = True
        # A resource that was measured only where no pods are expected is not unknown.
        mean = _highest(usage[:, there.ravel()])
        mean = np.where(np.isfinite(mean), mean, _highest(usage))
        correction = np.nan_to_num(model.correction[0].astype(np.float64), nan=1.0)
        known = model.run_usage[0].astype(np.float64) * correction + self._cost.max(axis=1)
        mean = np.where(np.isfinite(known), known, mean)
        hours = there.any(axis=0)
        own, shared = (np.nan_to_num(_highest(std[0][:, hours])) for std in (model.own_std, model.shared_std))
        return RunLevel(mean, own * correction, shared * correction)


def _highest(values: Floats) -> Floats:
    """Along the last axis; NaN = there is none."""
    highest = np.where(np.isfinite(values), values, -np.inf).max(axis=-1).astype(np.float64)
    return np.where(np.isfinite(highest), highest, np.nan)
