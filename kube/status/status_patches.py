"""Patches statuses of objects: what has changed, one after the other, each object and all of them at a limited rate.

Which status an object should have is decided by pure functions beside the object's kind. An API server that is away, or
forbids it, costs statuses only.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from kube.client.api_answer import NO_ANSWER, NOT_SENT, ApiAnswer
from kube.client.pod_writes import MERGE
from kube.failure_notice import FailureNotice
from kube.session.session_calls import Requests, Session
from kube.write_pacing import TokenBucket

logger = logging.getLogger(__name__)

_HOPELESS: Final = frozenset({NO_ANSWER, NOT_SENT, 401, 429})

_FAILED_SECONDS: Final = 2.0
"""Until what failed is tried again, at least."""


async def patch_status(
    session: Requests, path: str, status: Mapping[str, Any], *, version: str = "", seconds: float = 5.0
) -> ApiAnswer:
    """Write fields of the status of an object, once.

    path    : of the object
    version : resourceVersion that was read: another one is left alone (409), the object may have been made anew. A UID
              would not do, the server passes over it here. '' = whatever it is
    """
    body: dict[str, Any] = {"status": status}
    if version:
        body["metadata"] = {"resourceVersion": version}
    return await session.request(
        "PATCH", f"{path}/status", msgspec.json.encode(body), content_type=MERGE, seconds=seconds
    )


def is_hopeless(status: int) -> bool:
    """Whether the next patch would meet the same answer, so that the rest has to wait."""
    return status in _HOPELESS or status >= 500


@dataclass(frozen=True, slots=True)
class StatusChange:
    """What is to be written of one object.

    path, version : see patch_status; uid: of the object, if its name may come back
    wanted        : what the status says then; the same is not written again soon
    right         : that is needed, for the log: podgroups/status
    """

    path: str
    wanted: object
    status: Mapping[str, Any]
    right: str
    version: str = ""
    uid: str = ""


class StatusPatches:
    """`step` is called again and again, every second or so, by one thread.

    what          : the objects, for the log
    rate          : patches a second, and at once; bindings, which matter more, go first
    each_seconds  : between two writes to one object at least
    again_seconds : until a status is written again that the object does not show: another writer, or a definition
                    without the field, may have removed it
    written       : called in the session's loop with what the API server made of a change
    clock         : unix seconds
    """

    def __init__(
        self,
        session: Session,
        what: str,
        *,
        rate: float = 100.0,
        each_seconds: float = 2.0,
        again_seconds: float = 30.0,
        may_write: Callable[[], bool] = lambda: True,
        written: Callable[[StatusChange, bytes], None] = lambda change, body: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._session, self._bucket = session, TokenBucket(rate, rate)
        self._each_seconds, self._again_seconds = each_seconds, again_seconds
        self._may_write, self._note_written, self._clock = may_write, written, clock
        self._sent: dict[str, tuple[StatusChange, float]] = {}  # while work is under way, the event loop's
        self._under_way: Future[None] | None = None
        self._notice = FailureNotice(
            logger, f"statuses of {what} are not written", f"statuses of {what} are written again"
        )

    def step(self, changes: Callable[[float], Iterable[StatusChange]]) -> None:
        """Begin to write what is due, unless the step before is not through yet.

        changes : by the time, what would have to be written; the first are written first
        """
        if not self._may_write() or (self._under_way is not None and not self._under_way.done()):
            return
        now = self._clock()
        longest = max(self._again_seconds, self._each_seconds)
        self._sent = {path: (one, at) for path, (one, at) in self._sent.items() if 0 <= now - at < longest}
        due: list[StatusChange] = []
        for one in changes(now):
            if not self._is_due(one, now):
                continue
            if not self._bucket.take(now):
                break
            due.append(one)
        if due:
            self._sent |= {one.path: (one, now) for one in due}
            self._under_way = self._session.submit(self._write(due))

    def sent_at(self, path: str) -> float:
        """Return when an object was written last; -inf = not lately."""
        return self._sent[path][1] if path in self._sent else -math.inf

    def _is_due(self, one: StatusChange, now: float) -> bool:
        if one.path not in self._sent:
            return True
        before, at = self._sent[one.path]
        pause = self._again_seconds if before.wanted == one.wanted else self._each_seconds
        if before.wanted is None:  # it failed
            pause = max(pause, _FAILED_SECONDS)
        return before.uid != one.uid or now - at >= pause

    async def _write(self, due: Iterable[StatusChange]) -> None:
        """In the session's loop, one after the other."""
        forbidden: set[str] = set()
        is_hopeless_now = False
        for one in due:
            if is_hopeless_now or one.right in forbidden:
                del self._sent[one.path]  # not reached
                continue
            answer = await patch_status(self._session, one.path, one.status, version=one.version)
            is_hopeless_now = is_hopeless(answer.status)
            if answer.is_success:
                self._notice.succeeded(part=one.right)
                self._note_written(one, answer.body)
            elif answer.status == 403:
                forbidden.add(one.right)
                why = f"the API server forbids it (403): grant patch on {one.right}"
                self._notice.failed(why, part=one.right)
            else:
                if answer.status != 404:  # so that it is tried soon
                    self._sent[one.path] = replace(one, wanted=None), self._sent[one.path][1]
                # It has just been deleted or changed, as the watch will show; or this replica does not lead any more.
                if answer.status not in (404, 409, NOT_SENT):
                    self._notice.failed(f"{one.path}: {answer.text}"[:500], part=one.right)
