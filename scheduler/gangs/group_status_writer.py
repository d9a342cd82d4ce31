"""Writes statuses of PodGroups, and has events posted: what has changed, each group every two seconds at most.

Needs `patch` on podgroups/status of both APIs (docs/use/gangs.md). An API server that is away, or forbids it,
costs statuses only.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import msgspec

from kube.client.api_answer import NOT_SENT, ApiAnswer
from kube.failure_notice import FailureNotice
from kube.session.session_calls import Session
from kube.write_pacing import StatusPacing, is_hopeless
from placement.pod_groups.group_apis import NATIVE, api_of, pod_groups_path
from placement.pod_groups.pod_group import PodGroupInfo
from scheduler.gangs.directory import GangDirectory
from scheduler.gangs.group_events import Turns
from scheduler.gangs.group_status import (
    UNDEFINED_UPSTREAM,
    Report,
    WantedGroupStatus,
    change_of,
    change_of_native,
    wanted_status,
)

logger = logging.getLogger(__name__)

_AT_ONCE: Final = 100
"""Groups per step: they are written one after the other, so that bindings, which matter more, go first."""

_WRITE_SECONDS: Final = 5.0

Tell = Callable[[PodGroupInfo, str, str, float], None]
"""group_events.tell_of_group: group, reason, note, unix seconds."""


@dataclass(frozen=True, slots=True)
class _Due:
    key: str
    path: str
    body: bytes
    change: dict[str, Any]


class GroupStatusWriter:
    """`step` is called again and again, every second or so, by one thread.

    tell         : has an event posted
    may_write    : whether this replica leads; one that does not neither writes nor posts
    clock        : unix seconds
    each_seconds : between two writes to one group at least
    """

    def __init__(
        self,
        session: Session,
        directory: GangDirectory,
        *,
        tell: Tell = lambda group, reason, note, at: None,
        may_write: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.time,
        each_seconds: float = 2.0,
    ) -> None:
        self._session, self._directory, self._tell = session, directory, tell
        self._may_write, self._clock = may_write, clock
        self._turns = Turns()
        self._dirty: dict[str, None] = {}  # groups to look at, the longest waiting first
        self._pacing: StatusPacing[WantedGroupStatus] = StatusPacing(each_seconds)
        self._dropped: frozenset[str] = frozenset()
        self._under_way: Future[None] | None = None
        self._due: list[_Due] = []
        self._answers: dict[str, ApiAnswer] = {}
        self._notice = FailureNotice(
            logger, "statuses of PodGroups are not written", "statuses of PodGroups are written again"
        )

    def step(self) -> None:
        """Begin to write what is due, unless the step before is not through yet."""
        self._dirty.update(dict.fromkeys(sorted(self._directory.take_changed())))
        if not self._may_write() or (self._under_way is not None and not self._under_way.done()):
            return
        self._take_answers()
        due: list[_Due] = []
        now = self._clock()
        for key in list(self._dirty):
            if len(due) == _AT_ONCE:
                break
            report = self._directory.report(key)
            if report is None or (report.group.api is NATIVE and not report.ours):
                self._forget(key)
            elif (one := self._look(key, report, now)) is not None:
                due.append(one)
        if due:
            self._due = due
            self._under_way = self._session.submit(self._write(due))

    @property
    def waiting(self) -> int:
        """Groups that are to be looked at again."""
        return len(self._dirty)

    # Inside

    def _look(self, key: str, report: Report, now: float) -> _Due | None:
        """What is to be written of a group now, if anything."""
        group, wanted = report.group, wanted_status(report)
        reason, again = self._turns.due(group, wanted, now)
        if reason:
            self._tell(group, reason, wanted.message, now)
        if group.api is NATIVE:
            change = change_of_native(wanted, group.status, now)
        else:
            change = change_of(wanted, group.status, now, dropped=self._dropped)
        if change is None:
            if not again:
                del self._dirty[key]
            return None
        if not self._pacing.may_send(key, wanted, now, uid=group.uid):
            return None
        self._pacing.sent(key, wanted, now, uid=group.uid)
        # What was read is what is changed, or nothing (409): others may have conditions in the same list, and the group
        # may have been made anew. The UID would not do, the server passes over it here.
        body = msgspec.json.encode({"metadata": {"resourceVersion": group.version}, "status": change})
        path = f"{pod_groups_path(group.namespace, group.api)}/{quote(group.name, safe='')}/status"
        return _Due(key, path, body, change)

    async def _write(self, due: list[_Due]) -> None:
        """In the session's loop, one after the other."""
        forbidden = None  # the other API may be granted
        for one in due:
            if api_of(one.key) is forbidden:
                continue
            answer = await self._session.request(
                "PATCH", one.path, one.body, content_type="application/merge-patch+json", seconds=_WRITE_SECONDS
            )
            self._answers[one.key] = answer
            if answer.status == 403:
                forbidden = api_of(one.key)
            elif is_hopeless(answer.status):
                return

    def _take_answers(self) -> None:
        due, answers = self._due, self._answers
        self._due, self._answers, self._under_way = [], {}, None
        for one in due:
            answer = answers.get(one.key)
            if answer is None or answer.status == NOT_SENT:
                self._pacing.forget(one.key)  # not reached, or this replica does not lead any more
            elif answer.is_success:
                self._note_dropped(one.change, answer.body)
                self._notice.succeeded()
            elif answer.status != 404:  # it has just been deleted
                if answer.status != 409:  # it has just been changed: the watch will show it
                    self._fail(one, answer)
                if answer.status != 403:
                    self._pacing.forget(one.key)

    def _note_dropped(self, change: dict[str, Any], body: bytes) -> None:
        """Fields that were sent and are not in what the server made of it are not in its definition."""
        try:
            kept = msgspec.json.decode(body).get("status", {})
        except (msgspec.DecodeError, AttributeError):
            return
        dropped = {name for name in UNDEFINED_UPSTREAM if change.get(name) and name not in kept}
        if dropped - self._dropped:
            self._dropped |= dropped
            logger.warning(
                "the PodGroup definition that is installed has no status.%s: deploy/crds/podgroups has",
                " and no status.".join(sorted(self._dropped)),
            )

    def _fail(self, one: _Due, answer: ApiAnswer) -> None:
        why = f"{one.path}: {answer.text}"
        if answer.status == 403:
            why = f"the API server forbids it (403): grant patch on podgroups/status of {api_of(one.key).group}"
        self._notice.failed(why[:500])

    def _forget(self, key: str) -> None:
        del self._dirty[key]
        self._pacing.forget(key)
        self._turns.forget(key)
