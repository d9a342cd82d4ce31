"""Keeps the objects of one resource up to date in a sink: lists them, then watches them, for ever.

This is the shell: what to ask for is in kubernetes_steps.py, what to do after which answer in kubernetes_steps.py.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Generic, TypeVar

import msgspec
import urllib3
from kubernetes.client import ApiClient

from kube.client.api_answer import OversizedAnswer, read_answer
from kube.client.kubernetes_client import UnreachableApiServer, open_request
from kube.client.kubernetes_contract import OptionalSink, ResourceSink, Timing, WatchStatus
from kube.client.kubernetes_steps import (
    Action,
    Request,
    StepOutcome,
    WatchResult,
    WatchStep,
    list_request,
    next_step,
    result_of_status,
    watch_request,
)
from kube.decoding.watched_kinds import EventType, UndecodableObject, Watched, decode_page, decode_watch_line
from kube.decoding.wire import ListMetadata

logger = logging.getLogger(__name__)

T = TypeVar("T")

_LONGEST_RETRY_AFTER = 60.0
_CHUNK_BYTES = 1 << 16
_LARGEST_PAGE = 1 << 26
_LARGEST_LIST = 1 << 28  # in one page, as it is asked for after a list in pages has expired
_LARGEST_LINE = 1 << 24
"""Bytes. An API server takes requests of at most 3 MiB, so a page of few objects always fits."""
_FEWER = 8
_LISTS_PER_READ = 10
"""A page may take so many times the silence after which its connection counts as dead."""


class LineSplitter:
    r"""Feed it chunks, get back the lines that are complete, without their ends and without empty ones.

    It works on bytes: a line feed byte is never part of a longer UTF-8 sequence, so a chunk may end inside a character.
    A line that arrives in many chunks is joined once, when it is complete: time is linear in its length.
    """

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that end in this chunk, in order."""
        if b"\n" not in chunk:
            if chunk:
                self._parts.append(chunk)
            return []
        first, *rest = chunk.split(b"\n")
        self._parts.append(first)
        lines = [b"".join(self._parts), *rest[:-1]]
        self._parts = [rest[-1]] if rest[-1] else []
        return [line for line in lines if line]

    @property
    def unfinished(self) -> int:
        """Bytes of a line whose end has not arrived."""
        return sum(map(len, self._parts))


