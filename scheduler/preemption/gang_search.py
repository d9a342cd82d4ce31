"""Victims for a whole gang: members one after the other, each into free room or into the cheapest room that can be
made, then all victims back that need not go.

    members that fit     have their room already, in the tables
    each further one     free room, if earlier victims leave some --none--> victim_search.py, with those victims gone
    all that are needed  placed? --no--> nothing is evicted
    reprieve             victims go back one by one, the most important first, as long as all members still fit
    affinity, spread     do all members still fit without the victims of the others? --no--> nothing is evicted

Which node costs least for one member need not be the best for many: the search is repeated with room for two, four,
... like members at once, and the better plan counts. The first way is that of single pods, but for what victims before
do to budgets and gangs. All of it happens in the tables, under their lock, and is taken back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, Protocol, runtime_checkable

from base.arrays import Bools
from kube.objects.objects import PodInfo
from placement.disruption_budgets import DisruptionBudgets
from placement.feasibility import FilterVerdict
from placement.filters.filter import ClusterView, Filter
from placement.pod_importance import LEAST_STANDING, Cost, NodeVictims
from placement.status import Status
from placement.what_if import WithoutPods
from scheduler.preemption.gang_plan import GangPlan, Reprieve, Seat, gang_plan
from scheduler.preemption.nominated import NominatedPods
from scheduler.preemption.nominated_sums import fit_filter
from scheduler.preemption.sitting_pods import SittingPods
from scheduler.preemption.victim_gangs import VictimGangs
from scheduler.preemption.victim_search import VictimSearch

_LONGEST_SECONDS: Final = 2.0
"""Of one search: the watch waits for the lock meanwhile."""


@dataclass(frozen=True, slots=True)
class RefusedMember:
    """Why a member has no node now: what all filters of its profile say."""

    filters: Sequence[Filter]
    why_not: FilterVerdict


class GangTables(Protocol):
    """The tables as the cycle changes them: scheduler.cycle.gang_tables."""

    within: Bools | None
    """(n_rows,) nodes to which the gang is confined in place of what filters say of its domain; None = as they say."""

    def filters_of(self, pod: PodInfo) -> Sequence[Filter]:
        """All that the member's profile asks."""

    def place(self, pod: PodInfo) -> int | RefusedMember:
        """Give the member free room, as the cycle does; returns the row of its node."""

    def put(self, pod: PodInfo, row: int) -> bool:
        """Give the member a node where it fits; False = a Reserve plugin refuses."""

    def take_back(self, pod: PodInfo, row: int) -> None:
        """Take the member and what was reserved for it back from the node."""

    def fits(self, pod: PodInfo, row: int) -> bool:
        """Whether all filters let the member, which has this node, onto it."""


@dataclass(frozen=True, slots=True)
class GangRequest:
    """
    members   : without a node, in the order in which they are placed
    placed    : the others and their rows, which have found free room
    is_enough : whether these members, with what sits, are what the gang needs
    is_simple : whether nothing but requests is in the way of members, see only_requests_matter
    domains   : (n_rows,) each: nodes of which the gang must have one set or another; none = any nodes
    """

    members: Sequence[PodInfo]
    placed: Sequence[Seat]
    is_enough: Callable[[Sequence[PodInfo]], bool]
    is_simple: bool
    domains: Sequence[Bools] = ()


@runtime_checkable
class GangPostFilter(Protocol):
    """A PostFilter plugin that makes room for gangs."""

    @property
    def name(self) -> str:
        """Of the plugin."""

    def waits(self, members: Sequence[PodInfo], view: ClusterView) -> Status:
        """SUCCESS = no pod is on the way out for these members, which have no node; WAIT = they are not to be tried
        yet, UNSCHEDULABLE = but no other pod may be evicted for them."""

    def post_filter_gang(self, wish: GangRequest, view: ClusterView, tables: GangTables) -> GangPlan | Status:
        """How room can be made, or why it cannot."""


def only_requests_matter(rejected: Sequence[tuple[PodInfo, FilterVerdict]]) -> bool:
    """Whether nothing else is in the way of these members that evicting pods could help with."""
    return all(not one.preemptible or one.by_requests for pod, why in rejected for _, one in why.rejections)


