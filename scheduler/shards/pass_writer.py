"""Writes into waiting pods which replica is to try them next."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

import orjson

from kube.client.api_answer import is_gone
from kube.client.pod_writes import MERGE, pod_path
from kube.failure_notice import FailureNotice
from kube.objects.objects import PodInfo
from kube.session.api_session import ApiSession, SessionOver
from kube.session.request_retries import is_passing_or_conflict, request_with_retries
from scheduler.shards.passed_on import PASSED_ON, PassedOn

logger = logging.getLogger(__name__)

_AT_ONCE: Final = 32


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
                lambda: orjson.dumps({"metadata": {"uid": uid, "annotations": {PASSED_ON: said.text}}}),
                content_type=MERGE,
                worth_it=is_passing_or_conflict,
            )
        if answer.is_success:
            self.written += 1
            self._notice.succeeded()
        elif not is_gone(answer):
            self._notice.failed(answer.text)
