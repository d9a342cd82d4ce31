"""The loop of `schedule` over a cluster that nothing is written to: one pass over all pods that wait.

Queue, gates, filters, scores, gangs, preemption, valley, storms and tide are those of the live loop (placing_core.py).
What differs is time and the world: no backoff passes, a pod that is placed sits at once, and so does the room that
evicted pods leave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from kube.decoding.decoding import Kind
from kube.objects.objects import PodInfo
from kube.session.session_calls import Session
from placement.plugins import Nomination
from placement.pod_groups.group_of_pod import group_of
from placement.policies.policy import Policies
from profiles.gpu.gpu_tables import GpuTables
from profiles.gpu.gpu_upkeep import planned_tide
from profiles.gpu.tide.tide_report import NO_REPORT, TideReport
from profiles.job.job_tables import JobTables
from profiles.job.job_upkeep import valley_planner
from profiles.job.jobs_plan_answers import StormReport
from profiles.schedule_settings import ScheduleSettings
from scheduler.assembly import assembled_profiles
from scheduler.binding.bind_plugins import DryRun
from scheduler.cycle.decisions import Decisions
from scheduler.cycle.placing import Looked, UnitPlacer
from scheduler.gangs.group_creator import suppose_groups
from scheduler.loop_settings import QueueOptions
from scheduler.placing_core import placing_core
from scheduler.queue.queued_pods import Popped
from scheduler.scheduling_tables import ScheduleTables
from scorer.highest_peak import share_of
from scorer.scorer import Scorer


class _WithoutBackoff(QueueOptions):
    backoff_initial: ClassVar[float] = 0.0
    backoff_longest: ClassVar[float] = 0.0
    unschedulable_flush: ClassVar[float] = 1e9


_ASSUMED_SECONDS: Final = 86_400.0
_MOST_ATTEMPTS: Final = 50
"""A pod that other pods wake more often than this is left where it is."""


def _not_looked_at(looked: Looked) -> None:
    """Nothing asks what decides."""


@dataclass(frozen=True, slots=True)
class Planned:
    """What one waiting pod would meet.

    node        : "" = none
    message     : why not, or what holds it
    rejected_by : plugins that said no
    evicts      : pods that would be evicted for it
    waits_until : unix seconds of its planned start, None = it waits for no time of its own
    group       : its PodGroup, "" = none
    queue       : `queue/owner` that it waits in, "" = it goes by priority and age
    peak_share  : expected peak of the node in the next 24 hours once all pods are where they would go; None = not known
    """

    pod: PodInfo
    profile: str
    node: str = ""
    message: str = ""
    rejected_by: tuple[str, ...] = ()
    evicts: tuple[PodInfo, ...] = ()
    waits_until: float | None = None
    group: str = ""
    peak_share: float | None = None
    queue: str = ""


def jobs_in(tables: ScheduleTables) -> JobTables | None:
    """Return the tables of the job profile; None = it does not run here."""
    return next((one.tables for one in tables.profiles.values() if isinstance(one.tables, JobTables)), None)


def gpus_in(tables: ScheduleTables) -> GpuTables | None:
    """Return the tables of the GPU profile; None = it does not run here."""
    return next((one.tables for one in tables.profiles.values() if isinstance(one.tables, GpuTables)), None)


class DryLoop:
    """Made before the cluster is read; `look_around` and then `run` once it was read."""

    def __init__(
        self,
        settings: ScheduleSettings,
        scorer: Scorer,
        tables: ScheduleTables,
        policies: Policies,
        session: Session,
    ) -> None:
        """session: reads the workloads that the tide may move."""
        self._settings, self._scorer, self.tables = settings, scorer, tables
        self.profiles = assembled_profiles(settings, policies, tables, DryRun(), clock=scorer.tables.clock)
        self._core = placing_core(scorer, tables, self.profiles, _WithoutBackoff(), clock=scorer.tables.clock)
        self._core.attach()
        with scorer.tables.reading() as cluster:
            self._cycle = self._core.cycle(
                cluster, preempt=self._preempt, withdraw=lambda pod: tables.nominated.clear(pod.uid)
            )
        self.jobs, self.gpus = jobs_in(tables), gpus_in(tables)
        jobs, gpus, queue = self.jobs, self.gpus, self._core.queue
        self._planner = None if jobs is None else valley_planner(jobs, scorer, queue, settings.job)
        has_tide = gpus is not None and settings.gpu.tide.enabled
        self._tide = planned_tide(gpus, scorer, queue, session) if gpus is not None and has_tide else None
        self._planned: dict[str, Planned] = {}
        self._nominations: list[tuple[PodInfo, Nomination]] = []
        self._evicts: dict[str, tuple[PodInfo, ...]] = {}
        self._attempts: dict[str, int] = {}

    def look_around(self) -> None:
        """Do once what the threads next to the live loop do again and again."""
        tables = self.tables
        tables.common.keep_up()
        self._core.adopt_nominations()
        if tables.tenants is not None and tables.tenants.need is not None:
            tables.tenants.need.refresh()
        with self._scorer.tables.reading():
            tables.sitting.settle()
            tables.rules.look()
        if tables.gangs is not None:
            suppose_groups(tables.gangs)
            tables.gangs.tick()
        for parts in tables.profiles.values():
            parts.keep_up()
        if self._tide is not None:
            self._tide.step()
        if self._planner is not None:
            self._planner.plan()

    def run(self, *, look_at: str = "", on_look: Callable[[Looked], None] = _not_looked_at) -> list[Planned]:
        """Decide about all waiting pods in the order of the queue; the tables keep what was decided.

        look_at : UID of a pod at which the loop ends once it has a node
        on_look : called with what decides about that pod every time its turn comes, under the lock
        """
        while (popped := self._core.queue.pop(most=self._settings.batch, wait_seconds=0.0)) is not None:
            self._decide(popped, look_at, on_look)
            found = self._planned.get(look_at)
            if found is not None and found.node:
                break
        self._note_held()
        planned = list(self._planned.values())
        peaks = self._scorer.expected_peaks([(one.pod, one.node) for one in planned])
        return [replace(one, peak_share=share_of(peak)) for one, peak in zip(planned, peaks, strict=True)]

    def look(self, pod: PodInfo) -> Looked:
        """What would decide about a pod that a gate holds, were its turn now; to be called under the lock."""
        profile = self.profiles[pod.scheduler_name]
        policy = profile.policies.choose(pod).policy
        placer = self._placer()
        placer.use(profile)
        return placer.look([pod], profile.filters_for(policy), policy)

    @property
    def placed(self) -> int:
        """Pods that were given a node so far."""
        return sum(bool(one.node) for one in self._planned.values())

    # What goes on besides the pods

    def storms(self) -> tuple[StormReport, ...]:
        """Storms that are near or ahead, and the room that is kept for them."""
        return () if self.jobs is None else tuple(self.jobs.storms.storm_reports())

    def tide(self) -> TideReport:
        """What the tide would move, and why."""
        return NO_REPORT if self._tide is None else self._tide.report

    def water(self, pods: Iterable[PodInfo]) -> dict[str, float]:
        """How far scores stack pods in place of spreading them, by pool of the pods: 0 = spread, 1 = stack."""
        with self._scorer.tables.reading() as cluster:
            return {cluster.usable_nodes.pool_of(pod): cluster.stack_weight(pod) for pod in pods}

    # Inside

    def _placer(self, look_at: str = "", on_look: Callable[[Looked], None] = _not_looked_at) -> UnitPlacer:
        with self._scorer.tables.reading() as cluster:
            return UnitPlacer(
                self.tables.view,
                cluster,
                self._scorer.tables.level()[0],
                until=cluster.now + _ASSUMED_SECONDS,
                one_by_one=bool(look_at),
                look_at=look_at,
                on_look=on_look,
            )

    def _decide(self, popped: Popped, look_at: str, on_look: Callable[[Looked], None]) -> None:
        queue, follower = self._core.queue, self._core.follower
        with self._scorer.tables.changing():
            is_of_it = any(queued.pod.uid == look_at for queued in popped.pods)
            placer = self._placer(look_at, on_look) if is_of_it else self._placer()
            with follower.trying():
                decisions = self._cycle.run(popped, placer)
            follower.placed([queued.pod for queued, _ in decisions.placed])
        for uid in decisions.gone:
            queue.remove(uid)
        self._note(decisions)
        self._evict()

    def _note(self, decisions: Decisions) -> None:
        queue = self._core.queue
        for queued, node in decisions.placed:
            pod = queued.pod
            self._planned.pop(pod.uid, None)  # in the order in which they are placed
            self._planned[pod.uid] = self._one(pod, node=node, evicts=self._evicts.get(pod.uid, ()))
            queue.done(pod.uid)
        for rejected in decisions.rejected:
            for queued in rejected.pods:
                pod = queued.pod
                self._planned[pod.uid] = self._one(
                    pod, message=rejected.message, rejected_by=tuple(sorted(rejected.by))
                )
                self._attempts[pod.uid] = self._attempts.get(pod.uid, 0) + 1
            if rejected.by:
                with self._scorer.tables.reading():
                    queue.rejected(rejected.pods, rejected.by, rejected.message)
            for queued in rejected.pods:
                if not rejected.by or self._attempts[queued.pod.uid] >= _MOST_ATTEMPTS:
                    queue.remove(queued.pod.uid)
        queue.returned(decisions.unfinished)

    def _preempt(self, seats: Sequence[tuple[PodInfo, Nomination]]) -> bool:
        """In the cycle, under the lock: nominate pods; their victims go once the cycle is over."""
        if not self.tables.nominated.nominate_all(seats):
            return False
        self._nominations += seats
        return True

    def _evict(self) -> None:
        """The victims of the last cycle leave; the pods that they leave for are tried again."""
        nominations, self._nominations = self._nominations, []
        for pod, nomination in nominations:
            self._evicts[pod.uid] = (*self._evicts.get(pod.uid, ()), *nomination.victims)
            self._scorer.tables.put(Kind.PODS, replace(pod, nominated_node=nomination.node))
            for victim in nomination.victims:
                self._planned.pop(victim.uid, None)
                self._scorer.tables.delete(Kind.PODS, victim)

    def _note_held(self) -> None:
        """Pods that no cycle has looked at: gates hold them."""
        starts = {} if self._planner is None else {one.pod.uid: one for one in self._planner.planned()}
        waiting = sorted(self._core.queue.waiting(), key=lambda one: (-one.pod.priority, one.pod.created, one.uid))
        for one in waiting:
            if one.uid in self._planned:
                continue
            start = starts.get(one.uid)
            self._planned[one.uid] = self._one(
                one.pod,
                message=one.message or (start.why if start is not None else ""),
                rejected_by=tuple(sorted(one.rejected_by)),
                waits_until=None if start is None else start.start,
            )

    def _one(
        self,
        pod: PodInfo,
        *,
        node: str = "",
        message: str = "",
        rejected_by: tuple[str, ...] = (),
        evicts: tuple[PodInfo, ...] = (),
        waits_until: float | None = None,
    ) -> Planned:
        profile = self.profiles[pod.scheduler_name].name
        queues = self.tables.queues
        queue = "" if queues is None else queues.name_of(pod)
        return Planned(pod, profile, node, message, rejected_by, evicts, waits_until, group_of(pod) or "", queue=queue)
