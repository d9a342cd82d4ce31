"""The loop of `schedule`: queue, cycle, preemption and binding around the tables, and when it may begin."""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Mapping, Sequence
from functools import partial

from base.periodic_task import PeriodicTask
from cluster.assuming_cluster import AssumingCluster
from kube.leader_election.election import Takeover
from kube.leader_election.lease import running_time
from kube.objects.objects import PodInfo
from scheduler.assembly import live_profiles
from scheduler.binding.assumptions import Assumptions
from scheduler.binding.binding_cycles import BindingCycles
from scheduler.binding.in_flight_limit import InFlightLimit
from scheduler.binding.outcome import Reserved
from scheduler.binding.volume_binder import VolumeBinder
from scheduler.binding_results import BindingResults
from scheduler.cycle.cycle import SchedulingCycle
from scheduler.cycle.decisions import NodeChoice
from scheduler.decision_advice import advice_of_cycle
from scheduler.loop_parts import LoopParts
from scheduler.placing_core import PlacingCore, placing_core
from scheduler.preemption.executor import PreemptionExecutor
from scheduler.preemption.expected_node import ExpectedNode
from scheduler.profile import SchedulingProfile
from scheduler.profile_judgement import ProfileJudge
from scheduler.scheduler import Cycle, LoopOptions, Scheduler
from scheduler.shard_tables import ShardTables
from scheduler.shards.passing_on import PassWriter
from scheduler.shards.sharded_cycle import PlannedNominations, ShardedCycle

logger = logging.getLogger(__name__)


class ScheduleLoop:
    """Implements Loop. Made before the cluster is read."""

    def __init__(self, parts: LoopParts) -> None:
        self._parts = parts
        settings, tables = parts.settings, parts.tables
        read_again = [one.read_again for one in tables.profiles.values() if one.read_again is not None]
        self._limit = InFlightLimit(settings.bindings_in_flight, clock=time.monotonic)
        self._takeover = Takeover(
            leads=lambda: settings.dry_run or parts.may_write(),
            waits_for=parts.waits_for,
            read_again=(parts.scorer.tables.read_again, *read_again),
            begin=self._begin,
        )
        self._volumes: VolumeBinder | None = None
        with parts.scorer.tables.reading() as cluster:
            if parts.role.writes_volumes:
                self._volumes = VolumeBinder(
                    parts.session, tables.view, locked=parts.scorer.tables.reading, keep=cluster.keep
                )
            profiles = live_profiles(parts, self._limit, self._volumes)
            self._core = core = placing_core(
                parts.scorer,
                tables,
                profiles,
                settings,
                clock=time.time,
                pods=parts.role.pods,
                steady=running_time,
            )
            self.queue = core.queue
            self.bindings = BindingCycles(
                parts.session,
                lambda pod: profiles[pod.scheduler_name].binding,
                limit=self._limit,
                announcing=ExpectedNode(parts.session, may_write=parts.may_write),
                observe=parts.metrics.observe_stage,
            )
            assumptions = Assumptions(
                cluster,
                seconds=settings.assume_timeout,
                binding_seconds=settings.binding_timeout,
                ask=self._ask,
                clock=time.time,
            )
            executor = PreemptionExecutor(
                parts.session,
                tables.nominated,
                locked=parts.scorer.tables.reading,
                failed=core.try_again,
                evicted=parts.metrics.evicted,
                violations=lambda victims: sum(tables.budgets.violated_by(victims)),
                tell=lambda pod, reason, note: parts.reports.preempted(pod, note),
                may_write=parts.may_write,
            )
            own_cycle = core.cycle(
                cluster,
                preempt=executor.carry_out,
                withdraw=executor.withdraw,
                observe=parts.metrics.observe_stage,
            )
            shards = tables.shards
            cycle: Cycle = own_cycle if shards is None else self._sharded(own_cycle, cluster, shards)
            looks_together = parts.role.looks_together
            self._settling = BindingResults(
                parts.scorer,
                self.queue,
                core.follower,
                assumptions,
                self.bindings,
                telling=parts.reports,
                metrics=parts.metrics,
            )
            self._scheduler = Scheduler(
                parts.scorer,
                tables.view,
                self.queue,
                core.follower,
                cycle,
                self._settling,
                telling=parts.reports,
                may_schedule=lambda: parts.role.may_decide() and self._takeover.may_decide(),
                policies=lambda: getattr(parts.policies, "policies", None),
                record=partial(self._record, profiles),
                together=None if looks_together is None else looks_together(tables.view, cluster, profiles),
                metrics=parts.metrics,
                options=LoopOptions(
                    batch=settings.batch,
                    bounded_scan=settings.bounded_scan,
                    gather=settings.gather,
                    most_unfinished=parts.role.most_unfinished,
                    together=parts.role.together,
                ),
            )
            parts.scorer.tables.attach((), self._settling)
            core.attach()
            scorer, waiting = parts.scorer, self.queue.waiting
            scorer.judge = ProfileJudge(
                tables.view,
                cluster,
                profiles,
                waiting,
                lambda: scorer.tables.level()[0],
                domain=settings.domain,
                bounded_scan=settings.bounded_scan,
            )
            if self._volumes is not None:
                parts.scorer.tables.attach((), self._volumes.waits)
            if tables.gangs is not None:
                tables.gangs.late_listeners.append(self._gang_is_late)
        self._upkeep = PeriodicTask("scheduling-upkeep", 1.0, self._keep_up, after=lambda: parts.waits_for() == "")

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
        self.bindings.stop(self._parts.settings.binding_timeout)

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
            pass_on=PassWriter(self._parts.session).put,
        )

    def _keep_up(self) -> None:
        self._scheduler.tick()
        with self._parts.scorer.tables.reading():
            self._parts.tables.sitting.settle()  # so that the next preemption need not

    def _begin(self) -> None:
        """All is read, and what a process before this one has nominated counts."""
        self._core.adopt_nominations()
        # What was read is long-lived: searched for cycles again and again it would cost a tenth of the time.
        gc.collect()
        gc.freeze()

    def _ask(self, reserved: Sequence[Reserved]) -> None:
        if self._parts.role.looks:
            self._settling.ask_about(reserved)

    def _record(
        self,
        profiles: Mapping[str, SchedulingProfile],
        cluster: AssumingCluster,
        placed: Sequence[PodInfo],
        choices: Mapping[str, NodeChoice],
        seconds: float,
    ) -> None:
        """Keep why these pods got their nodes. If that fails, they are placed all the same."""
        placed = [pod for pod in placed if not pod.stands_in]
        if self._parts.decisions is None or not placed:
            return
        try:
            advices = advice_of_cycle(
                self._parts.scorer.tables,
                cluster,
                placed,
                choices,
                because=lambda pod: profiles[pod.scheduler_name].policies.choose(pod).because,
                at=time.time(),
                seconds=seconds,
                is_shadow=self._parts.role.is_shadow,
            )
            for advice in advices:
                self._parts.decisions.advised(advice)
        except Exception:
            logger.exception("decisions of a cycle are not recorded", extra={"pods": len(placed)})

    def _gang_is_late(self, group: str) -> None:
        """Write the reason into the members' conditions at the timeout, not when the queue is next looked through."""
        gangs = self._parts.tables.gangs
        assert gangs is not None
        # A member that is given a node now is taken out of the reports after this.
        with self._parts.scorer.tables.reading():
            for pod in filter(self._core.follower.is_to_be_placed, gangs.waiting(group)):
                status = gangs.gate(pod)
                if not status.is_success:
                    self._parts.reports.failed(pod, status.reason)
