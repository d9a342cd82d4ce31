"""Work outside the event loop, by a few threads, waited for until a deadline and no longer.

    queued --a thread is free--> running --> done                       the answer
      |                             |
      +--deadline--> never begun    +--deadline--> finished, unheard    Late

If all threads do work that no request waits for any more, new work is late at once: each pod would only wait for the
deadline again. The threads are daemons, so that work that hangs does not keep the process from ending.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

logger = logging.getLogger(__name__)

_OUT_SECONDS = 0.0005
"""What the loop needs to write an answer to its socket."""

Answer = TypeVar("Answer")


class Late(Exception):
    """Nothing came by the deadline."""


class AnswerDeadline:
    """By when an answer must be there. The work itself may move it, once it knows what it is about.

    due : by time.perf_counter()
    """

    __slots__ = ("_began", "_moved", "due")

    def __init__(self, seconds: float) -> None:
        self._began = time.perf_counter()
        self.due = self._began + seconds
        self._moved: Callable[[], None] | None = None

    def move(self, seconds: float) -> None:
        """Move the deadline to `seconds` after the request came. For any thread."""
        self.due = self._began + seconds
        moved = self._moved
        if moved is not None:
            moved()

    def on_move(self, moved: Callable[[], None] | None) -> None:
        """Set the function to notify, from the thread that moves it; None = no listener."""
        self._moved = moved


class _Job(Generic[Answer]):
    """after: what is left to do once the answer is out. abandoned: no request waits any more; stuck: a thread still
    runs it.
    """

    __slots__ = ("abandoned", "after", "future", "loop", "running", "stuck", "timer", "work")

    def __init__(
        self, work: Callable[[], Answer], after: Callable[[], None] | None, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.work, self.after, self.loop = work, after, loop
        self.future: asyncio.Future[Answer] = loop.create_future()
        self.running = self.abandoned = self.stuck = False
        self.timer: asyncio.TimerHandle | None = None


class Workers:
    """A bounded number of threads, started with the first work. Everything but the threads runs on one event loop."""

    def __init__(self, threads: int, name: str) -> None:
        self._threads, self._name = threads, name
        self._queue: SimpleQueue[tuple[Workers, _Job[Any]] | None] = SimpleQueue()
        self._started = False
        self._stuck = 0

    async def run(
        self, work: Callable[[], Answer], deadline: AnswerDeadline, *, after: Callable[[], None] | None = None
    ) -> Answer:
        """What `work` returns or raises. Raises Late at the deadline.

        after : done by the same thread once the answer had time to go out
        """
        self._start()
        if self._stuck >= self._threads:
            raise Late
        loop = asyncio.get_running_loop()
        job = _Job(work, after, loop)
        deadline.on_move(partial(_soon, loop, self._set_timer, job, deadline))
        self._set_timer(job, deadline)
        self._queue.put((self, job))
        try:
            return await job.future
        finally:  # also where the client has gone
            deadline.on_move(None)
            if job.timer is not None:
                job.timer.cancel()
            self._leave(job)
            del job  # an error refers to this frame, and the job to the error: the garbage collector may not come soon

    def _set_timer(self, job: _Job[Any], deadline: AnswerDeadline) -> None:
        if job.timer is not None:
            job.timer.cancel()
        if not job.abandoned:
            job.timer = job.loop.call_later(deadline.due - time.perf_counter(), self._give_up, job)

    def _give_up(self, job: _Job[Any]) -> None:
        if not job.future.done():
            job.future.set_exception(Late())

    def _leave(self, job: _Job[Any]) -> None:
        job.abandoned = True
        if job.running and not job.stuck:
            job.stuck = True
            self._stuck += 1

    def _finish(self, job: _Job[Any], result: Any, error: Exception | None) -> None:
        job.running = False
        if job.stuck:
            job.stuck = False
            self._stuck -= 1
        if job.future.done():
            if error is not None:
                logger.warning("work that was abandoned at its deadline failed later", extra={"reason": repr(error)})
        elif error is not None:
            job.future.set_exception(error)
        else:
            job.future.set_result(result)

    def _start(self) -> None:
        if self._started:
            return
        self._started = True
        for number in range(self._threads):
            threading.Thread(target=_serve, args=(self._queue,), name=f"{self._name}-{number}", daemon=True).start()
        weakref.finalize(self, _end, self._queue, self._threads)


def _serve(queue: SimpleQueue[tuple[Workers, _Job[Any]] | None]) -> None:
    while (item := queue.get()) is not None:
        workers, job = item
        if not job.abandoned:
            job.running = True
            result, error = None, None
            try:
                result = job.work()
            except Exception as raised:
                error = raised
            _soon(job.loop, workers._finish, job, result, error)
            if job.after is not None:
                _do_after(job.after)
            del result, error
        del item, workers, job  # an idle thread holds on to nothing


def _soon(loop: asyncio.AbstractEventLoop, what: Callable[..., None], *arguments: Any) -> None:
    with suppress(RuntimeError):  # the loop has ended
        loop.call_soon_threadsafe(what, *arguments)


def _do_after(after: Callable[[], None]) -> None:
    time.sleep(_OUT_SECONDS)  # the interpreter is the loop's meanwhile
    try:
        after()
    except Exception:
        logger.exception("the work after an answer failed")


def _end(queue: SimpleQueue[tuple[Workers, _Job[Any]] | None], threads: int) -> None:
    for _ in range(threads):
        queue.put(None)