class ResourceWatcher(Generic[T]):
    """One resource. `run` blocks until `stop`; `status` may be called from any thread.

    page_size : objects per page of a list
    clock     : unix seconds, as time.time
    rng       : for the pauses and the lengths of streams
    refresh   : what to read by from now on, asked before each list and each stream; another value than before makes the
                resource be listed again. Raises urllib3's HTTPError and OSError
    is_known  : quick; whether an event says nothing new: its line is not decoded
    """

    def __init__(
        self,
        api: ApiClient,
        sink: ResourceSink[T],
        watched: Watched[T],
        *,
        page_size: int = 500,
        timing: Timing | None = None,
        clock: Callable[[], float] = time.time,
        rng: random.Random | None = None,
        refresh: Callable[[], Watched[T]] | None = None,
        is_known: Callable[[bytes], bool] = lambda line: False,
    ) -> None:
        self.watched, self.synced = watched, threading.Event()
        self._refresh, self._is_known = refresh or (lambda: self.watched), is_known
        self._api, self._sink, self._page_size, self._timing = api, sink, page_size, timing or Timing()
        self._clock, self._rng = clock, rng or random.Random()
        self._stopping, self._wake = threading.Event(), threading.Event()
        self._lists_asked = self._lists_answered = 0  # see `list_again`
        self._counting = threading.Lock()  # of these two
        self._answer: urllib3.BaseHTTPResponse | None = None
        self._last_contact: float | None = None
        self._lists = self._watches = self._events = self._undecodable = self._failures = 0
        self._resource_version = self._event_version = self._last_error = ""
        self._known_line = b""  # the last event, if it was not decoded
        self._is_absent = False  # of what is optional
        self._relist_at: float | None = None
        self._progressed = False  # of the current list or watch

    def status(self) -> WatchStatus:
        """As it is now. Written by one thread: the figures may be an event apart from each other."""
        known_line = self._known_line  # looked at once: the next event may be a decoded one
        reached = self._reached(known_line)
        return WatchStatus(
            plural=self.watched.plural,
            synced=self.synced.is_set(),
            last_contact=self._last_contact,
            lists=self._lists,
            watches=self._watches,
            events=self._events,
            undecodable=self._undecodable,
            resource_version=reached,
            event_version=reached if known_line else self._event_version,
            failures=self._failures,
            last_error=self._last_error,
        )

    def stop(self) -> None:
        """Make `run` return soon, also out of a read that blocks."""
        self._stopping.set()
        self._interrupt()

    def list_again(self) -> Callable[[], bool]:
        """Drop the stream, or the pause before the next try, and list now. For any thread.

        Returns a function that says whether a list that began after this moment has been applied.
        """
        with self._counting:
            self._lists_asked += 1
            asked = self._lists_asked
        self._interrupt()
        return lambda: self._is_answered(asked)

    def _interrupt(self) -> None:
        self._wake.set()
        if (answer := self._answer) is not None:
            with suppress(OSError, ValueError, RuntimeError):  # it has just ended by itself
                answer.shutdown()

    def run(self) -> None:
        """List, watch, and go on after whatever happens."""
        step = WatchStep()
        while True:
            self._wake.wait(step.wait_seconds)
            self._wake.clear()
            if self._stopping.is_set():
                return
            if self._is_list_asked_for():
                step = WatchStep()
            self._progressed = False
            try:
                if (watched := self._refresh()) is not self.watched:
                    self.watched, step = watched, WatchStep()
                outcome = self._list(step) if step.action is Action.LIST else self._watch()
            except urllib3.exceptions.ReadTimeoutError as error:
                # A server that is back from an older backup accepts a resource version it has yet to reach, and says
                # nothing until it does, not even bookmarks. After progress it is only a connection that died.
                is_mute = step.action is Action.WATCH and not self._progressed
                outcome = self._failed(WatchResult.UNUSABLE if is_mute else WatchResult.FAILED, f"silence: {error}")
            except (urllib3.exceptions.HTTPError, OSError, UnreachableApiServer) as error:
                if step.action is Action.WATCH and self._is_list_asked_for():
                    continue  # by `list_again`, which ended the stream
                outcome = self._failed(WatchResult.FAILED, f"{type(error).__name__}: {error}")
            except UndecodableObject as error:
                outcome = self._failed(WatchResult.UNUSABLE, str(error))
            except Exception as error:
                # Whatever the sink or we did wrong: a fresh list mends it, a dead thread would go unnoticed.
                logger.exception("%s could not be applied, they are listed again", self.watched.plural)
                outcome = self._failed(WatchResult.UNUSABLE, f"{type(error).__name__}: {error}", log=False)
            if outcome.result is WatchResult.ENDED and self._is_relist_due():
                outcome = StepOutcome(WatchResult.UNUSABLE, progressed=True)
            step = next_step(step, outcome, self._timing.backoff, self._rng)
            self._failures = 0 if outcome.result is WatchResult.LISTED else step.failures

    def _list(self, step: WatchStep) -> StepOutcome:
        """All pages, applied at once when the last has come."""
        with self._counting:
            asked = self._lists_asked
        objects: list[T] = []
        undecodable: tuple[str, ...] = ()
        token, limit = "", self._page_size if step.in_pages else 0
        versions_left = len(self.watched.other_versions)
        while True:
            request = list_request(self.watched, limit=limit, continue_token=token)
            with self._opened(request, self._timing.list_read_seconds) as answer:
                try:
                    body = self._read_page(answer, limit)
                except OversizedAnswer as error:
                    if limit == 1:
                        return self._failed(WatchResult.UNUSABLE, f"an object of {self.watched.plural}: {error}")
                    if not limit:  # everything at once: begin again, in pages
                        token, objects, undecodable = "", [], ()
                    limit = limit // _FEWER or (1 if limit else self._page_size)
                    continue
                if result := result_of_status(answer.status):
                    if answer.status == 404 and self.watched.optional:
                        self.watched = self.watched.at_next_version()
                        if versions_left > 0:
                            versions_left -= 1
                            continue
                        if isinstance(self._sink, OptionalSink):
                            self._sink.absent()
                        else:
                            self._sink.replace([])
                        self._answer_lists(asked)
                        self.synced.set()
                        return self._not_installed(result)
                    return self._refused(result, answer, body)
            page = decode_page(self.watched, body)
            del body
            self._last_contact = self._clock()
            objects += page.objects
            undecodable += page.undecodable
            if self._stopping.is_set():
                return StepOutcome(WatchResult.FAILED)
            token = page.continue_token
            if not token:
                break
        self._sink.replace(objects)
        self._is_absent = False
        self._relist_at = None
        for reason in undecodable[:1]:
            logger.error("%d %s left out, the first: %s", len(undecodable), self.watched.plural, reason)
        self._undecodable += len(undecodable)
        self._resource_version, self._known_line = page.resource_version, b""
        self._lists += 1
        self._answer_lists(asked)
        self._last_error = ""
        self.synced.set()
        logger.info("listed %d %s at %s", len(objects), self.watched.plural, page.resource_version)
        return StepOutcome(WatchResult.LISTED)

    def _read_page(self, answer: urllib3.BaseHTTPResponse, limit: int) -> bytes:
        """limit: objects, 0 = all there are"""
        seconds = _LISTS_PER_READ * self._timing.list_read_seconds
        return read_answer(answer, most=_LARGEST_PAGE if limit else _LARGEST_LIST, seconds=seconds)

    def _not_installed(self, result: WatchResult) -> StepOutcome:
        """Ask for the resource again and again, as it may be installed later, and log it once."""
        if not self._is_absent:
            self._is_absent = True
            logger.info("%s are not installed in this cluster", self.watched.plural)
        return self._failed(result, f"{self.watched.plural} are not installed", log=False)

    def _watch(self) -> StepOutcome:
        """One stream, until it ends."""
        seconds = self._rng.randint(*self._timing.watch_seconds)
        request = watch_request(self.watched, self._resource_version, timeout_seconds=seconds)
        with self._opened(request, self._timing.watch_read_seconds) as answer:
            if result := result_of_status(answer.status):
                return self._refused(result, answer, self._read_page(answer, 1))
            self._watches += 1
            self._last_contact, self._last_error = self._clock(), ""
            if self._is_list_asked_for():  # before there was a stream to end
                return StepOutcome(WatchResult.ENDED)
            lines = LineSplitter()
            # One piece per write of the server, so an event is seen as soon as it is sent.
            while chunk := answer.read1(_CHUNK_BYTES):
                for line in lines.feed(chunk):
                    if outcome := self._apply(line):
                        return outcome
                if lines.unfinished > _LARGEST_LINE:
                    return self._failed(WatchResult.UNUSABLE, f"a watch event has more than {_LARGEST_LINE:,} bytes")
                self._last_contact = self._clock()
                if self._stopping.is_set() or self._is_relist_due() or self._is_list_asked_for():
                    break
        return StepOutcome(WatchResult.ENDED, self._progressed)

    def _apply(self, line: bytes) -> StepOutcome | None:
        """One event; an outcome if the stream cannot go on."""
        if self._is_known(line):
            # A stream that is resumed begins before it: it comes again, and does no harm.
            self._known_line = line
            self._progressed, self._failures, self._last_error = True, 0, ""
            return None
        try:
            event = decode_watch_line(self.watched, line)
        except UndecodableObject as error:
            self._undecodable += 1
            if self._relist_at is None:
                self._relist_at = self._clock() + self._timing.relist_after
                logger.error("%s; %s are listed again later", error, self.watched.plural)
            return None
        if event.type is EventType.ERROR:
            result = WatchResult.EXPIRED if event.code == 410 else WatchResult.UNUSABLE
            return self._failed(result, f"watch error {event.code}: {event.message}")
        if event.object is not None:
            apply = self._sink.delete if event.type is EventType.DELETED else self._sink.put
            apply(event.object)
            self._events += 1
            self._event_version = event.resource_version
        self._resource_version = event.resource_version or self._resource_version
        self._known_line = b""
        self._progressed, self._failures, self._last_error = True, 0, ""
        return None

    def _reached(self, known_line: bytes) -> str:
        """The version of the last event, of one that was not decoded, too."""
        try:
            metadata = msgspec.json.decode(known_line, type=_Known).object.metadata
        except msgspec.DecodeError:
            return self._resource_version
        return metadata.resource_version or self._resource_version

    @contextmanager
    def _opened(self, request: Request, read_seconds: float) -> Iterator[urllib3.BaseHTTPResponse]:
        """An answer that `stop` can interrupt; its connection is used again if it was read to its end."""
        answer = open_request(
            self._api, request, read_seconds=read_seconds, connect_seconds=self._timing.connect_seconds
        )
        self._answer = answer
        try:
            if self._stopping.is_set():
                answer.close()
            yield answer
        except BaseException:
            answer.close()
            raise
        finally:
            self._answer = None
            # A connection goes back to the pool when its answer was read to the end; otherwise the rest of this answer
            # would be taken for the next one.
            if not answer.closed:
                answer.close()

    def _refused(self, result: WatchResult, answer: urllib3.BaseHTTPResponse, body: bytes) -> StepOutcome:
        outcome = self._failed(result, f"{answer.status} {_message(body)}")
        after = answer.headers.get("Retry-After", "")
        seconds = float(after) if after.isascii() and after.isdigit() else 0.0
        return StepOutcome(outcome.result, outcome.progressed, min(seconds, _LONGEST_RETRY_AFTER))

    def _failed(self, result: WatchResult, reason: str, *, log: bool = True) -> StepOutcome:
        if self._stopping.is_set():
            return StepOutcome(WatchResult.FAILED)
        self._last_error = " ".join(reason.split())[:500]
        # The 1st, 2nd, 4th, 8th, ... failure in a row: an API server that is away for hours must not fill the log.
        if log and (self._failures & (self._failures + 1)) == 0:
            # An old resource version is the normal end of a long interruption.
            level = logging.INFO if result is WatchResult.EXPIRED else logging.WARNING
            logger.log(level, "list or watch of %s: %s", self.watched.plural, self._last_error)
        return StepOutcome(result, self._progressed)

    def _is_list_asked_for(self) -> bool:
        with self._counting:
            return self._lists_answered < self._lists_asked

    def _is_answered(self, asked: int) -> bool:
        with self._counting:
            return self._lists_answered >= asked

    def _answer_lists(self, asked: int) -> None:
        """Those that were asked for up to this number."""
        with self._counting:
            self._lists_answered = asked

    def _is_relist_due(self) -> bool:
        return self._relist_at is not None and self._clock() >= self._relist_at


class _KnownObject(msgspec.Struct):
    metadata: ListMetadata


class _Known(msgspec.Struct):
    object: _KnownObject


def _message(body: bytes) -> str:
    return body[:300].decode(errors="replace")
