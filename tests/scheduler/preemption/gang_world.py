"""Full clusters in which whole gangs preempt: tables, directory of gangs and cycle as the program has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations, product

from kube.decoding.decoding import Kind
from kube.objects.objects import NodeInfo, PodInfo
from placement.devices.device_table import DeviceTable
from placement.disruption_budgets import DisruptionBudget, DisruptionBudgets
from placement.filters.catalogue import standard_filters
from placement.filters.filter import ClusterView, Filter
from placement.index.index import INDEXED_KINDS, PlacementIndex
from placement.plugins import Nomination
from placement.pod_groups.group_of_pod import GROUP_LABEL, ROLE
from placement.pod_groups.minima import Minima
from placement.pod_groups.pod_group import ANYWHERE, GroupTopology, PodGroupInfo
from placement.pod_importance import cost_of
from placement.policies.policy import OnePolicyForAll, Policy
from scheduler.binding.binding_plugins import BindingPlugins
from scheduler.cycle.cycle import SchedulingCycle
from scheduler.cycle.decisions import Decisions
from scheduler.cycle.placing import UnitPlacer
from scheduler.gangs.directory import GangDirectory
from scheduler.loop_settings import PreemptionOptions
from scheduler.preemption.default_preemption import DefaultPreemption
from scheduler.preemption.gang_plan import GangCost
from scheduler.preemption.nominated import NominatedPods
from scheduler.preemption.sitting_pods import SittingPods
from scheduler.preemption.victim_gangs import others_of_broken_gangs
from scheduler.profile import SchedulingProfile
from scheduler.queue.queued_pods import Popped, QueuedPodInfo
from scorer.scorer import Scorer
from scorer.scoring_policy import scoring_policy
from testing.constants import with_constants
from tests.scheduler.preemption.made_up import NOW, pod

SCHEDULER = "forecast-scheduler"


def gang(name: str, minimum: int, *, roles: dict[str, int] | None = None, near: str = "") -> PodGroupInfo:
    """near: label key of nodes that all members must share."""
    topology = GroupTopology((), near) if near else ANYWHERE
    return PodGroupInfo(
        "shop", name, f"uid-{name}", 1, NOW - 100, minima=Minima(minimum, roles or {}), topology=topology
    )


def of_gang(one: PodInfo, name: str, role: str = "") -> PodInfo:
    """The pod as a member."""
    labels = {**one.labels, GROUP_LABEL: name} | ({ROLE: role} if role else {})
    return replace(one, labels=labels, scheduler_name=SCHEDULER)


class GangWorld:
    """nominations: what the cycle has asked for, by name of the pod."""

    def __init__(
        self,
        nodes: Sequence[NodeInfo],
        pods: Sequence[PodInfo],
        groups: Sequence[PodGroupInfo],
        budgets: Sequence[DisruptionBudget] = (),
        *,
        further: Callable[[GangWorld], Sequence[Filter]] = lambda world: (),
    ) -> None:
        self.scorer = Scorer(clock=lambda: NOW)
        self.nominations: dict[str, Nomination] = {}
        with self.scorer.tables.reading() as cluster:
            self.cluster = cluster
            self.devices = DeviceTable(cluster.state, is_assumed=cluster.assumed.__contains__)
            self.view = ClusterView(cluster, PlacementIndex(cluster.state), (self.devices,))
            self.gangs = GangDirectory(
                cluster.state,
                is_ours=lambda pod: pod.scheduler_name == SCHEDULER,
                is_assumed=cluster.assumed.__contains__,
                clock=lambda: NOW,
            )
            self.budgets = DisruptionBudgets()
            self.budgets.replace(budgets)
            self.nominated = NominatedPods(cluster.state)
            self.sitting = SittingPods(cluster.state, self.budgets, self.gangs)
            self.preemption = DefaultPreemption(
                self.sitting, self.budgets, self.nominated, clock=lambda: NOW, gangs=self.gangs,
                assumed=cluster.assumed, options=with_constants(PreemptionOptions(), protect_started=60.0),
            )  # fmt: skip
            for follower in (self.view.index, self.devices, self.gangs, self.nominated, self.sitting):
                self.scorer.tables.attach(INDEXED_KINDS if follower is self.view.index else (), follower)
            self.profile = SchedulingProfile(
                "online", SCHEDULER, OnePolicyForAll(Policy(scoring_policy(self.scorer.options))),
                BindingPlugins(bind=()),
                filters=(*standard_filters(), *further(self), self.nominated),
                post_filters=(self.preemption,),
            )  # fmt: skip
            self.cycle = SchedulingCycle(
                self.view, cluster, {SCHEDULER: self.profile}, self.gangs, preempt=self._preempt
            )
        self.scorer.tables.replace(Kind.NODES, nodes)
        self.scorer.tables.replace(Kind.PODS, pods)
        with self.scorer.tables.reading():
            self.gangs.replace_groups(groups)

    def _preempt(self, seats: Sequence[tuple[PodInfo, Nomination]]) -> bool:
        self.nominations |= {pod.name: there for pod, there in seats}
        return self.nominated.nominate_all(seats)

    def run(self, *members: PodInfo, group: str = "shop/high") -> Decisions:
        """One cycle of these pods as a gang; group '' = each by itself."""
        queued = tuple(QueuedPodInfo(self.cluster.state.pods[one.uid], group or one.uid, NOW) for one in members)
        with self.scorer.tables.reading():
            placer = UnitPlacer(self.view, self.cluster, self.scorer.tables.level()[0], NOW + 60)
            return self.cycle.run(Popped(group or "unit", bool(group), queued), placer)

    @property
    def victims(self) -> list[str]:
        """Names, in the order of nominations."""
        return [victim.name for there in self.nominations.values() for victim in there.victims]

    def seats(self) -> dict[str, str]:
        """Node by pod, of all that sit."""
        return {one.name: one.node for one in self.cluster.state.pods.values() if one.node}

    def cost(self, names: Sequence[str]) -> GangCost:
        """Of evicting these."""
        pods = [self.cluster.state.pods[name] for name in names]
        if not pods:
            return GangCost()
        one = cost_of(-1, pods, sum(self.budgets.violated_by(pods)))
        broken = {self.gangs.group_of(other) for other in pods if self.gangs.breaks_without(*self._of(other, names))}
        n_gangs = len(broken - {None})
        return GangCost(one.violations, one.highest, one.sum_priorities, one.n_victims, n_gangs)

    def _of(self, one: PodInfo, names: Sequence[str]) -> tuple[str, Sequence[str]]:
        return self.gangs.group_of(one) or "", names


def least_cost(world: GangWorld, members: Sequence[PodInfo]) -> GangCost | None:
    """By trying every set of victims and every node for each member: CPU alone decides."""
    state = world.cluster.state
    nodes = {one.name: one.allocatable["cpu"] for one in state.nodes if one is not None}
    kept = {world.gangs.group_of(one) for one in state.pods.values() if one.priority >= members[0].priority} - {None}
    low = [one for one in state.pods.values() if one.node and one.priority < members[0].priority]
    low = [one for one in low if world.gangs.group_of(one) not in kept]
    best: GangCost | None = None
    for n_victims in range(len(low) + 1):
        for victims in combinations(low, n_victims):
            if others_of_broken_gangs(victims, world.gangs):
                continue  # the whole set is tried, too
            names = [one.uid for one in victims]
            cost = world.cost(names)
            if (best is None or cost < best) and _fit(world, nodes, members, set(names)):
                best = cost
    return best


def _fit(world: GangWorld, nodes: dict[str, float], members: Sequence[PodInfo], gone: set[str]) -> bool:
    free = dict(nodes)
    for one in world.cluster.state.pods.values():
        if one.node and one.uid not in gone:
            free[one.node] -= one.requests["cpu"]
    for places in product(free, repeat=len(members)):
        left = dict(free)
        for name, member in zip(places, members, strict=True):
            left[name] -= member.requests["cpu"]
        if all(amount > -1e-9 for amount in left.values()):
            return True
    return False


def low(name: str, on: str, *, cpu: float = 1.0, priority: int = 0, **facts: object) -> PodInfo:
    """A pod that sits."""
    return pod(name, on, cpu=cpu, priority=priority, **facts)  # type: ignore[arg-type]
