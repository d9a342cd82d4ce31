"""The loop of `schedule`: queue, cycle, preemption and binding around the tables, and when it may begin."""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Callable, Mapping, Sequence

from base.periodic_task import PeriodicTask
from cluster.assuming_cluster import AssumingCluster
from kube.leader_election.election import Takeover
from kube.leader_election.lease import running_time
from kube.objects.objects import PodInfo
from placement.policies.policy import Policies
from scheduler.assembly import assembled_profiles
from scheduler.binding.assumptions import Assumptions
from scheduler.binding.binding_cycles import BindingCycles
from scheduler.binding.in_flight_limit import InFlightLimit
from scheduler.binding.outcome import Reserved
from scheduler.binding.volume_binder import VolumeBinder
from scheduler.binding_results import BindingResults
from scheduler.cycle.cycle import SchedulingCycle
from scheduler.cycle.decisions import NodeChoice
from scheduler.decision_advice import advice_of_cycle
from scheduler.loop_role import LoopRole
from scheduler.placing_core import PlacingCore, placing_core
from scheduler.preemption.executor import PreemptionExecutor
from scheduler.preemption.expected_node import ExpectedNode
from scheduler.process import Process
from scheduler.profile_judgement import ProfileJudge
from scheduler.schedule_settings import LoopSettings
from scheduler.scheduler import Cycle, LoopOptions, Scheduler
from scheduler.scheduling_metrics import SchedulingMetrics
from scheduler.scheduling_tables import ScheduleTables
from scheduler.shard_tables import ShardTables
from scheduler.shards.passing_on import PassWriter
from scheduler.shards.sharded_cycle import PlannedNominations, ShardedCycle
from scorer.judgement import Judgement
from scorer.scorer import Scorer

logger = logging.getLogger(__name__)


