"""The slow part of placing a pod, many at a time: PreBind -> Bind -> PostBind, and Unreserve if it fails.

    start --> queue --(as many as the API server stands)--> Bind --> PostBind --> done(BOUND)
      |         ^                                             |  +-- not known --> done(UNKNOWN)
      +-- PreBind, minutes: any number at once                +-- not bound
                |                                             v
                +-- a plugin says no -------------> Unreserve, done(FAILED)

`done` is called once per pod, whatever happens. After UNKNOWN nothing is released: the keeper of the assumption has
`ask` find out. PostBind, Unreserve and `done` have a thread of their own: they wait for the lock of the tables, and the
event loop must not.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, runtime_checkable

from kube.objects.objects import PodInfo
from kube.outbox import Outbox
from kube.session.api_session import ApiSession
from kube.session.session_calls import SessionOver, call
from placement.plugins import PreBind
from placement.status import Code, Status
from scheduler.binding.binding_plugins import (
    BindingPlugins,
    await_pre_bind,
    pre_bind_of,
    signed,
    tell_post_bind,
    unreserve,
)
from scheduler.binding.in_flight_limit import InFlightLimit
from scheduler.binding.outcome import BindingOutcome, Ending, Reserved, outcome_of_binding

logger = logging.getLogger(__name__)

Done = Callable[[Reserved, BindingOutcome], None]
"""Called by one thread, in the order of the outcomes; after the end by the thread that calls `start`, `ask` or
`stop`.
"""

Observe = Callable[[str, float], None]
"""Called with the stage and its seconds: binding_queue, pre_bind, bind, post_bind."""

_STOPPED: Final = BindingOutcome(Ending.UNKNOWN, "the scheduler is being stopped")


class Announcing(Protocol):
    """scheduler.preemption.expected_node.ExpectedNode."""

    async def announce(self, pod: PodInfo, node: str, work: asyncio.Future[Any]) -> bool:
        """Say where the pod will go if the work takes long; returns whether that was written."""

    async def withdraw(self, pod: PodInfo) -> None:
        """It will not go there after all."""


@runtime_checkable
class _CanLook(Protocol):
    async def look(self, pod: PodInfo, node: str) -> Status: ...


@dataclass(slots=True, eq=False)
class _Job:
    """
    since        : when its present stage began
    is_question  : look what became of it, bind nothing
    has_ended    : its outcome is known, and on its way to `done`
    is_announced : its status says which node it will get
    """

    reserved: Reserved
    plugins: BindingPlugins
    done: Done
    since: float
    is_question: bool = False
    has_ended: bool = False
    is_announced: bool = False


class BindingCycles:
    """One for all profiles.

    plugins_of : the plugins of the profile that a pod belongs to
    limit      : how many are under way at once
    announcing : says where pods will go that wait for others; None = none is announced
    clock      : seconds, monotonic
    """

    def __init__(
        self,
        session: ApiSession,
        plugins_of: Callable[[PodInfo], BindingPlugins],
        *,
        limit: InFlightLimit | None = None,
        announcing: Announcing | None = None,
        observe: Observe = lambda stage, seconds: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._session, self._plugins_of, self._observe, self._clock = session, plugins_of, observe, clock
        self._announcing = announcing
        self._limit = limit or InFlightLimit(128, clock=clock)
        self._lock = threading.Lock()
        self._open: set[_Job] = set()  # `done` has not been called yet
        self._is_over = False
        self._queue: deque[_Job] = deque()  # this and the next two: the event loop's
        self._tasks: set[asyncio.Task[None]] = set()
        self._awaiting: set[asyncio.Task[None]] = set()
        # Without a bound: what is in it is bounded by what was started.
        self._telling: Outbox[tuple[_Job, BindingOutcome]] = Outbox(
            "binding-results", self._tell_all, max_items=sys.maxsize
        )
        self._is_telling = False

    @property
    def unfinished(self) -> int:
        """Pods whose `done` is still to come, but for those in an PreBind: that they wait does not mean that
        binding is behind."""
        return len(self._open) - len(self._awaiting)

    @property
    def in_flight(self) -> int:
        """Of these, how many are being bound."""
        return len(self._tasks)

    @property
    def throttled(self) -> int:
        """Answers 429 so far."""
        return self._limit.throttled

    def start(self, reserved: Sequence[Reserved], done: Done) -> None:
        """Bind these, in the event loop."""
        now = self._clock()
        jobs = [_Job(one, self._plugins_of(one.pod), done, now) for one in reserved]
        if jobs and self._opened(jobs):
            self._in_loop(jobs, self._enqueue, jobs)

    def ask(self, reserved: Reserved, done: Done) -> None:
        """Find out what became of a pod that ended as UNKNOWN; nothing is bound. May end as UNKNOWN again."""
        job = _Job(reserved, self._plugins_of(reserved.pod), done, self._clock(), is_question=True)
        if self._opened([job]):
            self._in_loop([job], self._enqueue, [job])

    def stop(self, seconds: float = 5.0) -> None:
        """Bind no more, wait for those that are under way, and end the rest as UNKNOWN. To be called before the
        session is stopped, and not from `done`."""
        with self._lock:
            self._is_over = True
        try:
            call(self._session, self._end(seconds), seconds + 5.0, "ending the bindings under way")
        except SessionOver:
            pass
        except Exception:
            logger.exception("bindings were not ended in good order")
        with self._lock:
            left = list(self._open)
        self._finish_all(left)
        self._telling.stop(seconds + 5.0)

    # For any thread

    def _opened(self, jobs: Sequence[_Job]) -> bool:
        with self._lock:
            self._open.update(jobs)
            is_over = self._is_over
            if not is_over and not self._is_telling:
                self._is_telling = True
                self._telling.start()
        if is_over:
            self._finish_all(jobs)
        return not is_over

    def _in_loop(self, jobs: Sequence[_Job], act: Callable[..., object], *arguments: object) -> None:
        try:
            self._session.call_soon(act, *arguments)
        except SessionOver:
            self._finish_all(jobs)

    def _finish_all(self, jobs: Sequence[_Job]) -> None:
        for job in jobs:
            self._finish(job, _STOPPED)

    def _finish(self, job: _Job, outcome: BindingOutcome) -> None:
        with self._lock:
            if job.has_ended:
                return
            job.has_ended = True
        if not self._telling.put((job, outcome)):  # it has been stopped
            self._tell(job, outcome)

    def _tell_all(self, ended: Sequence[tuple[_Job, BindingOutcome]]) -> None:
        for job, outcome in ended:
            self._tell(job, outcome)

    def _tell(self, job: _Job, outcome: BindingOutcome) -> None:
        if outcome.ending is Ending.FAILED:
            unreserve(job.plugins, job.reserved)
        elif outcome.ending is Ending.BOUND and job.plugins.post_bind:
            job.since = self._clock()
            tell_post_bind(job.plugins, job.reserved)
            self._pass_stage(job, "post_bind")
        try:
            job.done(job.reserved, outcome)
        except Exception:
            logger.exception("the result of a binding could not be processed", extra={"uid": job.reserved.pod.uid})
        with self._lock:
            self._open.discard(job)

    # In the event loop

    def _enqueue(self, jobs: Sequence[_Job]) -> None:
        if self._is_over:
            self._finish_all(jobs)
            return
        for job in jobs:
            plugins = pre_bind_of(job.plugins, job.reserved) if job.plugins.pre_bind and not job.is_question else ()
            if not plugins:
                self._queue.append(job)
                continue
            task = asyncio.get_running_loop().create_task(self._await(job, plugins))
            self._awaiting.add(task)
            task.add_done_callback(self._awaiting.discard)
        self._pump()

    async def _await(self, job: _Job, plugins: Sequence[PreBind]) -> None:
        try:
            status = await self._awaited(job, plugins)
        except asyncio.CancelledError:
            self._finish(job, _STOPPED)
            raise
        self._pass_stage(job, "pre_bind")
        if not status.is_success:
            is_gone = outcome_of_binding(status).is_gone
            outcome = BindingOutcome(Ending.FAILED, status.reason, status.plugin, is_gone=is_gone)
            await self._withdraw(job, outcome)
            self._finish(job, outcome)
        elif self._is_over:
            self._finish(job, _STOPPED)
        else:
            self._queue.append(job)
            self._pump()

    async def _awaited(self, job: _Job, plugins: Sequence[PreBind]) -> Status:
        if self._announcing is None:
            return await await_pre_bind(plugins, job.reserved)
        work = asyncio.ensure_future(await_pre_bind(plugins, job.reserved))
        try:
            job.is_announced = await self._announcing.announce(job.reserved.pod, job.reserved.node, work)
            return await work
        finally:
            if not work.done():  # this was cancelled
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)

    async def _withdraw(self, job: _Job, outcome: BindingOutcome) -> None:
        """Before the outcome is reported: the pod may be nominated elsewhere after that."""
        if self._announcing is not None and job.is_announced and not outcome.is_gone:
            await self._announcing.withdraw(job.reserved.pod)

    def _pump(self) -> None:
        while self._queue and len(self._tasks) < self._limit.now:
            job = self._queue.popleft()
            self._pass_stage(job, "binding_queue")
            task = asyncio.get_running_loop().create_task(self._carry_out(job))
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not self._is_over:
            self._pump()

    async def _carry_out(self, job: _Job) -> None:
        try:
            outcome = await (self._look(job) if job.is_question else self._bind(job))
        except asyncio.CancelledError:
            self._finish(job, _STOPPED)
            raise
        except Exception as error:
            logger.exception("a binding failed", extra={"uid": job.reserved.pod.uid})
            outcome = BindingOutcome(Ending.UNKNOWN, f"an error inside the scheduler: {type(error).__name__}")
        if outcome.ending is Ending.FAILED:
            await self._withdraw(job, outcome)
        self._finish(job, outcome)

    async def _bind(self, job: _Job) -> BindingOutcome:
        for plugin in job.plugins.bind:
            status = signed(await plugin.bind(job.reserved.pod, job.reserved.node), plugin.name)
            if status.code is not Code.SKIP:
                self._pass_stage(job, "bind")
                return outcome_of_binding(status)
        return BindingOutcome(Ending.FAILED, "no Bind plugin of its profile binds this pod")

    async def _look(self, job: _Job) -> BindingOutcome:
        for plugin in job.plugins.bind:
            if isinstance(plugin, _CanLook):
                return outcome_of_binding(await plugin.look(job.reserved.pod, job.reserved.node))
        return BindingOutcome(Ending.UNKNOWN, "no Bind plugin of its profile can look at a pod")

    async def _end(self, seconds: float) -> None:
        queued = list(self._queue)
        self._queue.clear()
        self._finish_all(queued)
        for task in (waiting := list(self._awaiting)):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        for task in (left := list(self._tasks)):
            task.cancel()
        await asyncio.gather(*waiting, *left, return_exceptions=True)

    def _pass_stage(self, job: _Job, stage: str) -> None:
        now = self._clock()
        self._observe(stage, now - job.since)
        job.since = now
