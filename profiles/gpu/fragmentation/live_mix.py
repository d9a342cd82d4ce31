"""The mix of pod shapes, learned from pods that exist and pods that came lately, waiting ones included.

    weight of a shape = sum over pods of 2^(-age / half-life)        age: since the pod was created

A pod counts once, however long it waits or runs, and goes on counting after it is gone. The typical pods of FGD (Weng
et al., "Beware of Fragmentation", USENIX ATC 2023, section 4.1) are known beforehand; here no operator has to list
them. Shapes that differ by less than a fifth in CPU or memory are one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from cluster.follower import NodesAndPodsOnly
from cluster.tables.changes import Change, PodChange, one_by_one
from cluster.tables.state import ClusterState
from kube.objects.objects import PodInfo
from profiles.gpu.fragmentation.pod_shapes import PodShape, ShapeMix

_LEAST_WEIGHT: Final = 1e-3
"""A pod that came ten half-lives ago."""

_KEPT: Final = 8
"""Shapes that are kept for each in the mix: one that weighs little today may be common tomorrow. Twice as many at most
between two times at which the lightest are forgotten."""

_STEPS_PER_DOUBLING: Final = 4


@dataclass(frozen=True, slots=True)
class MixOptions:
    """
    half_life   : seconds after which a pod that was created counts half
    most_shapes : shapes of pods in the mix, those that weigh most
    drift       : share of the mix that has to have changed before nodes are judged by a new one, which costs a cycle
    every       : seconds between two looks at whether the mix has changed
    """

    half_life: float = 86_400.0
    most_shapes: int = 128
    drift: float = 0.05
    every: float = 10.0


class LiveMix(NodesAndPodsOnly):
    """Implements Follower; under the lock of the tables."""

    def __init__(
        self,
        state: ClusterState,
        shape_of: Callable[[PodInfo], PodShape | None],
        options: MixOptions = MixOptions(),
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """
        shape_of : None = the pod is nothing to the GPU nodes
        clock    : unix seconds
        """
        self._state, self._shape_of, self._options, self._clock = state, shape_of, options, clock
        self._weights: dict[PodShape, float] = {}  # as of `_origin`: no need to age them one by one
        self._origin = clock()
        self._counted: set[str] = set()
        self._mix: ShapeMix | None = None
        self._looked_at = -math.inf
        self.rebuild()

    def apply(self, changes: Sequence[Change]) -> None:
        for change in one_by_one(changes):
            if isinstance(change, PodChange):
                self._note(change.pod)

    def rebuild(self) -> None:
        """See Follower. What went before stays counted."""
        self._counted &= self._state.pods.keys()
        for pod in list(self._state.pods.values()):
            self._note(pod)

    def mix(self) -> ShapeMix | None:
        """The same object as long as it has hardly moved; None = no pod has come yet."""
        now = self._clock()
        if self._mix is not None and 0 <= now - self._looked_at < self._options.every:
            return self._mix
        self._looked_at = now
        self._forget_old(now)
        latest = self._made()
        if latest is not None and (self._mix is None or _moved(self._mix, latest) > self._options.drift):
            self._mix = latest
        return self._mix

    # Inside

    def _note(self, pod: PodInfo) -> None:
        if pod.uid not in self._state.pods:
            self._counted.discard(pod.uid)
            return
        if pod.uid in self._counted:
            return
        shape = self._shape_of(pod)
        if shape is None:
            return
        self._counted.add(pod.uid)
        now = self._clock()
        self._forget_old(now)
        weight = 2.0 ** ((min(pod.created, now) - self._origin) / self._options.half_life)
        shape = rounded(shape)
        self._weights[shape] = self._weights.get(shape, 0.0) + weight
        if len(self._weights) > 2 * _KEPT * self._options.most_shapes:
            self._weights = dict(self._heaviest(_KEPT * self._options.most_shapes))

    def _forget_old(self, now: float) -> None:
        """Move the origin, so that weights neither grow without bounds nor fade to nothing."""
        fade = 2.0 ** ((self._origin - now) / self._options.half_life)
        if fade > 0.5:
            return
        self._origin = now
        self._weights = {
            shape: weight * fade for shape, weight in self._weights.items() if weight * fade > _LEAST_WEIGHT
        }

    def _heaviest(self, number: int) -> list[tuple[PodShape, float]]:
        return sorted(self._weights.items(), key=lambda item: -item[1])[:number]

    def _made(self) -> ShapeMix | None:
        heaviest = self._heaviest(self._options.most_shapes)
        total = sum(weight for _, weight in heaviest)
        if total <= 0:
            return None
        return ShapeMix(tuple(shape for shape, _ in heaviest), np.array([weight / total for _, weight in heaviest]))


def rounded(shape: PodShape) -> PodShape:
    """CPU and memory down to one of four steps per doubling, thousandths to the next ten.

    Down, so that the shape fits wherever the pod fits: a pod that takes all cores of a node would fit nowhere.
    """
    return PodShape(
        cpu_milli=_step_down(shape.cpu_milli),
        memory_mib=_step_down(shape.memory_mib),
        count=shape.count,
        milli=-(-shape.milli // 10) * 10,
        models=shape.models,
    )


def _step_down(amount: int) -> int:
    if amount <= 0:
        return 0
    step = max(1, (1 << (amount.bit_length() - 1)) // _STEPS_PER_DOUBLING)
    return amount // step * step


def _moved(before: ShapeMix, after: ShapeMix) -> float:
    """Half the sum of differences: the share of the mix that is another now, 0..1."""
    weights = dict(zip(before.shapes, before.weight.tolist(), strict=True))
    moved = sum(abs(weights.pop(shape, 0.0) - weight) for shape, weight in zip(after.shapes, after.weight, strict=True))
    return float((moved + sum(weights.values())) / 2)
