"""Queue, follower and cycle around the tables of the scheduling loops, without a thread and without a writer.

The loop of `schedule`, the dry run of a cluster file and `explain` are three drivers of this one core.

    tables --changes--> follower --pods, events--> queue --units--> cycle --> decisions
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from cluster.assuming_cluster import AssumingCluster
from kube.objects.counted_pods import waits
from kube.objects.objects import PodInfo
from placement.cluster_events import ClusterEvent, EventKind
from placement.index.index import INDEXED_KINDS
from placement.plugins import Nomination
from placement.status import SUCCESS, Code, Status
from scheduler.cycle.cycle import Observe, SchedulingCycle
from scheduler.loop_settings import QueueOptions
from scheduler.profile import PodsToPlace, SchedulingProfile
from scheduler.queue.active import PrioritySort
from scheduler.queue.queued_pods import UnitOf, Units, unit_by_owner
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.queue_events import ClusterFollower
from scheduler.scheduling_tables import ScheduleTables
from scheduler.shards.sharded_cycle import ReadOnlyGangs
from scorer.scorer import Scorer


@dataclass(frozen=True, slots=True)
class PlacingCore:
    """
    profiles : by scheduler name
    queue    : of the waiting pods of all profiles
    follower : hands changes of the tables to the queue; not attached before `attach`
    """

    scorer: Scorer
    tables: ScheduleTables
    profiles: Mapping[str, SchedulingProfile]
    queue: SchedulingQueue
    follower: ClusterFollower

    def attach(self) -> None:
        """Follow the tables from now on: to be called after all tables that gates and hints read are attached."""
        self.scorer.tables.attach(INDEXED_KINDS, self.follower)
        tables = self.tables
        if tables.gangs is not None:
            tables.gangs.listeners.append(self._group_changed)
        tables.ended.append(self._nomination_ended)
        tables.rules.listen(self.forecast_changed)
        if tables.tenants is not None:
            tables.tenants.quotas.on_change.append(self._quotas_changed)
            tables.tenants.quotas.ledger.on_less_waiting.append(self._less_is_owed)
        for parts in (tables.common, *tables.profiles.values()):
            parts.listen(self.forecast_changed, self.try_again)

    def cycle(
        self,
        cluster: AssumingCluster,
        *,
        preempt: Callable[[Sequence[tuple[PodInfo, Nomination]]], bool],
        withdraw: Callable[[PodInfo], object],
        observe: Observe = lambda stage, seconds: None,
        is_plan: bool = False,
    ) -> SchedulingCycle:
        """The scheduling cycle over the tables; see SchedulingCycle for the arguments. is_plan: what it decides is
        taken back, and PodGroups are to remember nothing of it."""
        gangs = self.tables.gangs
        return SchedulingCycle(
            self.tables.view,
            cluster,
            self.profiles,
            ReadOnlyGangs(gangs) if gangs is not None and is_plan else gangs,
            preempt=preempt,
            withdraw=withdraw,
            observe=observe,
        )

    def adopt_nominations(self) -> None:
        """Count what waiting pods, those of other schedulers included, say in their status about room for them."""
        gangs, is_ours = self.tables.gangs, self.follower.is_ours
        with self.scorer.tables.reading() as cluster:
            waiting = [pod for pod in cluster.state.pods.values() if pod.nominated_node and not pod.terminating]
            if gangs is None:
                self.tables.nominated.start_over(waiting)
                return
            # Nothing is kept for a gang that is not tried: members may have gone meanwhile.
            tried = [pod for pod in waiting if not is_ours(pod) or (waits(pod) and gangs.gate(pod).is_success)]
            self.tables.nominated.start_over(tried, gangs.group_of)

    def try_again(self, pod: PodInfo) -> None:
        """Wake a pod whose preemption failed, or that was kept out of the queue for a reason without an event."""
        with self.scorer.tables.reading():
            self.queue.happened(ClusterEvent(EventKind.UNSCHEDULED_POD_CHANGED, pod=pod))

    def forecast_changed(self) -> None:
        """Wake pods that filters by the forecast have rejected."""
        with self.scorer.tables.reading():  # hints read what the lock guards
            self.queue.happened(ClusterEvent(EventKind.FORECAST_CHANGED))

    def _quotas_changed(self) -> None:
        """Pods may count in other quotas, and wait in other queues: called under the lock of the tables."""
        for waiting in self.queue.waiting():
            self.queue.happened(ClusterEvent(EventKind.UNSCHEDULED_POD_CHANGED, pod=waiting.pod))

    def _less_is_owed(self) -> None:
        """A tenant waits for less than before: called under the lock of the tables."""
        self.queue.happened(ClusterEvent(EventKind.FORECAST_CHANGED))

    def _group_changed(self, group: str) -> None:
        self.queue.happened(ClusterEvent(EventKind.GROUP_CHANGED, group=group))
        self.queue.wake_units([group])

    def _nomination_ended(self, pod: PodInfo, node: str) -> None:
        """Others may have the room that was kept."""
        self.queue.happened(ClusterEvent(EventKind.POD_LEFT, pod=replace(pod, node=node)))


def placing_core(
    scorer: Scorer,
    tables: ScheduleTables,
    profiles: Mapping[str, SchedulingProfile],
    options: QueueOptions,
    *,
    clock: Callable[[], float],
    pods: PodsToPlace | None = None,
    steady: Callable[[], float] | None = None,
) -> PlacingCore:
    """Made under the lock of the tables, before the cluster is read. profiles: by scheduler name; clock: unix
    seconds; pods: None = all of these profiles; steady: see SchedulingQueue."""
    pods = pods or PodsToPlace(frozenset(profiles))
    queues = tables.queues
    units: Units = _Owners() if tables.gangs is None else tables.gangs  # an empty one is false

    def gate(pod: PodInfo) -> Status:
        """The first PreEnqueue plugin that does not let the pod in decides."""
        if closed := pods.closed_gates(pod):
            return Status(Code.UNRESOLVABLE, "SchedulingGates", f"waits for its gates: {', '.join(closed[:5])}")
        for plugin in profiles[pod.scheduler_name].pre_enqueue:
            status = plugin.pre_enqueue(pod)
            if not status.is_success:
                return status
        return SUCCESS

    queue = SchedulingQueue(
        sort=PrioritySort() if queues is None else queues.sort,
        gate=gate,
        hints=lambda pod: profiles[pod.scheduler_name].hints_of(pod),
        units=units if queues is None else queues.units(units),
        flows=None if queues is None else queues.flows,
        options=options,
        clock=clock,
        steady=steady,
    )
    with scorer.tables.reading() as cluster:
        follower = ClusterFollower(cluster, tables.view.index, queue, pods)
    return PlacingCore(scorer, tables, profiles, queue, follower)


class _Owners:
    """Units where PodGroups are not heeded."""

    def unit_of(self, pod: PodInfo) -> UnitOf:
        return unit_by_owner(pod)
