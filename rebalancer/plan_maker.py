"""Makes plans from the live tables: when pods may move, which of them for how much, and the plan itself, by names."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np

from base.arrays import Floats, Ints
from base.excluded import ExcludedOptions
from base.local_hours import ChangeWindows
from cluster.assuming_cluster import AssumingCluster
from cluster.live_tables import LiveTables
from cluster.predicted.node_load import PeakHours
from cluster.predicted.unknown_capacity import limited
from forecast.calendar import SLOT_MINUTES, SLOTS_PER_DAY, Calendar
from forecast.resources import HOT_RESOURCES, resource_index
from forecast.service_key import ServiceKey
from kube.objects.objects import PodInfo
from placement.disruption_budgets import DisruptionBudgets
from rebalancer.cluster_layout import (
    LaidOut,
    PredictedLoads,
    TablesCopy,
    lay_out,
    load_with_moves,
    predicted_loads,
    snapshot,
)
from rebalancer.costs.move_cost import MoveCost, is_insensitive, move_cost
from rebalancer.costs.move_facts import CoolingUntil, MoveFacts, Occasion, PodFacts, StartupTimes
from rebalancer.missed_peak import MissedPeak, missed_peak
from rebalancer.night_grades import gain_of_moves
from rebalancer.planning.heat import penalty
from rebalancer.planning.move_curve import MoveCurve, move_curve
from rebalancer.planning.planner import plan
from rebalancer.planning.problem import Budget, Plan, Problem
from rebalancer.rebalance_settings import RebalanceOptions
from rebalancer.timing.windows import MoveWindow, MoveWindows, move_windows
from scorer.answers import Peak
from scorer.highest_peak import peak_words, peaks_of_nodes, share_of
from scorer.load_scale import percent

_DAYS_AHEAD: Final = 3
_SLOT: Final = timedelta(minutes=SLOT_MINUTES)


@dataclass(frozen=True, slots=True)
class NamedMove:
    """A move by names. by_surge: a second replica is started first. gain, partner: see planning.problem.Move."""

    namespace: str
    pod: str
    uid: str
    service: ServiceKey
    source: str
    target: str
    gain: float
    reason: str
    partner: int | None
    by_surge: bool


@dataclass(frozen=True, slots=True)
class MadePlan:
    """
    made_at, since, until : the plan is of the half hours from `since` on, when its first move can be made, to `until`;
                            in the cluster's time zone
    missed  : hot half hours that come before; None = there are none
    window  : in which its moves may start; None = there is none in the next 24 hours
    windows : all windows of the next 24 hours, and how they were found
    plan    : figures, and moves by rows
    moves   : the same moves by names
    predicted_gain : of all of them, by the expected load alone: what the grade of the night compares with
    n_pods  : that count in the forecast
    kept    : pods that may not be moved, by reason
    """

    made_at: datetime
    since: datetime
    until: datetime
    missed: MissedPeak | None
    window: MoveWindow | None
    windows: MoveWindows
    plan: Plan
    moves: tuple[NamedMove, ...]
    predicted_gain: float
    n_pods: int
    kept: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class PlanSources:
    """What plans go by in addition to the tables.

    may_go         : names of the nodes that a pod may go to, by all filters but those of resources
    budgets        : PodDisruptionBudgets
    annotations_of : ours, of a namespace
    cooling_until  : see pod_facts.CoolingUntil
    left           : nodes that a pod was moved away from lately
    excluded       : services that are left alone
    changes        : when pods may move
    """

    may_go: Callable[[PodInfo], Collection[str]]
    budgets: DisruptionBudgets = field(default_factory=DisruptionBudgets)
    annotations_of: Callable[[str], Mapping[str, str]] = lambda namespace: {}
    cooling_until: CoolingUntil = lambda pod: None
    left: Callable[[PodInfo], frozenset[str]] = lambda pod: frozenset()
    excluded: ExcludedOptions = field(kw_only=True)
    changes: ChangeWindows = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class OverloadRelief:
    """Overloaded nodes that are to be relieved now. total, of_service: pods that may still move so today."""

    nodes: frozenset[str]
    total: int
    of_service: Callable[[ServiceKey], int]


@dataclass(frozen=True, slots=True)
class _Ground:
    """What a plan is made from. ahead: half hours from the next one on that are over before its first move"""

    now: datetime
    copied: TablesCopy
    laid_out: LaidOut
    windows: MoveWindows
    costs: Mapping[str, MoveCost]
    ahead: int
    missed: MissedPeak | None


class PlanMaker:
    """For one thread at a time: making a plan takes seconds in a large cluster, a part of them under the lock.

    hot : share of its capacity above which a node is hot
    """

    def __init__(self, tables: LiveTables, sources: PlanSources, options: RebalanceOptions, hot: float) -> None:
        self._tables, self._sources, self._options, self._hot = tables, sources, options, hot
        self._startup = StartupTimes()

    def for_tonight(self) -> MadePlan | None:
        """Return the plan of the next window, as things are now; None = there is no forecast."""
        return self._make(None)

    def curve(self) -> MoveCurve | None:
        """Return how many moves of tonight leave how much, whatever the budget allows; None = there is no forecast."""
        ground = self._ground(None)
        return None if ground is None else move_curve(ground.laid_out.problem, self._options.planning)

    def at_once(self, relief: OverloadRelief) -> MadePlan | None:
        """Return a plan that relieves overloaded nodes of insensitive pods; None = there is no forecast."""
        return self._make(relief)

    def costs_of(self, pods: Sequence[PodInfo], occasion: Occasion) -> list[tuple[PodInfo, MoveCost]]:
        """Return what it costs to move each pod, or why it may not move."""
        costs, _ = self._costs(pods, occasion)
        return [(pod, costs[pod.uid]) for pod in pods]

    def hindrance(self, uid: str, of_budget: Callable[[int | None], str] = lambda replicas: "") -> str:
        """Return why a pod must not move now, as it is now; '' = nothing speaks against it, or it is not known.

        of_budget : says so of the replicas that its service has now; None = it is not known
        """
        now = self._tables.now()
        zone = now.tzinfo if isinstance(now.tzinfo, ZoneInfo) else ZoneInfo("UTC")  # without a model
        if closed := self._sources.changes.closed(now, zone):
            return closed
        with self._tables.reading() as cluster:
            pod = cluster.state.pods.get(uid)
            if pod is None:
                return of_budget(None)
            facts = self._facts(cluster).of(pod)
        cost = move_cost(pod, facts, Occasion.at_once(now, zone), self._options.cost)
        return of_budget(facts.replicas) if cost.may_move else cost.because

    def _make(self, relief: OverloadRelief | None) -> MadePlan | None:
        ground = self._ground(relief)
        if ground is None:
            return None
        laid_out, copied, costs = ground.laid_out, ground.copied, ground.costs
        found = plan(laid_out.problem, self._options.planning)
        kept = Counter(cost.because for cost in costs.values() if not cost.may_move)
        return MadePlan(
            made_at=ground.now,
            since=copied.begins if ground.ahead else ground.now,
            until=copied.begins + (copied.slots.stop - copied.slots.start) * _SLOT,
            missed=ground.missed,
            window=next(iter(ground.windows.windows), None),
            windows=ground.windows,
            plan=found,
            moves=_named(laid_out, found, costs, _peaks(copied, found, ground.ahead)),
            predicted_gain=_predicted_gain(laid_out.problem, found),
            n_pods=len(copied.pods),
            kept=dict(kept.most_common()),
        )

    def _ground(self, relief: OverloadRelief | None) -> _Ground | None:
        """Return what a plan is made from; None = there is no forecast."""
        copied = snapshot(self._tables, _DAYS_AHEAD * SLOTS_PER_DAY)
        if copied is None:
            return None
        loads, calendar = predicted_loads(copied), copied.profiles.model.calendar
        now = self._tables.now()
        share, changes = _cluster_share(copied, loads), self._sources.changes
        windows = move_windows(share, copied.horizon.today, calendar, now, self._options.window, changes)
        window = next(iter(windows.windows), None)
        # What is over when the first move can be made, no move of the plan prevents.
        ahead = 0 if relief is not None or window is None else _slots_between(copied.begins, window.begin)
        missed = missed_peak(copied, loads, ahead, self._hot)
        n_slots = min(round(self._options.horizon / _SLOT.total_seconds()), loads.load.shape[2] - ahead)
        loads = PredictedLoads(*(one[..., ahead : ahead + n_slots] for one in (loads.load, loads.margin)))
        copied = copied.within(n_slots, ahead)
        occasion = _occasion(now, window, copied, loads, calendar, self._hot, at_once=relief is not None)
        costs, facts = self._costs(copied.pods, occasion)

        def cost_of(pod: PodInfo) -> float:
            cost = costs[pod.uid]
            if relief is None:
                return cost.cost
            counts = pod.node in relief.nodes and is_insensitive(pod, facts[pod.uid], cost, self._options.unforeseen)
            return cost.cost if counts else math.inf

        laid_out = lay_out(
            copied,
            loads,
            cost_of=cost_of,
            may_go=self._sources.may_go,
            budget_of=lambda services, namespaces: self._budget(services, namespaces, facts, relief),
            hot=self._hot,
            left=self._sources.left,
        )
        return _Ground(now, copied, laid_out, windows, costs, ahead, missed)

    def _costs(self, pods: Collection[PodInfo], occasion: Occasion) -> tuple[dict[str, MoveCost], dict[str, MoveFacts]]:
        """What each pod costs to move, and what is known of it, by UID."""
        with self._tables.reading() as cluster:
            known = self._facts(cluster)
            facts = {pod.uid: known.of(pod) for pod in pods}
        costs = {pod.uid: move_cost(pod, facts[pod.uid], occasion, self._options.cost) for pod in pods}
        return costs, facts

    def _facts(self, cluster: AssumingCluster) -> PodFacts:
        sources = self._sources
        return PodFacts(
            cluster,
            self._startup,
            sources.budgets,
            sources.annotations_of,
            sources.cooling_until,
            sources.excluded,
        )

    def _budget(
        self,
        services: tuple[ServiceKey, ...],
        namespaces: tuple[str, ...],
        facts: Mapping[str, MoveFacts],
        relief: OverloadRelief | None,
    ) -> Budget:
        options = self._options.budget
        replicas = {one.service: one.replicas for one in facts.values()}
        of_service = [
            options.of_service(replicas[service]) if relief is None else relief.of_service(service)
            for service in services
        ]
        return Budget(
            total=options.total(len(facts)) if relief is None else relief.total,
            per_service=_ints(of_service),
            per_namespace=_ints([options.per_namespace] * len(namespaces)),
            per_node=options.per_node,
        )


def _cluster_share(copied: TablesCopy, loads: PredictedLoads) -> Floats:
    """(n_days, 48) share of the cluster's capacity in use, of its fullest resource at its peak; NaN = it is over."""
    with_limit = limited(copied.capacity)[:, list(HOT_RESOURCES)]  # (n_nodes, n_hot)
    load = np.where(with_limit[:, :, None], loads.load[:, list(HOT_RESOURCES)], 0.0).sum(axis=0)
    capacity = np.where(with_limit, copied.capacity[:, list(HOT_RESOURCES)], 0.0).sum(axis=0)
    share = load[capacity > 0] / capacity[capacity > 0][:, None]  # (n_limited, n_slots)
    days = np.full(_DAYS_AHEAD * SLOTS_PER_DAY, np.nan)
    if len(share):
        slots = slice(copied.slots.start, min(copied.slots.stop, len(days)))
        days[slots] = share[share.max(axis=1).argmax()][: slots.stop - slots.start]
        if slots.start:
            days[slots.start - 1] = days[slots.start]  # the half hour under way is over in a moment
    return days.reshape(_DAYS_AHEAD, SLOTS_PER_DAY)


