"""While a pod of ours waits for volumes or devices, its status says which node it will get.

KEP-5278, as narrowed in 1.35, has kube-scheduler alone write that: of these pods we are the scheduler.

    wait begins --1 s--> status.nominatedNodeName --bound--> the API server clears it
         |                         +-----it fails--> withdrawn
         +--over by then--> nothing is written

An autoscaler that sees the node empty for minutes would delete it, and another scheduler would fill it. If this process
ends meanwhile the nomination stays, so that its successor tries that node first.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

from kube.client.pod_writes import MERGE, nomination_body, pod_path
from kube.objects.objects import PodInfo
from kube.session.session_calls import Requests, request_with_retries

logger = logging.getLogger(__name__)

_AFTER_SECONDS: Final = 1.0
"""Most claims are written and bound by then: these pods cost no further write."""


class ExpectedNode:
    """Implements Announcing of BindingCycles. may_write: the lease says so."""

    def __init__(
        self,
        session: Requests,
        *,
        may_write: Callable[[], bool] = lambda: True,
        after_seconds: float = _AFTER_SECONDS,
    ) -> None:
        self._session, self._may_write, self._after_seconds = session, may_write, after_seconds

    async def announce(self, pod: PodInfo, node: str, work: asyncio.Future[Any]) -> bool:
        """Say where the pod will go if the work takes long; returns whether that was written."""
        if pod.nominated_node == node:
            return False  # room was made for it there, which is withdrawn elsewhere
        await asyncio.wait([work], timeout=self._after_seconds)
        if work.done() or not self._may_write():
            return False
        await self._write(pod, node)
        return True  # after no answer, too: it may have been written

    async def withdraw(self, pod: PodInfo) -> None:
        """It will not go there after all."""
        if self._may_write():
            await self._write(pod, "")

    async def _write(self, pod: PodInfo, node: str) -> None:
        path, body = pod_path(pod) + "/status", nomination_body(pod, node)
        answer = await request_with_retries(self._session, "PATCH", path, body, content_type=MERGE)
        if not answer.is_success and answer.status not in (404, 409, 422):  # the pod is gone, or another one by now
            logger.warning(
                "nominatedNodeName was not written (grant patch on pods/status)",
                extra={"pod": f"{pod.namespace}/{pod.name}", "node": node, "why": answer.text or answer.status},
            )
