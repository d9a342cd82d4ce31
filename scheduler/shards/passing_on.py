"""Which replica is to try a waiting pod next: read from its annotation, and written into it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from kube.client.api_answer import is_gone
from kube.client.pod_writes import MERGE, pod_path
from kube.failure_notice import FailureNotice
from kube.objects.objects import ANNOTATION_PREFIX, PodInfo
from kube.session.api_session import ApiSession
from kube.session.session_calls import SessionOver, is_passing_or_conflict, request_with_retries

PASSED_ON: Final = f"{ANNOTATION_PREFIX}passed-on"
"""Annotation of a waiting pod: how many replicas have tried it in vain, and behind @ the shard that is to try now."""

_MOST_TRIES: Final = 1_000

logger = logging.getLogger(__name__)
_AT_ONCE: Final = 32


@dataclass(frozen=True, slots=True)
class PassedOn:
    """tries: of replicas, in vain; shard: whose owner tries it now, -1 = whose turn it is"""

    tries: int = 0
    shard: int = -1

    @property
    def text(self) -> str:
        """Return the value of the annotation."""
        return str(self.tries) if self.shard < 0 else f"{self.tries}@{self.shard}"


def passed_on(pod: PodInfo) -> PassedOn:
    """Return what the pod says; a text that cannot be read says nothing."""
    return read_passed_on(pod.annotations.get(PASSED_ON, ""))


def read_passed_on(text: str) -> PassedOn:
    """Return what the annotation says, '' = there is none."""
    if not text or len(text) > 12 or not text.isascii():
        return PassedOn()
    tries, _, shard = text.partition("@")
    if not tries.isdigit() or not (shard.isdigit() or not shard):
        return PassedOn()
    return PassedOn(min(int(tries), _MOST_TRIES), int(shard) if shard else -1)


class PassWriter:
    """Patches pods/status, which a scheduler may write anyway. For any thread; never waits."""

    def __init__(self, session: ApiSession) -> None:
        self._session = session
        self._latest: dict[str, tuple[PodInfo, PassedOn]] = {}  # the event loop's
        self._writing = set[asyncio.Task[None]]()  # the event loop itself would not keep them
        self._limit = asyncio.Semaphore(_AT_ONCE)
        self._notice = FailureNotice(logger, "pods are not passed on to other replicas")
        self.written = 0

    def put(self, passed: Sequence[tuple[PodInfo, PassedOn]]) -> None:
        """Write these soon. One that cannot be written stays with this replica, which tries it again."""
        try:
            self._session.call_soon(self._put, list(passed))
        except SessionOver:
            return

    def _put(self, passed: Sequence[tuple[PodInfo, PassedOn]]) -> None:
        for pod, said in passed:
            is_under_way = pod.uid in self._latest
            self._latest[pod.uid] = pod, said
            if not is_under_way:
                task = asyncio.get_running_loop().create_task(self._write(pod.uid))
                self._writing.add(task)
                task.add_done_callback(self._written)

    def _written(self, task: asyncio.Task[None]) -> None:
        self._writing.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._notice.failed(f"{type(error).__name__}: {error}")

    async def _write(self, uid: str) -> None:
        async with self._limit:
            pod, said = self._latest.pop(uid)
            answer = await request_with_retries(
                self._session,
                "PATCH",
                f"{pod_path(pod)}/status",
                lambda: msgspec.json.encode({"metadata": {"uid": uid, "annotations": {PASSED_ON: said.text}}}),
                content_type=MERGE,
                worth_it=is_passing_or_conflict,
            )
        if answer.is_success:
            self.written += 1
            self._notice.succeeded()
        elif not is_gone(answer):
            self._notice.failed(answer.text)