def _occasion(
    now: datetime,
    window: MoveWindow | None,
    copied: TablesCopy,
    loads: PredictedLoads,
    calendar: Calendar,
    hot: float,
    *,
    at_once: bool,
) -> Occasion:
    """For which peak the moves are made, and when."""
    if at_once or window is None:
        return Occasion.at_once(now, calendar.zone)
    share = loads.load[:, list(HOT_RESOURCES)] / copied.capacity[:, list(HOT_RESOURCES), None]
    is_hot = (np.nan_to_num(share) > hot).any(axis=(0, 1))
    first = int(is_hot.argmax()) if is_hot.any() else share.shape[2]
    return Occasion.of(window, (copied.begins + first * _SLOT).astimezone(UTC), calendar.zone, now)


def _predicted_gain(problem: Problem, found: Plan) -> float:
    if not found.moves:
        return 0.0
    pods = _ints([move.pod for move in found.moves])
    return gain_of_moves(
        np.asarray(problem.load, dtype=np.float64),
        np.asarray(problem.usage[problem.pods.profile[pods]], dtype=np.float64),
        _ints([move.source for move in found.moves]),
        _ints([move.target for move in found.moves]),
        problem.capacity,
        partial(penalty, hot=problem.hot),
        hot=problem.hot,
        made=False,
    ).gain


