"""What it costs to make room for a gang, and who takes which room then: what gang_search.py compares and hands on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kube.objects.objects import PodInfo
from placement.disruption_budgets import DisruptionBudgets
from placement.plugins import Nomination
from placement.pod_importance import Standing, cost_of, importance
from scheduler.preemption.gangs import Gangs, broken_gangs

Seat = tuple[PodInfo, int]
"""A member, and the row of the node that it is to have."""


@dataclass(frozen=True, slots=True, order=True)
class GangCost:
    """As importance.Cost for all nodes together, and then the number of gangs that break. Less is better."""

    violations: int = 0
    highest: int = -(2**40)
    sum_priorities: int = 0
    n_victims: int = 0
    n_gangs: int = 0


@dataclass(frozen=True, slots=True)
class GangPlan:
    """seats: of the members that are needed, those that need no victim among them."""

    cost: GangCost
    seats: tuple[tuple[PodInfo, Nomination], ...]

    @property
    def n_victims(self) -> int:
        """Number of pods that the plan evicts."""
        return sum(len(there.victims) for _, there in self.seats)


def gang_plan(
    seats: Sequence[Seat],
    victims: Sequence[PodInfo],
    going: Sequence[PodInfo],
    names: Sequence[str],
    row_of: Mapping[str, int],
    *,
    budgets: DisruptionBudgets,
    gangs: Gangs | None,
    standing: Standing,
) -> GangPlan:
    """
    seats  : at least one
    going  : pods that leave these nodes whatever is decided, and for which the gang waits, too; they cost nothing
    names  : of nodes, by row; row_of: of the nodes that they sit on, by name
    """
    ordered = sorted(victims, key=lambda pod: importance(pod, standing))
    cost = GangCost()
    if ordered:
        one = cost_of(-1, ordered, sum(budgets.violated_by(ordered)), standing)
        n_gangs = 0 if gangs is None else len(broken_gangs(ordered, gangs))
        cost = GangCost(one.violations, one.highest, one.sum_priorities, one.n_victims, n_gangs)
    # Each victim goes for a member that takes its node; the rest of broken gangs, on other nodes, for the first one.
    first: dict[int, int] = {}
    for at, (_, row) in enumerate(seats):
        first.setdefault(row, at)
    of: list[list[PodInfo]] = [[] for _ in seats]
    for victim in (*ordered, *going):
        of[first.get(row_of.get(victim.node, -1), 0)].append(victim)
    nominations = ((pod, Nomination(names[row], tuple(those))) for (pod, row), those in zip(seats, of, strict=True))
    return GangPlan(cost, tuple(nominations))
