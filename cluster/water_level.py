"""How full each pool of nodes is by requests, and how much stacking counts there: a full pool stacks while an empty one
next to it spreads. `scorer.scores.spread_or_stack` scores by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from base.arrays import AnyFloats, Bools, Floats
from base.setting_group import SettingGroup
from cluster.predicted.unknown_capacity import limited
from cluster.tables.state import ClusterState

Share = Annotated[float, Field(ge=0, le=1)]


class WaterLevels(SettingGroup):
    """Levels of the score spread_or_stack: requested shares of the pool's allocatable (docs/understand/placement.md).

    The middle between lower and upper should not be above 1 - (largest pod / node): spread up to there, no node has
    room for such a pod any more. The defaults keep room for pods of half a node (benchmarks/water_level.py).
    """

    lower: Share = 0.4
    """Share of the pool of nodes requested up to which pods are spread. Below `upper`."""

    upper: Share = 0.6
    """Share of the pool requested from which pods are stacked. Between both levels the preference goes over
    linearly."""

    hysteresis: ClassVar[float] = 0.05
    """Share by which the pool has to empty before stacking gives way: a few pods that come and go change nothing."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.lower < self.upper:
            raise ValueError("lower must be below upper")
        return self


@dataclass(frozen=True, slots=True)
class Stacking:
    """By which Kubernetes resources a pool fills up, weighted, and between which levels stacking takes over."""

    request_weights: Mapping[str, float] = field(default_factory=lambda: {"cpu": 1.0, "memory": 1.0})
    levels: WaterLevels = field(default_factory=WaterLevels)


class StackWeights:
    """The stack weight of each pool, each with a hysteresis of its own. A pool starts with spreading."""

    def __init__(self, stacking: Stacking) -> None:
        self._stacking = stacking
        self._weights: dict[str, float] = {}
        self.levels: Mapping[str, float] = {}
        """Water level of each pool: how full its nodes are by requests together, 0..1."""

    def of(self, pool: str) -> float:
        """0 = spread only, 1 = stack only; 0 for a pool that has no nodes yet."""
        return self._weights.get(pool, 0.0)

    def follow(self, state: ClusterState, pools: Mapping[str, Bools]) -> None:
        """Move each weight to the water level of its pool. pools: (n_rows,) nodes of each."""
        kinds, bounds = self._request_weights(state), self._stacking.levels
        requested, allocatable = state.requested, state.allocatable
        self.levels = {pool: water_level(requested[nodes], allocatable[nodes], kinds) for pool, nodes in pools.items()}
        self._weights = {pool: next_stack_weight(self.of(pool), level, bounds) for pool, level in self.levels.items()}

    def _request_weights(self, state: ClusterState) -> Floats:
        weights = np.zeros(len(state.kinds))
        for kind, weight in self._stacking.request_weights.items():
            if kind in state.kinds:
                weights[state.kinds[kind]] = weight
        return weights


def water_level(requested: AnyFloats, allocatable: AnyFloats, weights: AnyFloats) -> float:
    """How full nodes are by requests together, 0..1: as full as their fullest resource.

    requested, allocatable : (n_nodes, n_kinds), unknown or no allocatable = the node does not count for the resource
    weights                : (n_kinds,), 0 = not looked at
    """
    level = 0.0
    for kind in np.flatnonzero(weights > 0):
        counted = limited(allocatable[:, kind])
        if (there_is := float(allocatable[counted, kind].sum())) > 0:
            # A node is full at most: what a pod requests beyond it takes nothing of the others.
            asked = np.minimum(requested[counted, kind], allocatable[counted, kind]).sum()
            level = max(level, float(asked) / there_is)
    return min(level, 1.0)


def next_stack_weight(previous: float, level: float, levels: WaterLevels) -> float:
    """How much stacking counts from now on, 0 = spread only, 1 = stack only.

        up(level) = clip((level - lower) / (upper - lower), 0, 1),   down(level) = up(level + hysteresis)
        weight    = previous, moved no further than into [up(level), down(level)]

    The play operator of hysteresis theory (Krasnosel'skii and Pokrovskii 1989, Systems with Hysteresis): continuous,
    and the same levels in the same order give the same weight however often it is asked. Start with previous = 0.
    """
    up = _ramp(level, levels)
    down = _ramp(level + levels.hysteresis, levels)
    return max(up, min(previous, down))


def _ramp(level: float, levels: WaterLevels) -> float:
    return min(max((level - levels.lower) / (levels.upper - levels.lower), 0.0), 1.0)
