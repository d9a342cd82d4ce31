"""The error of the predicted load of the cluster, to decide whether two starts differ.

The cluster is taken as one large node (forecast/composition.py), with c pods of service s:

    variance(t) = sum_s (c own_s(t)^2 + c^2 shared_s(t)^2) + (cluster_std * mean(t))^2

Errors of the nodes' bases average out over the nodes and are left out. So are pods of runs: they have ended by most of
the starts that are compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final

import numpy as np

from base.arrays import Floats, Ints
from cluster.degradation import widening
from cluster.predicted.cluster import PredictedCluster
from cluster.predicted.profiles import ProfileKey
from cluster.tracking import TrackedCluster
from forecast.calendar import SLOTS_PER_DAY
from forecast.resources import RESOURCES
from kube.objects.objects import NodeInfo
from scheduler.profiles.job.valley.expected_load import usable_rows

_REFRESH_SECONDS: Final = 600.0
_NODES_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class ForecastError:
    """Standard deviation of the cluster's load, in parts.

    of_pods : (n_resources, 48) base units, by half hour of the day
    common  : (n_resources,) share of the load
    """

    of_pods: Floats
    common: Floats

    def of_share(self, share: Floats, capacity: Floats, slots: Ints) -> Floats:
        """Return (n_resources, n_points) shares of capacity.

        share : likewise, the mean; slots: (n_points,) half hour of the day of each point
        """
        per_capacity = np.where(capacity > 0, 1 / np.where(capacity > 0, capacity, 1.0), 0.0)
        return np.asarray(
            np.hypot(self.of_pods[:, slots] * per_capacity[:, None], self.common[:, None] * np.maximum(share, 0.0))
        )


class ClusterErrors:
    """Made anew for another model or day, and every ten minutes: pods come and go, but the sum hardly changes."""

    def __init__(
        self, reading: Callable[[], AbstractContextManager[TrackedCluster]], is_ours: Callable[[NodeInfo], bool]
    ) -> None:
        """reading: the tables under their lock; is_ours: nodes that jobs may use."""
        self._reading, self._is_ours = reading, is_ours
        self._of: PredictedCluster | None = None
        self._made: ForecastError | None = None
        self._at = 0.0

    def of(self, predicted: PredictedCluster, now: float) -> ForecastError | None:
        """The error of these tables. None = others came in between. now: unix seconds."""
        if predicted is not self._of or not 0 <= now - self._at < _REFRESH_SECONDS:
            counted = self._count(predicted)
            if counted is None:
                return None
            self._made, self._of, self._at = _error(predicted, *counted), predicted, now
        return self._made

    def _count(self, predicted: PredictedCluster) -> tuple[list[ProfileKey], Floats, Floats] | None:
        """Profiles of the pods on nodes that jobs may use, how many pods of each, and replicas of their services."""
        pods: Counter[int] = Counter()
        with self._reading() as cluster:
            if cluster.predicted is not predicted:
                return None
            rows = usable_rows(cluster, predicted, self._is_ours).tolist()
        for start in range(0, len(rows), _NODES_AT_ONCE):
            with self._reading() as cluster:
                if cluster.predicted is not predicted:
                    return None
                for row in rows[start : start + _NODES_AT_ONCE]:
                    pods.update(predicted.load.pods_on(row))
        with self._reading():
            numbers = [number for number in pods if predicted.keys[number].run is None]
            keys = [predicted.keys[number] for number in numbers]
            replicas = np.array([predicted.replicas_used(number) for number in numbers], dtype=np.float64)
        return keys, np.array([pods[number] for number in numbers], dtype=np.float64), replicas


def _error(predicted: PredictedCluster, keys: list[ProfileKey], pods: Floats, replicas: Floats) -> ForecastError:
    model, today = predicted.profiles.model, predicted.horizon.today
    own, shared = predicted.profiles.std_of(keys, replicas, today)  # (n_keys, n_resources, 48)
    variance = np.zeros((len(RESOURCES), SLOTS_PER_DAY))
    variance += np.einsum("k,krs->rs", pods, own.astype(np.float64) ** 2)
    variance += np.einsum("k,krs->rs", pods**2, shared.astype(np.float64) ** 2)
    widen = widening((today - model.first_day).days)
    return ForecastError(widen * np.sqrt(variance), widen * model.cluster_std.astype(np.float64))
