"""Which pods to move off one node that is hot, the fewest that make it cool again: for a person who asks now.

    node --its pods, each with the node where it would land--> plan of one move --made in the tables--> and so on,
    until neither what is measured nor what is expected in the next 24 hours is over the hot share

Moves are chosen by the rebalancer's planner. A pod's only target is the node that places it: an evicted pod goes where
filters and scores send it, not where a plan would like it. The tables are as before when the relief is returned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar, Final, Self
from zoneinfo import ZoneInfo

import numpy as np

from base.arrays import Floats
from base.errors import InputError, UnknownName
from cluster.assuming_cluster import AssumingCluster
from cluster.live_tables import LiveTables
from cluster.predicted.node_load import PeakHours
from forecast.calendar import SLOTS_PER_DAY
from forecast.resources import HOT_RESOURCES, RESOURCES
from forecast.service_key import ServiceKey
from kube.decoding.decoding import Kind
from kube.objects.objects import PodInfo
from kube.objects.rollout import newest_revision
from rebalancer.cluster_layout import TablesCopy, lay_out, load_with_moves, predicted_loads, snapshot
from rebalancer.costs.move_cost import MoveCost
from rebalancer.costs.move_facts import Occasion
from rebalancer.plan_maker import PlanMaker
from rebalancer.planning.planner import plan
from rebalancer.planning.problem import Budget
from rebalancer.rebalance_settings import CostOptions, PlanningOptions
from scorer.answers import Peak
from scorer.highest_peak import peaks_of_nodes
from scorer.node_now import measured_pods

Lands = Callable[[PodInfo], str]
"""The node where a pod of the hot node would be placed now, other than that node; '' = none passes the filters."""

_ONE_MOVE: Final = PlanningOptions(least_gain=0.0, exchanges_looked_at=0, chains_looked_at=0, improvement_effort=0.0)
"""A person has decided to act: any gain counts, and moves are made one after the other."""

NO_SERVICE: Final = "a second replica must start first: the rebalancer moves it, an eviction would end the service"


class ReliefCosts(CostOptions):
    """Costs where a person asks: a pod may be young, as what a release has just brought is often what makes it hot."""

    least_age: ClassVar[float] = 0.0

    @classmethod
    def of(cls, options: CostOptions) -> Self:
        """Return the options without a least age."""
        return cls(owners=options.owners, move_local_storage=options.move_local_storage)


@dataclass(frozen=True, slots=True)
class ReliefMove:
    """One pod to the node where it would land, and both nodes after it and all moves before.

    measured    : share of the source's capacity in use now, less what the moved pods use
    here, there : expected peaks of the next 24 hours of the source and of the target
    used        : (n_resources,) of what is measured now, the pod's part: nothing where other pods of the node are
                  measured and it is not, since it came later. Where no pod is, what it is expected to use
    """

    pod: PodInfo
    service: ServiceKey
    target: str
    measured: float | None
    here: Peak | None
    there: Peak | None
    used: Floats


@dataclass(frozen=True, slots=True)
class Rollout:
    """A Deployment under way: new pods of it are on the node, older ones still to be replaced."""

    namespace: str
    name: str
    new_here: int
    old_pods: int


@dataclass(frozen=True, slots=True)
class HotNodeRelief:
    """
    measured : share of capacity of the fullest resource that makes nodes hot; None = not measured
    peak     : expected in the next 24 hours, of the resources that make nodes hot; None = no capacity is known
    is_hot   : by the one or the other
    moves    : in order; is_enough: they make the node cool; is_cut: more moves were not looked for
    stays    : (pod, why) of all others on the node
    rollouts, coming : Deployments to hold, and pods without a node that are nominated for this one
    """

    node: str
    now: datetime
    measured: float | None
    peak: Peak | None
    is_hot: bool
    moves: tuple[ReliefMove, ...]
    is_enough: bool
    is_cut: bool
    stays: tuple[tuple[str, str], ...]
    rollouts: tuple[Rollout, ...]
    coming: tuple[str, ...]


class ReliefMaker:
    """Plans reliefs on tables that no other thread changes meanwhile: it holds their lock for seconds.

    hot   : share of its capacity above which a node is hot
    lands : where pods would go
    most  : moves of a relief
    """

    def __init__(self, tables: LiveTables, maker: PlanMaker, hot: float, lands: Lands, most: int) -> None:
        self._tables, self._maker, self._hot, self._lands, self._most = tables, maker, hot, lands, most

    def relieve(self, node: str, gone: Floats | None = None) -> HotNodeRelief:
        """Return how to relieve a node.

        gone : (n_resources,) what pods used that left the node after what is measured now
        Raises UnknownName for a node that is not there, InputError without a forecast.
        """
        with self._tables.reading() as cluster:
            row = cluster.state.row_of.get(node)
            if row is None or cluster.state.nodes[row] is None:
                raise UnknownName(
                    "node", node, [name for name, at in cluster.state.row_of.items() if _is_node(cluster, at)]
                )
            return self._relieve(cluster, node, row, np.zeros(len(RESOURCES)) if gone is None else gone)

    def _relieve(self, cluster: AssumingCluster, node: str, row: int, gone: Floats) -> HotNodeRelief:
        now = self._tables.now()
        pods = _pods_on(cluster, node)
        zone = now.tzinfo if isinstance(now.tzinfo, ZoneInfo) else ZoneInfo("UTC")
        costs = {pod.uid: _by_eviction(cost) for pod, cost in self._maker.costs_of(pods, Occasion.at_once(now, zone))}
        measured, capacity = cluster.measured_usage()[row] - gone, cluster.capacity[row].copy()
        of_pods = self._measured_pods(pods) if np.isfinite(measured).any() else {}
        are_measured = np.isfinite([np.full(len(RESOURCES), np.nan), *of_pods.values()]).any(axis=0)
        shifts: dict[str, Floats] = {}
        moved: list[ReliefMove] = []
        lands: dict[str, str] = {}
        first: Peak | None = None
        share: float | None = None
        try:
            while True:
                copied = snapshot(self._tables, SLOTS_PER_DAY)
                if copied is None:
                    raise InputError("there is no forecast: run `forecast-scheduler train`, and pass its --models")
                copied = copied.with_errors(shifts)
                used = measured - sum((one.used for one in moved), start=np.zeros(len(RESOURCES)))
                here = _peak(copied, node)
                share = _highest(used, capacity)
                if not moved:
                    first, first_share = here, share
                else:
                    moved[-1] = replace(moved[-1], measured=share, here=here, there=_peak(copied, moved[-1].target))
                if not self._is_hot(share, here) or len(moved) >= self._most:
                    break
                chosen = self._one_move(copied, node, costs, lands, {one.pod.uid for one in moved})
                if chosen is None:
                    break
                # What a pod uses beyond its forecast goes with it.
                uses = of_pods.get(chosen.pod.uid, np.full(len(RESOURCES), np.nan))
                beyond = np.nan_to_num(uses - chosen.used)
                gone_too = np.where(are_measured, np.nan_to_num(uses), chosen.used)
                for name, sign in ((node, -1.0), (chosen.target, 1.0)):
                    shifts[name] = shifts.get(name, np.zeros(len(RESOURCES))) + sign * beyond
                moved.append(replace(chosen, used=gone_too))
                self._tables.put(Kind.PODS, replace(chosen.pod, node=chosen.target))
        finally:
            for one in reversed(moved):
                self._tables.put(Kind.PODS, one.pod)
        enough = not self._is_hot(share, here)
        cut = not enough and len(moved) >= self._most
        stays = _stays(pods, costs, lands, {one.pod.uid for one in moved}, is_enough=enough, is_cut=cut)
        return HotNodeRelief(
            node=node,
            now=now,
            measured=first_share,
            peak=first,
            is_hot=self._is_hot(first_share, first),
            moves=tuple(moved),
            is_enough=enough,
            is_cut=cut,
            stays=stays,
            rollouts=_rollouts(cluster, pods),
            coming=tuple(
                f"{pod.namespace}/{pod.name}"
                for pod in cluster.state.pods.values()
                if not pod.node and pod.nominated_node == node
            ),
        )

    def _measured_pods(self, pods: Sequence[PodInfo]) -> dict[str, Floats]:
        """Return what pods use now of the resources that make nodes hot, NaN = not measured: by UID, (n_resources,)."""
        found: dict[str, Floats] = {}
        for r in HOT_RESOURCES:
            by_name, _ = measured_pods(self._tables, RESOURCES[r].name, pods)
            for pod in pods:
                if (value := by_name.get((pod.namespace, pod.name))) is not None:
                    found.setdefault(pod.uid, np.full(len(RESOURCES), np.nan))[r] = value
        return found

    def _is_hot(self, measured: float | None, peak: Peak | None) -> bool:
        expected = None if peak is None else peak.share
        return any(share is not None and share > self._hot for share in (measured, expected))

    def _one_move(
        self, copied: TablesCopy, node: str, costs: Mapping[str, MoveCost], lands: dict[str, str], moved: set[str]
    ) -> ReliefMove | None:
        """Return the move that helps most, None = none helps. lands: filled with where pods would go, by UID."""

        def may_go(pod: PodInfo) -> Sequence[str]:
            lands[pod.uid] = self._lands(pod)
            return (lands[pod.uid],) if lands[pod.uid] else ()

        def cost_of(pod: PodInfo) -> float:
            known = costs.get(pod.uid)
            return math.inf if known is None or pod.uid in moved else known.cost

        laid_out = lay_out(
            copied,
            predicted_loads(copied),
            cost_of=cost_of,
            may_go=may_go,
            budget_of=lambda services, namespaces: Budget(
                1, np.ones(len(services), dtype=np.int64), np.ones(len(namespaces), dtype=np.int64), 1
            ),
            hot=self._hot,
        )
        found = plan(laid_out.problem, _ONE_MOVE)
        for move in found.moves:
            pod, target = laid_out.pods[move.pod], laid_out.nodes[move.target]
            return ReliefMove(pod, laid_out.service_of(move.pod), target, None, None, None, _used(copied, move.pod))
        return None


def _is_node(cluster: AssumingCluster, row: int) -> bool:
    return cluster.state.nodes[row] is not None


def _pods_on(cluster: AssumingCluster, node: str) -> list[PodInfo]:
    found = [pod for pod in cluster.state.pods.values() if pod.node == node and not pod.stands_in]
    return sorted(found, key=lambda pod: (pod.namespace, pod.name))


def _by_eviction(cost: MoveCost) -> MoveCost:
    """The cost of an eviction: a pod that moves by surge only may not be evicted."""
    return MoveCost(math.inf, NO_SERVICE) if cost.by_surge else cost


def _used(copied: TablesCopy, pod: int) -> Floats:
    """(n_resources,) what a pod is expected to use in the next half hour."""
    profile = int(copied.profile[pod])
    replicas = copied.replicas[profile : profile + 1]
    mean = copied.profiles.mean_of((copied.keys[profile],), replicas, copied.horizon.days)
    return np.asarray(mean[0, :, copied.slots.start], dtype=np.float64)


def _highest(used: Floats, capacity: Floats) -> float | None:
    """The share of the fullest of the resources that make nodes hot; None = none is measured."""
    hot = list(HOT_RESOURCES)
    shares = used[hot] / np.where(capacity[hot] > 0, capacity[hot], np.nan)
    known = shares[np.isfinite(shares)]
    return float(known.max()) if known.size else None


def _peak(copied: TablesCopy, node: str) -> Peak | None:
    """The highest expected peak of a node in the next 24 hours, of the resources that make nodes hot."""
    load, hours = load_with_moves(copied, [copied.nodes.index(node)]), PeakHours.next_24(copied.horizon)
    found = [peaks_of_nodes(load.peaks(hours, resource=r)[0], copied.horizon)[0] for r in HOT_RESOURCES]
    known = [peak for peak in found if peak is not None and not peak.assumed and peak.share is not None]
    return max(known, key=lambda peak: peak.share or 0.0, default=None)


def _stays(
    pods: Sequence[PodInfo],
    costs: Mapping[str, MoveCost],
    lands: Mapping[str, str],
    moved: set[str],
    *,
    is_enough: bool,
    is_cut: bool,
) -> tuple[tuple[str, str], ...]:
    """Return why each pod stays. lands: where pods would go; one of each controller was asked for"""
    of_owner = {pod.owner_uid: lands[pod.uid] for pod in pods if pod.uid in lands}

    def why(pod: PodInfo) -> str:
        if not costs[pod.uid].may_move:
            return costs[pod.uid].because
        if is_enough:
            return "it need not move"
        if is_cut:
            return "it is not among the moves that were asked for"
        target = of_owner.get(pod.owner_uid)
        if target == "":
            return "no other node passes the filters"
        return "moving it helps less than it costs" + (
            f", or makes {target} hot, where it would land" if target else ""
        )

    return tuple((f"{pod.namespace}/{pod.name}", why(pod)) for pod in pods if pod.uid not in moved)


def _rollouts(cluster: AssumingCluster, pods: Sequence[PodInfo]) -> tuple[Rollout, ...]:
    """Return Deployments of which new pods are on the node, while older ones are still there."""
    state, found = cluster.state, list[Rollout]()
    by_service: dict[ServiceKey, list[PodInfo]] = {}
    for pod in pods:
        by_service.setdefault(state.service_key(pod), []).append(pod)
    for service, here in by_service.items():
        sets = [
            one
            for one in state.replica_sets.values()
            if one.namespace == service.namespace and one.owner.name == service.name
        ]
        newest = newest_revision(sets)
        if service.kind != "Deployment" or newest is None:
            continue
        old_sets = {one.uid for one in sets if one.uid != newest.uid}
        old = sum(pod.owner_uid in old_sets and not pod.terminating for pod in state.pods.values())
        new_here = sum(pod.owner_uid == newest.uid for pod in here)
        if old and new_here:
            found.append(Rollout(service.namespace, service.name, new_here, old))
    return tuple(found)