class ScheduleLoop:
    """Made before the cluster is read."""

    def __init__(
        self,
        process: Process,
        scorer: Scorer,
        tables: ScheduleTables,
        settings: LoopSettings,
        policies: Policies,
        role: LoopRole,
        metrics: SchedulingMetrics,
        *,
        read_again: Sequence[Callable[[], Callable[[], bool]]] = (),
    ) -> None:
        """
        role       : what becomes of decisions
        read_again : see Takeover; what another replica may have written besides nodes and pods
        """
        self._scorer, self._tables, self._settings, self._role = scorer, tables, settings, role
        self._session, live = process.session, scorer.tables
        self._limit = InFlightLimit(settings.bindings_in_flight, clock=time.monotonic)
        self._takeover = Takeover(
            leads=lambda: settings.dry_run or process.may_write(),
            waits_for=process.waits_for,
            read_again=(live.source.read_again, *read_again),
            begin=self._begin,
        )
        with live.reading() as cluster:
            volumes: VolumeBinder | None = None
            if role.writes_volumes:
                volumes = VolumeBinder(process.session, tables.view, locked=live.reading, keep=cluster.keep)
            profiles = self._profiles = assembled_profiles(
                settings,
                policies,
                tables,
                role.bind(self._limit, self.judge),
                clock=time.time,
                volumes=volumes,
                open_gate=role.pods.gate,
            )
            self._core = core = placing_core(
                scorer, tables, profiles, settings, clock=time.time, pods=role.pods, steady=running_time
            )
            self.queue = core.queue
            self.bindings = BindingCycles(
                process.session,
                lambda pod: profiles[pod.scheduler_name].binding,
                limit=self._limit,
                announcing=ExpectedNode(process.session, may_write=process.may_write),
                observe=metrics.observe_stage,
            )
            assumptions = Assumptions(
                cluster,
                seconds=settings.assume_timeout,
                binding_seconds=settings.binding_timeout,
                ask=self._ask,
                clock=time.time,
            )
            executor = PreemptionExecutor(
                process.session,
                tables.nominated,
                locked=live.reading,
                failed=core.try_again,
                evicted=metrics.evicted,
                violations=lambda victims: sum(tables.budgets.violated_by(victims)),
                tell=lambda pod, reason, note: role.reports.preempted(pod, note),
                may_write=process.may_write,
            )
            own_cycle = core.cycle(
                cluster, preempt=executor.carry_out, withdraw=executor.withdraw, observe=metrics.observe_stage
            )
            shards = tables.shards
            cycle: Cycle = own_cycle if shards is None else self._sharded(own_cycle, cluster, shards)
            self._settling = BindingResults(
                scorer, self.queue, core.follower, assumptions, self.bindings, telling=role.reports, metrics=metrics
            )
            self._scheduler = Scheduler(
                scorer,
                tables.view,
                self.queue,
                core.follower,
                cycle,
                self._settling,
                telling=role.reports,
                may_schedule=lambda: role.may_decide() and self._takeover.may_decide(),
                policies=lambda: getattr(policies, "policies", None),
                record=self._record,
                together=None if role.looks_together is None else role.looks_together(tables.view, cluster, profiles),
                metrics=metrics,
                options=LoopOptions(
                    batch=settings.batch,
                    gather=settings.gather,
                    most_unfinished=role.most_unfinished,
                    together=role.together,
                ),
            )
            live.attach((), self._settling)
            core.attach()
            self._judge = ProfileJudge(
                tables.view,
                cluster,
                profiles,
                self.queue.waiting,
                lambda: live.level()[0],
                domain=settings.domain,
            )
            if volumes is not None:
                live.attach((), volumes.waits)
            if tables.gangs is not None:
                tables.gangs.late_listeners.append(self._gang_is_late)
        self._upkeep = PeriodicTask("scheduling-upkeep", 1.0, self._keep_up, after=process.is_read)

    def judge(self, pod: PodInfo) -> Judgement | None:
        """Return what would become of the pod now; None = no profile of this process places it. Under the lock."""
        return self._judge(pod)

    @property
    def core(self) -> PlacingCore:
        """Return queue and follower around the tables."""
        return self._core

    def since_cycle(self) -> float | None:
        return self._scheduler.since_round()

    def start(self) -> None:
        self._upkeep.start()
        self._scheduler.start()

    def stop(self) -> None:
        self._scheduler.stop()
        self._upkeep.stop()
        self.bindings.stop(self._settings.binding_timeout)

    # Inside

    def _sharded(self, cycle: SchedulingCycle, cluster: AssumingCluster, shards: ShardTables) -> ShardedCycle:
        """Return the same cycle where other replicas place at the same time."""
        nominations = PlannedNominations()
        planning = self._core.cycle(cluster, preempt=nominations, withdraw=lambda pod: None, is_plan=True)
        return ShardedCycle(
            cycle,
            planning,
            nominations,
            shards.ownership,
            shards.responsibility,
            loans=shards.moves,
            alone=shards.alone,
            pass_on=PassWriter(self._session).put,
        )

    def _keep_up(self) -> None:
        self._scheduler.tick()
        with self._scorer.tables.reading():
            self._tables.sitting.settle()  # so that the next preemption need not

    def _begin(self) -> None:
        """All is read, and what a process before this one has nominated counts."""
        self._core.adopt_nominations()
        # What was read is long-lived: searched for cycles again and again it would cost a tenth of the time.
        gc.collect()
        gc.freeze()

    def _ask(self, reserved: Sequence[Reserved]) -> None:
        if self._role.looks:
            self._settling.ask_about(reserved)

    def _record(
        self,
        cluster: AssumingCluster,
        placed: Sequence[PodInfo],
        choices: Mapping[str, NodeChoice],
        seconds: float,
    ) -> None:
        """Keep why these pods got their nodes. If that fails, they are placed all the same."""
        placed = [pod for pod in placed if not pod.stands_in]
        if self._role.decisions is None or not placed:
            return
        try:
            advices = advice_of_cycle(
                self._scorer.tables,
                cluster,
                placed,
                choices,
                because=lambda pod: self._profiles[pod.scheduler_name].policies.choose(pod).because,
                at=time.time(),
                seconds=seconds,
                is_shadow=self._role.is_shadow,
                troubles={name: profile.troubles() for name, profile in self._profiles.items()},
            )
            for advice in advices:
                self._role.decisions.advised(advice)
        except Exception:
            logger.exception("decisions of a cycle are not recorded", extra={"pods": len(placed)})

    def _gang_is_late(self, group: str) -> None:
        """Write the reason into the members' conditions at the timeout, not when the queue is next looked through."""
        gangs = self._tables.gangs
        assert gangs is not None
        # A member that is given a node now is taken out of the reports after this.
        with self._scorer.tables.reading():
            for pod in filter(self._core.follower.is_to_be_placed, gangs.waiting(group)):
                status = gangs.gate(pod)
                if not status.is_success:
                    self._role.reports.failed(pod, status.reason)
