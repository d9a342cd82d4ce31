"""The rules by curves with one difference: once the pods of a release have their nodes, some of them change places.

`last_week`, `forecast` and `oracle` of a replay place one pod after the other, as the services do.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from base.arrays import Floats, Ints
from cluster.predicted.placed_together import FilledNodes, Release, rearranged
from scorer.replay.curves import CurveForecast, JobPods
from scorer.replay.replay_rules import ByCurves, ReplayedPod, ReplayState


@runtime_checkable
class PlacesTogether(Protocol):
    """A rule that looks at its pods once more when all of a half hour have nodes.

    most  : pods that it looks at, those placed last; the others were there before the release
    batch : pods after which it looks at them, and again after as many more
    """

    most: int
    batch: int

    def rearrange(self, pods: Sequence[ReplayedPod], nodes: Ints, state: ReplayState) -> Ints:
        """Where the pods go instead: (n_pods,). They are on `nodes` now, in `state` and by `added`."""


class ByCurvesTogether(ByCurves):
    """Places by curves one after the other, and exchanges nodes after each batch: a rule of PlacesTogether."""

    def __init__(
        self,
        forecast: CurveForecast,
        capacity: Floats,
        *,
        jobs: JobPods | None = None,
        most: int = sys.maxsize,
        batch: int = sys.maxsize,
        spreads: bool = False,
    ) -> None:
        """spreads: pods of a service do not come to crowd on a node, see FilledNodes"""
        super().__init__(forecast, capacity, jobs=jobs)
        self.most, self.batch, self._spreads = most, batch, spreads

    def rearrange(self, pods: Sequence[ReplayedPod], nodes: Ints, state: ReplayState) -> Ints:
        profiles, profile = np.unique([self._profile(pod.service, self._end(pod)) for pod in pods], return_inverse=True)
        release = Release(
            usage=np.stack([self._load.usage_of(one) for one in profiles.tolist()]),
            profile=profile,
            requests=np.stack([pod.requests for pod in pods]),
            node=nodes,
        )
        every = np.arange(self._load.n_nodes)
        filled = FilledNodes(
            share=self._load.share(every),
            per_capacity=self._load.per_capacity(every),
            free=state.allocatable - state.requested,
            point_weights=self._load.point_weights,
            alike=self._load.pods_of(profiles.tolist())[every] if self._spreads else None,
        )
        return rearranged(release, filled)
