"""Looks, plans, and moves trainings, again and again, in a thread of its own.

    read    workloads of training, from the API server
    look    pods, nodes and forecast, from the tables, under their lock
    plan    gpu_demand.py, tide_plan.py; TideRoom goes by it from then on, in every replica
    act     the replica that leads carries the moves out, unless it is a dry run

Nothing is remembered that is not in the cluster, but whom to leave alone for a while since it could not be scaled: the
moves of the day are on the workloads (tide_annotation.py), so that a replica that starts or takes over decides the
same. A workload is read again before every decision about it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from typing import Final, Protocol

import numpy as np

from base.arrays import Floats
from base.periodic_task import PeriodicTask
from cluster.readable_tables import ReadableTables
from kube.session.session_calls import Session, call
from placement.cluster_events import ClusterEvent, EventKind
from placement.devices.declared_devices import PodGpus
from profiles.gpu.gpu_settings import TideOptions
from profiles.gpu.tide.gpu_demand import TideDemand, demand_ahead, held_demand
from profiles.gpu.tide.gpu_holders import TideTable
from profiles.gpu.tide.scaling import RetryPauses, Scaled, ScalingOutcome, scale
from profiles.gpu.tide.situation import KnownTraining, Look, look, trainings_of, uses_of, workloads_seen
from profiles.gpu.tide.tide_annotation import MOVES, record_after, written
from profiles.gpu.tide.tide_filter import TideRoom
from profiles.gpu.tide.tide_metrics import TideMetrics
from profiles.gpu.tide.tide_plan import PlannedTide, Training, decide, look_ahead, moves_today
from profiles.gpu.tide.tide_report import NO_REPORT, ReportedMove, ReportedTraining, TideReport, reason
from profiles.gpu.tide.training_annotations import TIDE, Role
from profiles.gpu.tide.workload_reader import ReadWorkloads, WorkloadReader
from profiles.gpu.tide.workloads import WorkloadState

logger = logging.getLogger(__name__)

_READ_SECONDS: Final = 60.0
_ACT_SECONDS: Final = 120.0
_AT_ONCE: Final = 16
_LARGEST_SHARE: Final = 0.5
_REMEMBERED: Final = 200
_HALF_HOUR: Final = 1800.0
_BLIND_SLOTS: Final = 48
_PREVIEW_SECONDS: Final = 300.0

Tell = Callable[[WorkloadState, str, str], None]
"""Posts an event soon, and never waits: the workload it is about, its reason, its note."""


class WokenQueue(Protocol):
    """scheduler.queue.scheduling_queue.SchedulingQueue."""

    def happened(self, event: ClusterEvent) -> None:
        """Under the lock of the tables."""


@dataclass(frozen=True, slots=True)
class _Previewed:
    """at: unix seconds, when; first: when its first half hour begins."""

    at: float
    first: float
    plan: PlannedTide


class Tide:
    """One thread plans and acts; any may look at `report`."""

    def __init__(
        self,
        tables: ReadableTables,
        table: TideTable,
        room: TideRoom,
        queue: WokenQueue,
        session: Session,
        options: TideOptions,
        pod_gpus: PodGpus,
        *,
        metrics: TideMetrics | None = None,
        tell: Tell = lambda state, reason, note: None,
        no_forecast_because: Callable[[], str] = lambda: "",
        may_write: Callable[[], bool] = lambda: True,
        after: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.time,
        stopwatch: Callable[[], float] = time.perf_counter,
    ) -> None:
        """
        table               : follows `tables`
        no_forecast_because : asked where there is none
        may_write           : whether this replica leads
        after               : whether the cluster was read
        clock               : unix seconds
        """
        self._tables, self._table, self._room, self._queue = tables, table, room, queue
        self._session, self._options, self._pod_gpus = session, options, pod_gpus
        self.metrics, self._tell, self._why_not = metrics or TideMetrics(), tell, no_forecast_because
        self._may_write, self._clock, self._stopwatch = may_write, clock, stopwatch
        self._reader: WorkloadReader | None = None
        self._read = ReadWorkloads()
        self._made: deque[ReportedMove] = deque(maxlen=_REMEMBERED)
        self._told: dict[str, str] = {}
        self._looked_at: float | None = None
        self._pauses = RetryPauses(options.every)
        self._previewed: _Previewed | None = None
        self._ahead: tuple[ReportedMove, ...] = ()
        self.report: TideReport = NO_REPORT
        self._every = PeriodicTask("tide", options.every, self.step, after=after, largest_share=_LARGEST_SHARE)

    def start(self) -> None:
        """Begin. Once only."""
        self._every.start()

    def stop(self) -> None:
        """End, once what is under way is done."""
        self._every.stop()

    def step(self) -> None:
        """Read, look, plan and act."""
        is_read = self._read_workloads()
        began, now = self._stopwatch(), self._clock()
        with self._tables.reading() as cluster:
            seen = look(self._table, cluster)
            training, others = self._table.training(), self._table.others()
        known = trainings_of(seen, self._read.found, self._options, self._pod_gpus)
        demand, zone = self._demand(seen, known, now)
        plan = self._plan([one.training for one in known], demand, now, zone)
        self._use(demand)
        self.metrics.plan_seconds.observe(self._stopwatch() - began)
        self._count_shortfall(demand, training, others, now)
        planned = _levels(known, plan, len(seen.pools))
        self.metrics.show(seen.pools, demand, training, others, planned, plan.lacking)
        self.metrics.unread.set(len(self._read.failures))
        writes = self._writes(is_read)
        told = [ReportedMove(move, reason(move, demand, zone), writes) for move in plan.moves]
        paused: list[ReportedMove] = []
        if not writes:
            told, paused = self._without_pauses(told, known, now)
            told = self._act(told, known, seen.pools)
            self._made.extendleft(told)
        elif self._options.dry_run and self._may_write():
            for one in told:
                self._tell_dry_run(one)
        self.report = TideReport(
            made=now,
            no_forecast_because="" if demand.forecast else (self._why_not() or "there is no usable forecast"),
            writes=writes,
            pools=seen.pools,
            demand=demand,
            training=training,
            others=others,
            levels=plan.levels,
            trainings=tuple(
                ReportedTraining(one.training, moves_today(one.training, now, zone), one.terms.mistakes)
                for one in known
            ),
            moves=(*paused, *self._made) if not writes else (*told, *self._made),
            ahead=self._ahead,
            failures=dict(self._read.failures),
        )

    # Inside

    def _read_workloads(self) -> bool:
        """Whether it is known what the workloads are now. Without an answer those last read are shown, not moved."""
        with self._tables.reading() as cluster:
            wanted = workloads_seen(look(self._table, cluster))

        async def read() -> ReadWorkloads:
            if self._reader is None:
                self._reader = WorkloadReader(self._session, self._options.kinds, clock=self._clock)
            return await self._reader.read(wanted)

        try:
            self._read = call(self._session, read(), _READ_SECONDS, "reading what trainings there are")
        except (RuntimeError, TimeoutError) as error:
            logger.warning("workloads of training cannot be read", extra={"why": str(error) or type(error).__name__})
            return False
        return True

    def _demand(self, seen: Look, known: Sequence[KnownTraining], now: float) -> tuple[TideDemand, tzinfo]:
        uses = uses_of(seen, known, now)
        horizon = seen.horizon
        if horizon is None:
            starts = now // _HALF_HOUR * _HALF_HOUR + _HALF_HOUR * np.arange(_BLIND_SLOTS + 1, dtype=np.float64)
            return held_demand(uses, seen.capacity, starts), UTC
        slots = range(min(horizon.slot, horizon.n_slots - 1), horizon.n_slots + 1)
        starts = np.array([horizon.start_of(slot).timestamp() for slot in slots])
        return demand_ahead(uses, seen.capacity, starts, now, self._options), horizon.zone

    def _plan(self, trainings: Sequence[Training], demand: TideDemand, now: float, zone: tzinfo) -> PlannedTide:
        """Moves are decided every time; the hours ahead, which take a hundred times as long, when a training is moved
        and every few minutes.
        """
        moves, lacking = decide(trainings, demand, now, self._options, zone)
        known = self._previewed
        is_of_now = known is not None and known.first == demand.starts[0] and len(known.plan.lacking) == len(lacking)
        if known is None or moves or not (is_of_now and 0 <= now - known.at < _PREVIEW_SECONDS):
            ahead = look_ahead(trainings, demand, now, self._options, zone)
            self._previewed = _Previewed(now, float(demand.starts[0]), ahead)
            self._ahead = tuple(ReportedMove(move, reason(move, demand, zone)) for move in ahead.ahead)
            return ahead
        return replace(known.plan, moves=(), lacking=lacking)

    def _use(self, demand: TideDemand) -> None:
        """Training pods that wait are looked at again where there is more room than before."""
        if self._room.use(demand):
            with self._tables.reading():
                self._queue.happened(ClusterEvent(EventKind.FORECAST_CHANGED))

    def _count_shortfall(self, demand: TideDemand, training: Floats, others: Floats, now: float) -> None:
        last, self._looked_at = self._looked_at, now
        seconds = 0.0 if last is None else min(max(0.0, now - last), 4 * self._options.every)
        free = demand.capacity - training - others
        for at in np.flatnonzero((demand.waiting > free + 1e-6) & (training > 0)).tolist():
            self.metrics.shortfall.labels(self._table.pools[at]).inc(seconds)

    def _writes(self, is_read: bool) -> str:
        """'' = moves are to be carried out."""
        if self._options.dry_run:
            return "dry run: nothing is written"
        if not self._may_write():
            return "another replica leads"
        return "" if is_read else "workloads cannot be read"

    def _without_pauses(
        self, told: list[ReportedMove], known: Sequence[KnownTraining], now: float
    ) -> tuple[list[ReportedMove], list[ReportedMove]]:
        """Moves to be made, and those of trainings that could not be scaled a short while ago."""
        self._pauses.keep([one.training.key for one in known])
        pauses = [self._pauses.left(one.move.training.key, now) for one in told]
        return [one for one, left in zip(told, pauses, strict=True) if not left], [
            replace(one, outcome=f"it could not be scaled, and is tried again in {left:.0f} s")
            for one, left in zip(told, pauses, strict=True)
            if left
        ]

    def _act(
        self, told: list[ReportedMove], known: Sequence[KnownTraining], pools: Sequence[str]
    ) -> list[ReportedMove]:
        if not told:
            return told
        by_key = {one.training.key: one for one in known}
        try:
            return call(self._session, self._carry_out(told, by_key, pools), _ACT_SECONDS, "scaling trainings")
        except (RuntimeError, TimeoutError) as error:
            return [replace(one, outcome=f"failed: {error or type(error).__name__}") for one in told]

    async def _carry_out(
        self, told: list[ReportedMove], by_key: dict[str, KnownTraining], pools: Sequence[str]
    ) -> list[ReportedMove]:
        gate = asyncio.Semaphore(_AT_ONCE)

        async def one_move(one: ReportedMove) -> ReportedMove:
            async with gate:
                return await self._scale(one, by_key[one.move.training.key], pools)

        # Room for inference first.
        ordered = sorted(told, key=lambda one: one.move.after > one.move.before)
        return list(await asyncio.gather(*map(one_move, ordered)))

    async def _scale(self, one: ReportedMove, known: KnownTraining, pools: Sequence[str]) -> ReportedMove:
        move, state = one.move, known.state
        assert self._reader is not None
        record = record_after(
            move,
            size=known.size,
            moves=move.number,
            pool=pools[move.training.pool],
            gang=known.gang,
            generation=state.generation,
        )
        label = state.labels.get(TIDE) != Role.TRAINING.value
        try:
            done = await scale(self._session, self._reader, state, move.after, {MOVES: written(record)}, label=label)
        except Exception as error:
            logger.exception("a training cannot be scaled", extra={"training": move.training.key})
            done = Scaled(ScalingOutcome.FAILED, str(error))
        self.metrics.moves.labels(move.kind.value, done.outcome.value).inc()
        if done.outcome is ScalingOutcome.FAILED:
            self._pauses.failed(move.training.key, self._clock())
        else:
            self._pauses.went_well(move.training.key)
        fields = {"training": move.training.key, "from": move.before, "to": move.after, "why": one.why}
        if done.outcome is ScalingOutcome.DONE:
            if move.beyond_cap:
                self.metrics.beyond_cap.inc()
            logger.info("a training is scaled for the tide", extra=fields)
            self._tell(state, f"Tide{move.kind.name.capitalize()}", one.why)
        elif done.outcome is ScalingOutcome.FAILED:
            logger.warning("a training cannot be scaled", extra=fields | {"failure": done.why})
            self._tell(state, "TideFailed", f"{one.why}; {done.why}"[:900])
        return replace(one, outcome=f"{done.outcome.value}: {done.why}" if done.why else done.outcome.value)

    def _tell_dry_run(self, one: ReportedMove) -> None:
        """Once for each number of replicas: it is decided again with every look."""
        key, move = one.move.training.key, one.move
        said = f"{move.before}->{move.after}"
        if self._told.get(key) == said:
            return
        if len(self._told) >= _REMEMBERED:
            self._told.clear()
        self._told[key] = said
        self.metrics.moves.labels(move.kind.value, "dry_run").inc()
        logger.info("a training would be scaled for the tide", extra={"training": key, "why": one.why})


def _levels(known: Sequence[KnownTraining], plan: PlannedTide, n_pools: int) -> Floats:
    levels = np.zeros(n_pools)
    after = {move.training.key: move.after for move in plan.moves}
    for one in known:
        levels[one.training.pool] += after.get(one.training.key, one.training.replicas) * one.training.gpus
    return levels
