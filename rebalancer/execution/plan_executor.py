"""Carries plans out, step by step, from their records on the API server.

    step():  records --plan_step--> what may begin, what is under way
             each of these moves --observe--> next_step --> a record, or a request
             requests: the plan is read once more; they are sent only if the record is still the one decided by
             records : written together, one status per plan

`step` is called again and again by the replica that leads. Whatever it does not manage, because the API server does
not answer or another client writes the plan, it decides anew in the next call from what it reads then.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from base.errors import ForecastError
from kube.session.session_calls import Requests, is_passing
from placement.reservations.watched_plans import MoveState
from rebalancer.execution.eviction_requests import EvictionRequests
from rebalancer.execution.move_metrics import ExecutionFigures
from rebalancer.execution.move_requests import MoveRequests
from rebalancer.execution.move_rooms import MoveRooms
from rebalancer.execution.move_steps import UNSURE_SECONDS, WAIT, Act, MoveStep, ended, is_going
from rebalancer.execution.next_step import next_step
from rebalancer.execution.observation import Attempt, Observation, Reply
from rebalancer.execution.observer import Observer, Unobserved
from rebalancer.execution.plan_progress import plan_status, plan_step, stopped
from rebalancer.execution.plan_records import PlanRecords, RebalancePlan, RecordError
from rebalancer.execution.plan_wire import MoveSpec, MoveStatus, PlanStatus
from rebalancer.execution.vanished_plans import VanishedPlans
from rebalancer.rebalance_settings import ExecutionOptions

logger = logging.getLogger(__name__)

_NEEDS_ROOM: Final = frozenset({Act.EVICT, Act.SURGE})
_MAKES_GO: Final = frozenset({Act.EVICT, Act.SURGE, Act.SCALE_BACK})
_BUSY_SECONDS: Final = 0.2
_WAIT_SECONDS: Final = 1.0
_IDLE_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 3600.0


@dataclass(frozen=True, slots=True)
class MoveReport:
    """A move has entered a state, as it is on record now. For events and logs."""

    plan: RebalancePlan
    move: MoveSpec
    record: MoveStatus


@dataclass(frozen=True, slots=True)
class StepResult:
    """
    active       : plans of which something is still to be done, as they were read or written last
    wait_seconds : after which `step` should be called again
    trouble      : what could not be done, for people; '' = nothing went wrong
    """

    active: tuple[RebalancePlan, ...] = ()
    wait_seconds: float = _IDLE_SECONDS
    trouble: str = ""


@dataclass(slots=True)
class _Memory:
    """What this executor knows of a move and the record does not hold."""

    attempt: Attempt = field(default_factory=Attempt)
    nominated_at: float = float("-inf")
    failure: str = ""  # of the last request, if the API server refused it or did not answer
    unobserved_since: float = float("inf")  # unix seconds


@dataclass(slots=True)
class _Decided:
    """Steps of the moves of one plan, by UID of the pod."""

    steps: dict[str, tuple[MoveSpec, Observation, MoveStep]] = field(default_factory=dict)
    trouble: str = ""


class Executor:
    """For the event loop of the session, one call at a time."""

    def __init__(
        self,
        session: Requests,
        records: PlanRecords,
        options: ExecutionOptions,
        *,
        report: Callable[[MoveReport], None] = lambda report: None,
        hindrance: Callable[[MoveSpec], str] = lambda move: "",
        figures: ExecutionFigures | None = None,
        rooms: MoveRooms | None = None,
        clock: Callable[[], float] = time.time,
        unsure_seconds: float = UNSURE_SECONDS,
    ) -> None:
        """
        report         : called with moves that have entered a state; quick
        hindrance      : why a move must not begin now, by rules of the caller; '' = it may; quick
        rooms          : holds room on the targets; None = none is held
        clock          : unix seconds
        unsure_seconds : for which requests of an earlier leader may still be carried out
        """
        self._records, self._options, self._clock = records, options, clock
        self._observer, self._requests = Observer(session), MoveRequests(session, clock=clock)
        self._eviction_requests = EvictionRequests(session, clock=clock)
        self._vanished = VanishedPlans(self._observer, self._requests)
        self._report, self._hindrance = report, hindrance
        self._unsure_seconds, self._rooms = unsure_seconds, rooms
        self.figures: Final = figures or ExecutionFigures()
        self._plans: dict[str, RebalancePlan] = {}
        self._is_read = False
        self._memory: dict[str, _Memory] = {}
        self._sure_from = self._look_at = 0.0
        self.reset()

    def reset(self) -> None:
        """Forget what was read. To be called when this replica begins to lead."""
        self._plans, self._is_read, self._memory = {}, False, {}
        self._vanished.forget()
        self._eviction_requests.forget()
        if self._rooms is not None:
            self._rooms.forget()
        self._sure_from = self._look_at = self._clock() + self._unsure_seconds

    async def stop(self, name: str, why: str) -> None:
        """Let nothing more of a plan begin; what is under way ends as it can. Raises RecordError."""
        for _ in range(5):
            plan = await self._records.read(name)
            if plan is None or not plan.is_active or plan.status.stop:
                return
            if await self._records.update_status(plan, stopped(plan, why)) is not None:
                self._is_read = False
                return
        raise RecordError(f"RebalancePlan {name} was not stopped: other clients write it again and again")

    async def step(self, *, may_start: bool = True) -> StepResult:
        """Go on with all plans that are active. Never raises for trouble with the API server.

        may_start : False = no move begins; those under way go on
        """
        try:
            if not self._is_read:
                await self._read()
        except ForecastError as error:
            return self._troubled(str(error))
        trouble, is_busy = "", False
        for plan in sorted(self._plans.values(), key=lambda plan: (plan.spec.created_at, plan.name)):
            try:
                is_busy |= await self._advance(plan, may_start=may_start)
            except ForecastError as error:
                self._is_read, trouble = False, str(error)
            except Exception as error:
                # Whatever one plan says stops that plan alone.
                logger.exception("a RebalancePlan cannot be carried out", extra={"plan": plan.name})
                trouble = f"RebalancePlan {plan.name} cannot be carried out: {type(error).__name__}: {error}"
        try:
            if self._clock() >= self._look_at:
                self._look_at = self._clock() + _LOOK_SECONDS
                under_way = self._under_way()
                await self._vanished.look(under_way, self._clock())
                await self._eviction_requests.sweep(under_way)
            await self._vanished.step()
        except ForecastError as error:
            trouble = trouble or str(error)
        if trouble:
            return self._troubled(trouble)
        active = tuple(self._plans.values())
        n_under_way = sum(record.state.is_under_way for plan in active for record in plan.status.moves)
        self.figures.under_way = n_under_way
        wait = _BUSY_SECONDS if is_busy else _WAIT_SECONDS if active or self._vanished else _IDLE_SECONDS
        return StepResult(active, wait, self._failure())

    def adopt(self, plan: RebalancePlan) -> None:
        """Go on with a plan that was created after the last reading, without waiting for the next one."""
        known = self._plans.get(plan.name)
        if plan.is_active and (known is None or known.uid != plan.uid):
            self._plans[plan.name] = plan

    # Inside

    async def _read(self) -> None:
        plans = await self._records.list()
        there = {plan.uid for plan in plans}
        self._vanished.note(self._plans.values(), there)
        if any(plan.uid not in there for plan in self._plans.values()):
            self._look_at = self._clock()  # what they asked for is withdrawn
        self._plans = {plan.name: plan for plan in plans if plan.is_active}
        self._is_read = True
        moving = {move.uid for plan in self._plans.values() for move in plan.spec.moves}
        self._memory = {uid: known for uid, known in self._memory.items() if uid in moving}

    async def _advance(self, plan: RebalancePlan, *, may_start: bool) -> bool:
        """Take one step of each move; returns whether something was done."""
        now = self._clock()
        others = [one for one in self._plans.values() if one.name != plan.name]
        elsewhere = [move for one in others for move in one.spec.moves if one.status_of(move).state.is_under_way]
        progress = plan_step(
            plan,
            now,
            self._options,
            may_start=may_start,
            busy={(move.namespace, move.service) for move in elsewhere},
            n_under_way_elsewhere=len(elsewhere),
        )
        decided = await self._decide(plan, (*progress.under_way, *progress.begin), now)
        await self._act(plan, decided)
        is_changed = await self._write(plan, progress.status, decided)
        if decided.trouble:
            raise Unobserved(decided.trouble)
        return is_changed or any(step.act is not None for _, _, step in decided.steps.values())

    async def _decide(self, plan: RebalancePlan, moves: Sequence[MoveSpec], now: float) -> _Decided:
        decided = _Decided()
        seen = await asyncio.gather(*(self._observe(plan, move) for move in moves), return_exceptions=True)
        for move, one in zip(moves, seen, strict=True):
            if isinstance(one, BaseException):
                step = self._unobserved(plan, move, one, now)
                decided.trouble = f"{move.namespace}/{move.pod}: {one}"
                decided.steps[move.uid] = (move, Observation(), step)
            else:
                step = next_step(move, plan.status_of(move), one, now, self._options)
                decided.steps[move.uid] = (move, one, step)
        return decided

    def _unobserved(self, plan: RebalancePlan, move: MoveSpec, error: BaseException, now: float) -> MoveStep:
        """Objects that nobody can read, whoever made them so, do not keep the place of other moves for ever."""
        if not isinstance(error, Exception):
            raise error
        if not isinstance(error, Unobserved):
            logger.error("a move cannot be observed", exc_info=error, extra={"pod": f"{move.namespace}/{move.pod}"})
        record, patience = plan.status_of(move), self._options.ready_deadline + self._options.refusal_deadline
        since = self._memory.setdefault(move.uid, _Memory()).unobserved_since
        self._memory[move.uid].unobserved_since = since = min(since, now)
        if now - since < patience:
            return WAIT
        self._memory.pop(move.uid)
        if record.state is MoveState.PLANNED:
            return ended(record, MoveState.SKIPPED, now, f"it could not be observed: {error}")
        self._vanished.add(move, record)
        return ended(record, MoveState.STUCK, now, f"it could not be observed for {patience:g} s: {error}")

    async def _observe(self, plan: RebalancePlan, move: MoveSpec) -> Observation:
        record = plan.status_of(move)
        seen = await self._observer.observe(move, record)
        known = self._memory.get(move.uid, _Memory())
        known.unobserved_since = float("inf")
        return replace(
            seen,
            is_closed=self._is_closed(plan),
            hindrance=self._hindrance(move) if record.state is MoveState.PLANNED else "",
            attempt=known.attempt,
            nominated_at=known.nominated_at,
            sure_from=self._sure_from,
        )

    async def _act(self, plan: RebalancePlan, decided: _Decided) -> None:
        """Send requests, if the record is still the one that they were decided by."""
        acting = [one for one in decided.steps.values() if one[2].act is not None]
        if not acting:
            return
        newest = await self._records.read(plan.name)
        if newest is None or newest.version != plan.version:
            raise RecordError(f"RebalancePlan {plan.name} was changed by another client: it is read again")
        done = await asyncio.gather(
            *(self._send(plan, move, seen, step) for move, seen, step in acting), return_exceptions=True
        )
        for (move, _, _), error in zip(acting, done, strict=True):
            if isinstance(error, Exception):
                # Whatever one pod says fails its own move; the others go on.
                logger.error("a request was not sent", exc_info=error, extra={"pod": f"{move.namespace}/{move.pod}"})
                why = f"{move.namespace}/{move.pod}: {type(error).__name__}: {error}"
                known = self._memory.setdefault(move.uid, _Memory())
                known.attempt, known.failure = Attempt(Reply.FAILED, self._clock(), why), why
            elif error is not None:
                raise error

    def _is_closed(self, plan: RebalancePlan) -> bool:
        before = plan.spec.start_before
        return before is not None and self._clock() >= before.timestamp()

    async def _send(self, plan: RebalancePlan, move: MoveSpec, seen: Observation, step: MoveStep) -> None:
        assert step.act is not None  # _act sends only steps that ask for something.
        record, deployment = plan.status_of(move), seen.deployment
        known = self._memory.setdefault(move.uid, _Memory())
        requests = self._requests
        if step.act is Act.NOMINATE and step.subject is not None:
            known.nominated_at, known.failure = self._clock(), ""
            if why := await requests.nominate(move, step.subject):
                fields = {"pod": f"{move.namespace}/{step.subject.name}", "node": move.to, "why": why}
                logger.warning("no node was nominated for a replacement", extra=fields)
                known.failure = f"no node was nominated for {fields['pod']}: {why}"
            return
        known.failure = ""
        if self._rooms is not None and step.act in _NEEDS_ROOM and not await self._rooms.hold(plan, move, record):
            return
        if step.act in _MAKES_GO and not is_going(seen.pod) and self._is_closed(plan):
            return  # the process stood still between the decision and now
        if step.act is Act.EVICT:
            before = known.attempt.reply
            known.attempt = await self._eviction_requests.ask(plan, move) or await requests.evict(move)
            if known.attempt.reply is not Reply.ASKED or before is not Reply.ASKED:
                self.figures.count_eviction(known.attempt.reply)
        elif step.act is Act.ASK_BUDGETS:
            known.attempt = await requests.evict(move, dry_run=True)
        elif deployment is not None and step.act is Act.SURGE:
            known.attempt = await requests.surge(move, record, deployment)
        elif deployment is not None and step.act is Act.SCALE_BACK:
            known.attempt = await requests.scale_back(move, record, deployment)
        elif deployment is not None and step.act is Act.WITHDRAW:
            known.attempt = await requests.withdraw(move, record, deployment, step.subject)
        if known.attempt.reply is Reply.FAILED:
            known.failure = f"{step.act.value} of {move.namespace}/{move.pod}: {known.attempt.why}"
        if known.attempt.reply is not Reply.ACCEPTED:
            # A budget that says no is usual; that the API server refuses a request of ours is not.
            logger.log(
                logging.WARNING if known.attempt.reply is Reply.FAILED else logging.INFO,
                "a move waits",
                extra={"pod": f"{move.namespace}/{move.pod}", "act": step.act.value, "why": known.attempt.why},
            )

    async def _write(self, plan: RebalancePlan, status: PlanStatus, decided: _Decided) -> bool:
        """Write what has changed of a plan in one request; returns whether anything had."""
        changed = {uid: step.record for uid, (_, _, step) in decided.steps.items() if step.record is not None}
        if changed:
            status = plan_status(plan, status, changed, self._options)
        if status == plan.status:
            return False
        for move, seen, step in decided.steps.values():
            if step.record is not None and step.record.state.is_final and step.record.replicas is None:
                await self._withdraw(move, seen)
        written = await self._records.update_status(plan, status)
        if written is None:
            raise RecordError(f"RebalancePlan {plan.name} was changed by another client: it is read again")
        self._note(plan, written)
        if self._rooms is not None:
            for move in written.spec.moves:
                if written.status_of(move).state.is_final and not plan.status_of(move).state.is_final:
                    await self._rooms.release(move)
        return True

    async def _withdraw(self, move: MoveSpec, seen: Observation) -> None:
        """No record says that a pod stays while an EvictionRequest of ours still asks for it. Raises RecordError."""
        answer = await self._eviction_requests.withdraw(move)
        if answer is None or is_going(seen.pod):
            return
        if is_passing(answer):
            raise RecordError(f"the EvictionRequest for {move.namespace}/{move.pod} is not withdrawn: {answer.text}")
        fields = {"pod": f"{move.namespace}/{move.pod}", "why": answer.text}
        logger.error("an EvictionRequest cannot be withdrawn: the pod may still go", extra=fields)

    def _note(self, before: RebalancePlan, written: RebalancePlan) -> None:
        if written.is_active:
            self._plans[written.name] = written
        else:
            self._plans.pop(written.name, None)
        for move in written.spec.moves:
            record = written.status_of(move)
            if record.state is before.status_of(move).state:
                continue
            if before.status_of(move).state is MoveState.WITHDRAWING:
                self._vanished.add(move, before.status_of(move))  # nothing is left to do, unless it was kept from it
            self._memory.pop(move.uid, None)  # the last request was of the state before
            self.figures.count_state(record)
            self._report(MoveReport(written, move, record))
            logger.info(
                "a move is %s",
                record.state,
                extra={
                    "plan": written.name,
                    "pod": f"{move.namespace}/{move.pod}",
                    "from": move.source,
                    "to": move.to,
                    "why": record.message,
                },
            )

    def _under_way(self) -> set[str]:
        """Return the UIDs of moves that are under way."""
        return {
            move.uid
            for plan in self._plans.values()
            for move in plan.spec.moves
            if plan.status_of(move).state.is_under_way
        }

    def _failure(self) -> str:
        """Return why a request of a move that is not over failed; '' = none did."""
        going_on = (
            move.uid
            for plan in self._plans.values()
            for move in plan.spec.moves
            if not plan.status_of(move).state.is_final
        )
        known = (self._memory.get(uid) for uid in going_on)
        return next((one.failure for one in known if one is not None and one.failure), "")

    def _troubled(self, why: str) -> StepResult:
        self.figures.troubles += 1
        logger.warning("a step of the rebalancer was not taken", extra={"why": why[:500]})
        return StepResult(tuple(self._plans.values()), _WAIT_SECONDS, why)
