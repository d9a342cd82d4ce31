"""Writes why pods wait: the latest about each, only what is new, at a limited rate, and never on time of the cycle."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final

from kube.client.api_answer import ApiAnswer, is_gone
from kube.failure_notice import FailureNotice
from kube.session.api_session import ApiSession
from kube.session.session_calls import SessionOver, is_passing_or_conflict, request_with_retries
from kube.status.pod_conditions import STRATEGIC_MERGE, LastReported, WaitingCondition, condition_patch, status_path
from kube.write_pacing import TokenBucket

logger = logging.getLogger(__name__)

_MOST_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class ConditionFigures:
    """Since the start. dropped: there was no room; gone: so was the pod; failed: refused or lost."""

    written: int
    dropped: int
    gone: int
    failed: int


class ConditionWriter:
    """Takes conditions from any thread, and writes them in the session's.

    rate, burst : patches a second, and at once
    most        : pods that may wait to be written; conditions of further pods are dropped, until their next attempt
    """

    def __init__(
        self,
        session: ApiSession,
        *,
        rate: float = 50.0,
        burst: float = 100.0,
        most: int = 20_000,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._session, self._rate, self._most = session, rate, most
        self._clock, self._wall = clock, wall
        self._bucket = TokenBucket(rate, burst)
        self._lock = threading.Lock()
        self._queue: OrderedDict[str, WaitingCondition] = OrderedDict()
        self._under_way: WaitingCondition | None = None  # None, too, once it is forgotten
        self._told = LastReported(most)
        self._written = self._dropped = self._gone = self._failed = 0
        self._notice = FailureNotice(logger, "conditions of pods are not written")
        self._news: asyncio.Event | None = None
        self._is_asleep = False
        self._work: Future[None] | None = None

    def start(self) -> None:
        """Begin to write; what was put in before is not lost."""
        self._work = self._session.submit(self._run())

    def stop(self) -> None:
        """Stop writing. What waits is dropped: the next leader writes it anew."""
        if self._work is not None:
            self._work.cancel()

    def put(self, pod: WaitingCondition) -> None:
        """Write it soon, unless that is what was written last. Never waits."""
        with self._lock:
            if not self._told.is_news(pod.uid, pod.text, 0.0):
                self._queue.pop(pod.uid, None)
                return
            if pod.uid not in self._queue and len(self._queue) >= self._most:
                self._dropped += 1
                return
            self._queue[pod.uid] = pod
            wake, self._is_asleep = self._is_asleep, False
        if wake:
            self._wake()

    def forget(self, uid: str) -> None:
        """The pod waits no more: bound, or gone."""
        with self._lock:
            self._queue.pop(uid, None)
            self._told.forget(uid)
            if self._under_way is not None and self._under_way.uid == uid:
                self._under_way = None

    @property
    def figures(self) -> ConditionFigures:
        return ConditionFigures(self._written, self._dropped, self._gone, self._failed)

    @property
    def waiting(self) -> int:
        """Return the number of pods whose condition is not written yet."""
        return len(self._queue)

    def _wake(self) -> None:
        if self._news is not None:
            try:
                self._session.call_soon(self._news.set)
            except SessionOver:
                return

    # In the event loop

    async def _run(self) -> None:
        news = self._news = asyncio.Event()
        while True:
            while not self._bucket.take(self._clock()):
                await asyncio.sleep(1.0 / self._rate)
            pod = await self._next(news)
            try:
                await self._write(pod)
            except Exception:
                self._failed += 1
                logger.exception("a condition was not written", extra={"uid": pod.uid})

    async def _next(self, news: asyncio.Event) -> WaitingCondition:
        while True:
            with self._lock:
                if self._queue:
                    self._under_way = self._queue.popitem(last=False)[1]
                    return self._under_way
                self._is_asleep = True
                news.clear()
            await news.wait()

    async def _write(self, pod: WaitingCondition) -> None:
        answer = await request_with_retries(
            self._session,
            "PATCH",
            status_path(pod),
            lambda: condition_patch(pod, now=self._wall(), is_first=pod.uid not in self._told),
            content_type=STRATEGIC_MERGE,
            tries=_MOST_TRIES,
            worth_it=is_passing_or_conflict,
            still_wanted=lambda: self._is_wanted(pod),
        )
        self._note(pod, answer)

    def _is_wanted(self, pod: WaitingCondition) -> bool:
        """Return whether the pod still waits, as far as is known, and nothing newer is to be written."""
        with self._lock:
            return self._under_way is pod and pod.uid not in self._queue

    def _note(self, pod: WaitingCondition, answer: ApiAnswer) -> None:
        if answer.is_success:
            with self._lock:
                if self._under_way is pod:
                    self._told.note(pod.uid, pod.text, 0.0)
            self._written += 1
            self._notice.succeeded()
        elif not self._is_wanted(pod):
            return
        elif is_gone(answer):
            self._gone += 1
        else:
            self._failed += 1
            self._notice.failed(answer.text)
