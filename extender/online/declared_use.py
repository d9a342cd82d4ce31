"""What pods say they use beyond what they request, as long as no model knows them.

A low-priority pod requests little, so that it fits beside others, and may use much. Until the trainer has seen its
service the forecast takes it at its request; its annotation `forecast-scheduler.io/virtual-request` says better. Of
services that the model knows the forecast has the curve, and nothing is added.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from extender.online.upper_bounds import GAP_RESOURCES
from forecast.arrays import Floats
from forecast.errors import InputError
from forecast.resources import CPU, MEMORY
from forecast.service_key import ServiceKey
from scorer.cluster.changes import Change, PodChange, one_by_one
from scorer.cluster.objects import PodInfo
from scorer.cluster.state import ClusterState
from scorer.follower import NodesAndPodsOnly
from scorer.live.virtual_request import VIRTUAL_REQUEST_ANNOTATION
from scorer.predicted.capacity import LARGEST, amounts_in, amounts_row
from scorer.predicted.growing import grown
from scorer.predicted.profiles import Profiles

__all__ = ["DeclaredUse", "declared"]

_REQUESTED = {CPU: "cpu", MEMORY: "memory"}


def declared(pod: PodInfo) -> Floats:
    """(len(GAP_RESOURCES),) what the pod says it uses, base units; NaN where it says nothing that can be read."""
    annotation = pod.annotations.get(VIRTUAL_REQUEST_ANNOTATION)
    try:
        said = amounts_row(amounts_in(annotation or ""))
    except InputError:
        return np.full(len(GAP_RESOURCES), np.nan)
    return np.asarray(np.minimum(said, LARGEST)[list(GAP_RESOURCES)])


class DeclaredUse(NodesAndPodsOnly):
    """Sums by node, kept up to date pod by pod. Implements scorer.follower.Follower; attach it without kinds."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._pods: dict[str, tuple[int, ServiceKey, Floats]] = {}  # by UID: row, service, beyond its request
        self._profiles: Profiles | None = None  # of the model whose services are left out
        self._sums = np.zeros((0, len(GAP_RESOURCES)))
        self.rebuild()

    def beyond_forecast(self, profiles: Profiles | None) -> Floats:
        """(n_rows, len(GAP_RESOURCES)) base units. profiles: of the model in use, whose services have curves."""
        if profiles is not self._profiles:
            self._profiles = profiles
            self._sum_up()
        self._sums = grown(self._sums, self._state.n_rows)
        return self._sums[: self._state.n_rows]

    def apply(self, changes: Sequence[Change]) -> None:
        """See Follower."""
        for change in one_by_one(changes):
            if isinstance(change, PodChange):
                self._forget(change.pod.uid)
                if change.after is not None:
                    self._note(change.pod, change.after.node)

    def rebuild(self) -> None:
        """See Follower."""
        self._pods.clear()
        for uid, seat in self._state.seat_of.items():
            self._note(self._state.pods[uid], seat.node)
        self._sum_up()

    def _note(self, pod: PodInfo, row: int) -> None:
        if VIRTUAL_REQUEST_ANNOTATION not in pod.annotations:
            return
        requested = np.array([pod.requests.get(_REQUESTED[resource], 0.0) for resource in GAP_RESOURCES])
        beyond = np.nan_to_num(np.maximum(declared(pod) - requested, 0.0))
        if beyond.any():
            one = self._pods[pod.uid] = (row, self._state.service_key(pod), beyond)
            self._add(one, 1.0)

    def _forget(self, uid: str) -> None:
        one = self._pods.pop(uid, None)
        if one is not None:
            self._add(one, -1.0)

    def _add(self, one: tuple[int, ServiceKey, Floats], sign: float) -> None:
        row, service, beyond = one
        if self._profiles is None or not self._profiles.knows(service):
            self._sums = grown(self._sums, row + 1)
            self._sums[row] += sign * beyond

    def _sum_up(self) -> None:
        self._sums[:] = 0.0
        for one in self._pods.values():
            self._add(one, 1.0)
