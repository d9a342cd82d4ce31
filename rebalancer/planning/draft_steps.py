"""A step of a plan: one move, or two that are worth it only together; and the draft, whose steps can be taken out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from base.arrays import Floats, Ints
from rebalancer.planning.draft_tables import PlanTables
from rebalancer.planning.heat import node_heat
from rebalancer.planning.targets import TargetFinder
from rebalancer.rebalance_settings import PlanningOptions

MayMove = Callable[[int, int, Sequence[tuple[int, int]]], bool]
"""Whether rules that other moves change allow a move: called with the pod, its target, and what moves before it."""

NOISE = 1e-3
"""Node half hours that the rounding of float32 may feign."""


@dataclass(frozen=True, slots=True)
class DraftStep:
    """Pods and their targets, in order: one or two."""

    moves: tuple[tuple[int, int], ...]


@dataclass(slots=True)
class Draft:
    """A plan in the making: tables, finder, and the steps that the tables hold."""

    tables: PlanTables
    finder: TargetFinder
    options: PlanningOptions
    may_move: MayMove | None = None
    steps: list[DraftStep] = field(default_factory=list)
    aversion: Floats | float = 0.0
    """(n_pods,) raises prices for a while, so that a search takes another way."""

    def price(self, pods: Ints) -> Floats:
        """(n,) what the move of each pod has to gain at least."""
        price = self.tables.problem.pods.cost[pods] + self.options.least_gain + NOISE
        return np.asarray(price + (self.aversion if isinstance(self.aversion, float) else self.aversion[pods]))

    def worth(self) -> float:
        """Return minus the heat that is left, less the price of all moves: higher is better."""
        pods = np.array([pod for step in self.steps for pod, _ in step.moves], dtype=np.int64)
        return float(-self.tables.heat.sum() - self.price(pods).sum())

    def relief(self, node: int, pods: Ints) -> Floats:
        """(n,) heat that the node loses if one of the pods leaves it."""
        tables = self.tables
        without = tables.share[node] - tables.usage(pods) * tables.inverse[node][:, None]
        margin = np.broadcast_to(tables.margin[node], without.shape)
        left = node_heat(without[:, : tables.n_hot], margin[:, : tables.n_hot], tables.problem.hot)
        return np.asarray(tables.heat[node] - left)

    def make(self, step: DraftStep) -> bool:
        """Make the step if all rules allow it. If not, refuse it from now on."""
        before = [move for made in self.steps for move in made.moves]
        for i, (pod, target) in enumerate(step.moves):
            if self.may_move is not None and not self.may_move(pod, target, (*before, *step.moves[:i])):
                self.finder.refused.add((pod, target))
                return False
        for pod, target in step.moves:
            self.tables.make(pod, target)
        self.steps.append(step)
        return True

    def take_out(self, position: int) -> DraftStep:
        """Undo one of the steps."""
        step = self.steps.pop(position)
        for pod, _ in reversed(step.moves):
            self.tables.move_back(pod)
        return step

    def restore(self, steps: list[DraftStep]) -> None:
        """Hold these steps instead of the present ones. They were held before, so the caller is not asked again."""
        for position in reversed(range(len(self.steps))):
            if self.steps[position] not in steps:
                self.take_out(position)
        for step in steps:
            if step not in self.steps:
                for pod, target in step.moves:
                    self.tables.make(pod, target)
        self.steps = list(steps)

    def in_order(self) -> bool:
        """Whether each move still finds room at its turn, and the rules allow it."""
        pods, free = self.tables.problem.pods, self.tables.problem.free.astype(np.float64)
        before: list[tuple[int, int]] = []
        for step in self.steps:
            for pod, target in step.moves:
                requests = pods.requests[pod]
                if ((requests > free[target]) & (requests > 0)).any():
                    return False
                if self.may_move is not None and not self.may_move(pod, target, tuple(before)):
                    return False
                free[target] -= requests
                free[pods.node[pod]] += requests
                before.append((pod, target))
        return True