def _slots_between(begins: datetime, later: datetime) -> int:
    """Half hours from one instant to a later one, 0 if it is not later."""
    return max(0, math.floor((later.astimezone(UTC) - begins.astimezone(UTC)) / _SLOT))


def _peaks(copied: TablesCopy, found: Plan, ahead: int) -> Callable[[str, int], tuple[Peak | None, Peak | None]]:
    """Return what says the expected peak of a resource of a node in the hours of the plan, before it and after it."""
    rows = sorted({row for move in found.moves for row in (move.source, move.target)})
    loads = (
        load_with_moves(copied, rows),
        load_with_moves(copied, rows, [(move.pod, move.target) for move in found.moves]),
    )
    hours = PeakHours.between(copied.horizon, copied.slots) if ahead else PeakHours.next_24(copied.horizon)

    @cache
    def of(resource: str) -> list[list[Peak | None]]:
        return [
            peaks_of_nodes(peaks, copied.horizon)
            for load in loads
            for peaks in load.peaks(hours, resource=resource_index(resource))
        ]

    return lambda resource, row: (of(resource)[0][rows.index(row)], of(resource)[1][rows.index(row)])


def _named(
    laid_out: LaidOut,
    found: Plan,
    costs: Mapping[str, MoveCost],
    peaks: Callable[[str, int], tuple[Peak | None, Peak | None]],
) -> tuple[NamedMove, ...]:
    moves = []
    for move in found.moves:
        pod, source, target = laid_out.pods[move.pod], laid_out.nodes[move.source], laid_out.nodes[move.target]
        reason = move.reason
        if move.relief is not None:
            before, after = peaks(move.relief.resource, move.source)
            reason = "" if before is None else f"{source}: {peak_words(before, laid_out.begins.date())}; "
            reason += (
                f"after the plan {percent(share_of(after))}, "
                f"{target} {percent(share_of(peaks(move.relief.resource, move.target)[1]))}"
            )
        elif move.partner is not None:
            partner = laid_out.pods[found.moves[move.partner].pod]
            reason = f"makes room on {source} for {partner.namespace}/{partner.name}"
        moves.append(
            NamedMove(
                namespace=pod.namespace,
                pod=pod.name,
                uid=pod.uid,
                service=laid_out.service_of(move.pod),
                source=source,
                target=target,
                gain=move.gain,
                reason=reason,
                partner=move.partner,
                by_surge=costs[pod.uid].by_surge,
            )
        )
    return tuple(moves)


def _ints(numbers: list[int]) -> Ints:
    return np.array(numbers, dtype=np.int64)
