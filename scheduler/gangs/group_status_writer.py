"""Writes statuses of PodGroups, and has events posted: what has changed, each group every two seconds at most.

Needs `patch` on podgroups/status of both APIs (docs/use/gangs.md).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from urllib.parse import quote

import msgspec

from kube.session.session_calls import Session
from kube.status.status_patches import StatusChange, StatusPatches
from placement.pod_groups.group_apis import pod_groups_path
from placement.pod_groups.pod_group import PodGroupInfo
from scheduler.gangs.directory import GangDirectory
from scheduler.gangs.group_events import Turns
from scheduler.gangs.group_status import UNDEFINED_UPSTREAM, Report, change_of, change_of_native, wanted_status

logger = logging.getLogger(__name__)

Tell = Callable[[PodGroupInfo, str, str, float], None]
"""group_events.tell_of_group: group, reason, note, unix seconds."""


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
        self._directory, self._tell = directory, tell
        self._turns = Turns()
        self._dirty: dict[str, None] = {}  # groups to look at, the longest waiting first
        self._dropped: frozenset[str] = frozenset()
        self._patches = StatusPatches(
            session,
            "PodGroups",
            each_seconds=each_seconds,
            may_write=may_write,
            written=self._note_dropped,
            clock=clock,
        )

    def step(self) -> None:
        """Begin to write what is due, unless the step before is not through yet."""
        self._dirty.update(dict.fromkeys(sorted(self._directory.take_changed())))
        self._patches.step(self._changes)

    @property
    def waiting(self) -> int:
        """Groups that are to be looked at again."""
        return len(self._dirty)

    # Inside

    def _changes(self, now: float) -> Iterator[StatusChange]:
        for key in list(self._dirty):
            report = self._directory.report(key)
            if report is None or (report.group.api.is_native and not report.ours):
                del self._dirty[key]
                self._turns.forget(key)
            elif (one := self._look(key, report, now)) is not None:
                yield one

    def _look(self, key: str, report: Report, now: float) -> StatusChange | None:
        """What is to be written of a group now, if anything."""
        group, wanted = report.group, wanted_status(report)
        reason, again = self._turns.due(group, wanted, now)
        if reason:
            self._tell(group, reason, wanted.message, now)
        if group.api.is_native:
            change = change_of_native(wanted, group.status, now)
        else:
            change = change_of(wanted, group.status, now, dropped=self._dropped)
        if change is None:
            if not again:
                del self._dirty[key]
            return None
        # What was read is what is changed, or nothing: others may have conditions in the same list.
        path = f"{pod_groups_path(group.namespace, group.api)}/{quote(group.name, safe='')}"
        right = f"podgroups/status of {group.api.group}"
        return StatusChange(path, wanted, change, right, version=group.version, uid=group.uid)

    def _note_dropped(self, change: StatusChange, body: bytes) -> None:
        """Fields that were sent and are not in what the server made of it are not in its definition."""
        try:
            kept = msgspec.json.decode(body).get("status", {})
        except (msgspec.DecodeError, AttributeError):
            return
        dropped = {name for name in UNDEFINED_UPSTREAM if change.status.get(name) and name not in kept}
        if dropped - self._dropped:
            self._dropped |= dropped
            logger.warning(
                "the PodGroup definition that is installed has no status.%s: deploy/crds/podgroups has",
                " and no status.".join(sorted(self._dropped)),
            )