@dataclass(slots=True)
class _Way:
    """One way to go about it.

    sizes     : for how many like members room is made at once, in addition to that for one
    highest   : standing of a victim that must go anyhow: up to it victims are as good as any
    counts_budgets : budgets are used up by the victims of members before; for single pods they are not
    is_same   : no size is better than one: another way would find the same
    wait_seconds : see search.Found
    """

    sizes: Sequence[int] = ()
    highest: int = LEAST_STANDING
    counts_budgets: bool = True
    is_same: bool = False
    wait_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class _Now:
    """What does not change in a search. deadline: by the stopwatch; now: unix seconds."""

    wish: GangRequest
    view: ClusterView
    tables: GangTables
    may_preempt: Callable[[PodInfo], bool]
    untouchable: Callable[[], Collection[str]]
    now: float
    deadline: float


class GangSearch:
    """Called under the lock of the tables. wait_seconds: of the last search, see search.Found."""

    def __init__(
        self,
        search: VictimSearch,
        sitting: SittingPods,
        budgets: DisruptionBudgets,
        nominated: NominatedPods,
        gangs: VictimGangs | None,
        *,
        most_domains: int = 8,
        stopwatch: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._search, self._sitting, self._budgets = search, sitting, budgets
        self._nominated, self._gangs, self._stopwatch = nominated, gangs, stopwatch
        self._most_domains = most_domains
        self.wait_seconds = 0.0

    def find(
        self,
        wish: GangRequest,
        view: ClusterView,
        tables: GangTables,
        *,
        now: float,
        may_preempt: Callable[[PodInfo], bool],
        untouchable: Callable[[], Collection[str]],
    ) -> GangPlan | None:
        """None = evicting pods does not help.

        may_preempt : whether others may go for a member
        untouchable : UIDs of pods that are no victims; asked anew for each member
        """
        self.wait_seconds = 0.0
        deadline = self._stopwatch() + _LONGEST_SECONDS
        fixed = _Now(wish, view, tables, may_preempt, untouchable, now, deadline)
        if not wish.domains:
            return self._cheapest(fixed)
        plans = []
        try:
            for within in wish.domains[: self._most_domains]:
                tables.within = within
                plans.append(self._cheapest(fixed))
        finally:
            tables.within = None
        return min((one for one in plans if one is not None), key=lambda one: one.cost, default=None)

    def _cheapest(self, fixed: _Now) -> GangPlan | None:
        way = _Way()
        best = self._look(way, fixed)
        if way.wait_seconds:
            self.wait_seconds = min(way.wait_seconds, self.wait_seconds or way.wait_seconds)
        if best is not None and best.cost.violations:
            # Where budgets are violated anyhow, minding them member by member may cost more in all.
            other = self._look(_Way(counts_budgets=False), fixed)
            best = other if other is not None and other.cost < best.cost else best
        most = _n_alike(fixed.wish.members)
        if best is None or best.cost.n_victims < 2 or most < 2 or not fixed.wish.is_simple:
            return best
        sizes = sorted({most, *(2**power for power in range(1, most.bit_length()))})
        other = self._look(_Way(sizes, best.cost.highest), fixed)
        return best if other is None or best.cost <= other.cost else other

    # One way

    def _look(self, way: _Way, fixed: _Now) -> GangPlan | None:
        wish, tables, going = fixed.wish, fixed.tables, self._going()
        gone: list[PodInfo] = []
        with WithoutPods(fixed.view) as what_if, _taken_back(tables) as seats:
            for at, pod in enumerate(wish.members):
                here = [one for one, _ in (*wish.placed, *seats)]
                if wish.is_enough(here):
                    break
                if not wish.is_enough([*here, *wish.members[at:]]) or self._stopwatch() > fixed.deadline:
                    return None
                found = tables.place(pod)
                if isinstance(found, int):
                    seats.append((pod, found))
                    continue
                if not fixed.may_preempt(pod):
                    continue
                victims = self._victims(pod, _n_alike(wish.members[at:]), way, found, gone, fixed)
                if way.is_same:
                    return None
                if victims is None:
                    continue
                for victim in victims.pods:
                    what_if.take(victim.uid)
                gone += victims.pods
                if not tables.put(pod, victims.cost.row):
                    return None
                seats.append((pod, victims.cost.row))
            everybody = [*wish.placed, *seats]
            if not wish.is_enough([one for one, _ in everybody]):
                return None
            leaving = [pod for pod in gone if pod.uid in going or pod.terminating]
            may_stay = [pod for pod in gone if pod.uid not in going and not pod.terminating]
            must_go = self._must_go(may_stay, everybody, what_if, fixed)
            if _need_others(tables, everybody, fixed.view) and not _all_fit(tables, everybody):
                return None  # a victim of one member is a pod that another one must be near
        state = fixed.view.state
        return gang_plan(
            everybody,
            must_go,
            leaving,
            state.names,
            state.row_of,
            budgets=self._budgets,
            gangs=self._gangs,
            standing=self._sitting.standing_of,
        )

    def _victims(
        self, pod: PodInfo, n_alike: int, way: _Way, refused: RefusedMember, gone: Sequence[PodInfo], fixed: _Now
    ) -> NodeVictims | None:
        """For one member, or for several like it at once where that costs less for each."""
        search, untouchable = self._search.after(gone, counts_budgets=way.counts_budgets), fixed.untouchable()
        rejections = [rejection for _, rejection in refused.why_not.rejections]

        def find(of: PodInfo) -> NodeVictims | None:
            found = search.find(of, fixed.view, refused.filters, rejections, now=fixed.now, untouchable=untouchable)
            if found.victims is None:
                way.wait_seconds = found.wait_seconds
            return found.victims

        best = find(pod)
        if best is None:
            return None
        least, better = _share(best.cost, 1, way.highest), []
        for size in way.sizes:
            if size > n_alike:
                continue
            larger = find(replace(pod, requests={kind: size * amount for kind, amount in pod.requests.items()}))
            if larger is not None and (share := _share(larger.cost, size, way.highest)) < least:
                best, least = larger, share
                better.append(size)
        if way.sizes and not gone:
            way.sizes, way.is_same = better, not better
        return best

    def _must_go(
        self, gone: Sequence[PodInfo], seats: Sequence[Seat], what_if: WithoutPods, fixed: _Now
    ) -> list[PodInfo]:
        tables = fixed.tables
        reprieve = Reprieve(
            fixed.view.state,
            self._sitting,
            self._nominated,
            self._budgets,
            self._gangs,
            fit_filter(tables.filters_of(seats[0][0])),
        )
        if fixed.wish.is_simple and not _need_others(tables, seats, fixed.view):
            return reprieve.victims(gone, seats, what_if)
        return reprieve.victims(gone, seats, what_if, lambda: _all_fit(tables, seats))

    def _going(self) -> frozenset[str]:
        """UIDs of those that go already for other pods."""
        nominated = self._nominated
        return frozenset(uid for row in nominated.rows() for one in nominated.on(row) for uid in one.victims)


@contextmanager
def _taken_back(tables: GangTables) -> Iterator[list[Seat]]:
    """Members that were given nodes do not have them afterwards."""
    seats: list[Seat] = []
    try:
        yield seats
    finally:
        for pod, row in reversed(seats):
            tables.take_back(pod, row)


def _need_others(tables: GangTables, seats: Sequence[Seat], view: ClusterView) -> bool:
    """Whether a member may fit on its node no more because another pod is evicted, there or elsewhere."""
    pods = [pod for pod, _ in seats]
    return any(pod.constraints.spread for pod in pods) or any(
        one.needs_company(pod, view) for pod in pods for one in tables.filters_of(pod)
    )


def _all_fit(tables: GangTables, seats: Sequence[Seat]) -> bool:
    return all(tables.fits(pod, row) for pod, row in seats)


def _n_alike(members: Sequence[PodInfo]) -> int:
    """How many from the first on request the same and are as important."""
    first = members[0]
    return next(
        (at for at, pod in enumerate(members) if pod.requests != first.requests or pod.priority != first.priority),
        len(members),
    )


def _share(cost: Cost, n: int, highest: int) -> tuple[float, int, float, float]:
    """What room for n members costs each of them. highest: see _Way"""
    return cost.violations / n, max(cost.highest, highest), cost.sum_priorities / n, cost.n_victims / n
