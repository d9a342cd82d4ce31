"""What it costs to make room for a gang, and who of the victims may stay after all: one after the other, the most
important first, as long as every member still fits where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cluster.tables.state import ClusterState
from kube.objects.objects import PodInfo
from placement.disruption_budgets import DisruptionBudgets
from placement.filters.node_resources_fit import NodeResourcesFit
from placement.plugins import Nomination
from placement.pod_importance import Standing, cost_of, importance
from placement.what_if import WithoutPods
from scheduler.preemption.nominated import NominatedPods
from scheduler.preemption.nominated_sums import wanted_units
from scheduler.preemption.releasable_room import room_for
from scheduler.preemption.sitting_pods import SittingPods
from scheduler.preemption.victim_gangs import VictimGangs, broken_gangs

Seat = tuple[PodInfo, int]
"""A member, and the row of the node that it is to have."""

_MOST_CHECKED: Final = 32
"""Victims for whose return filters are asked about every member."""


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
    gangs: VictimGangs | None,
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


class Reprieve:
    """For one search, under one hold of the lock."""

    def __init__(
        self,
        state: ClusterState,
        sitting: SittingPods,
        nominated: NominatedPods,
        budgets: DisruptionBudgets,
        gangs: VictimGangs | None,
        fit: NodeResourcesFit | None,
    ) -> None:
        """fit: None = requests do not matter"""
        self._state, self._sitting, self._nominated = state, sitting, nominated
        self._budgets, self._gangs, self._fit = budgets, gangs, fit

    def victims(
        self,
        gone: Sequence[PodInfo],
        seats: Sequence[Seat],
        what_if: WithoutPods,
        all_fit: Callable[[], bool] | None = None,
    ) -> list[PodInfo]:
        """Those of `gone` that must go; the others are back in the tables.

        seats   : of all members, which have their nodes in the tables
        all_fit : whether filters let all members stay where they are; None = requests say it all
        """
        room = self._room_beside(seats)
        must_go: list[PodInfo] = []
        checked = 0
        for unit in self._units(gone):
            after = self._after(unit, room)
            if after is None or (all_fit is not None and checked >= _MOST_CHECKED):
                must_go += unit
                continue
            for pod in unit:
                what_if.put_back(pod.uid)
            if all_fit is not None:
                checked += 1
                if not all_fit():
                    for pod in unit:
                        what_if.take(pod.uid)
                    must_go += unit
                    continue
            room |= after
        return must_go

    def _units(self, gone: Sequence[PodInfo]) -> list[list[PodInfo]]:
        """Pods that stay or go together: of a gang that breaks all. Those that violate a budget first."""
        standing = self._sitting.standing_of
        ordered = sorted(gone, key=lambda pod: importance(pod, standing))
        violates = dict(zip((pod.uid for pod in ordered), self._budgets.violated_by(ordered), strict=True))
        gangs = self._gangs
        broken = set() if gangs is None else set(broken_gangs(ordered, gangs))
        units: dict[tuple[bool, str], list[PodInfo]] = {}
        for pod in ordered:
            group = None if gangs is None else gangs.group_of(pod)
            key = (True, group) if group is not None and group in broken else (False, pod.uid)
            units.setdefault(key, []).append(pod)
        return sorted(units.values(), key=lambda unit: not any(violates[pod.uid] for pod in unit))

    def _room_beside(self, seats: Sequence[Seat]) -> dict[tuple[int, str, int], int]:
        """What is left on the nodes of members, in whole units, by row, resource ('' = number of pods) and priority of
        the member: room that is kept for others is kept from some of them only."""
        kinds: dict[tuple[int, frozenset[tuple[str, float]]], list[Seat]] = {}
        for seat in seats:
            kinds.setdefault((seat[0].priority, frozenset(seat[0].requests.items())), []).append(seat)
        found: dict[tuple[int, str, int], int] = {}
        for (priority, _), alike in kinds.items():
            pod = alike[0][0]
            room = room_for(pod, self._state, self._sitting, self._nominated, self._fit)
            wanted = {"": 1} if self._fit is None else {"": 1} | wanted_units(pod, self._fit)
            for kind, left in zip(room.kinds, room.left, strict=True):
                for _, row in alike:
                    found[row, kind, priority] = int(left[row]) + wanted[kind]  # `left` has one more like it there
        return found

    def _after(
        self, unit: Sequence[PodInfo], room: dict[tuple[int, str, int], int]
    ) -> dict[tuple[int, str, int], int] | None:
        """What is left where once these are back; None = they do not fit."""
        after: dict[tuple[int, str, int], int] = {}
        for pod in unit:
            slot = self._sitting.slot_of[pod.uid]
            row = int(self._sitting.row[slot])
            for key in [key for key in room if key[0] == row]:
                gives = int(self._sitting.units(key[1])[slot]) if key[1] else 1
                left = after.get(key, room[key]) - gives
                if left < 0 and gives > 0:
                    return None
                after[key] = left
        return after
