"""Clusters with cards of several models, what is scarce among them, and pods placed as the cycle places them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from cluster.degradation import Level
from kube.objects.objects import NodeInfo, PodInfo
from placement.card_types.card_types import card_plugins
from placement.filters.catalogue import standard_filters
from placement.filters.filter import Filter
from placement.node_rule_settings import CardOptions
from placement.plugins import NodePreference
from placement.policies.policy import Policy
from scheduler.cycle.placing import UnitPlacer
from scorer.options import ScorerOptions
from scorer.scoring_policy import scoring_policy
from testing.constants import with_constants
from tests.placement.devices.device_world import DeviceWorld, card_pod

TYPE, PREFERRED = "forecast-scheduler.io/gpu-type", "forecast-scheduler.io/gpu-type-preferred"


def typed(name: str, required: str = "", *, preferred: str = "", n: int = 1, **fields: Any) -> PodInfo:
    """A pod that wants n whole cards, and says of which types."""
    said = ({TYPE: required} if required else {}) | ({PREFERRED: preferred} if preferred else {})
    return replace(card_pod(name, n=n, said=said), **fields)


def pods(count: int, required: str = "", *, prefix: str = "p", **fields: Any) -> list[PodInfo]:
    return [typed(f"{prefix}-{i}", required, **fields) for i in range(count)]


def names(world: DeviceWorld, filters: Iterable[Filter], pod: PodInfo) -> set[str]:
    """Nodes that pass."""
    passes = world.state.alive.copy()
    for one in filters:
        for rejection in one.filter(pod, world.view):
            passes &= ~rejection.nodes
    return {world.state.names[row] for row in passes.nonzero()[0].tolist()}


class CardWorld(DeviceWorld):
    """`now` is what everybody takes for it. What is scarce is looked at when `look` is called."""

    def __init__(self, nodes: Iterable[NodeInfo] = (), pods: Iterable[PodInfo] = (), **options: Any) -> None:
        super().__init__(nodes, pods)
        self.now = 1_000.0
        self.card_options = with_constants(CardOptions(), **options)
        made = card_plugins(self.state, self.table, self.card_options, clock=lambda: self.now)
        self.demand, self.scarcity, self.plugin = made.demand, made.scarcity, made.types
        self.cluster.listeners.append(self.demand.apply)
        self.filters: tuple[Filter, ...] = (*standard_filters(), self.plugin)
        self.preferences: tuple[NodePreference, ...] = (self.plugin,)

    def look(self) -> dict[str, float]:
        """Scarcity by model."""
        self.scarcity.advance()
        latest = self.scarcity.latest
        return dict(zip(latest.models, latest.scarcity.round(6).tolist(), strict=True))

    def place(self, pods: Sequence[PodInfo], *, one_by_one: bool = False) -> list[str]:
        """Nodes of those that got one, the first ones; they are assumed there."""
        self.put(*pods)
        placer = UnitPlacer(self.view, self.cluster, Level.REQUESTS, until=1e9, one_by_one=one_by_one)
        placer.preferences = self.preferences
        placed = placer.place(pods, self.filters, Policy(scoring_policy(ScorerOptions())))
        return [self.state.names[row] for row in placed.rows]
