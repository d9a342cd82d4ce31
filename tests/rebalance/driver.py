"""Carries plans out in a process of its own, which may kill itself at its first write, before it is sent or after it.

A fork server starts it, which has everything imported: a test kills dozens of them.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Literal

from kube.client.api_answer import ApiAnswer
from kube.client.kubernetes_client import api_client
from kube.session.api_session import ApiSession
from rebalancer.execution.plan_executor import Executor
from rebalancer.execution.plan_records import PlanRecords
from rebalancer.rebalance_settings import ExecutionOptions
from testing.constants import with_constants

When = Literal["never", "before", "after"]


class DeadlyRequests:
    """Implements Requests: the process ends at its first write. A dry run is none."""

    def __init__(self, session: ApiSession, when: When) -> None:
        self._session, self._when = session, when

    async def request(
        self, method: str, path: str, body: bytes | None, *, content_type: str = "application/json", seconds: float
    ) -> ApiAnswer:
        is_write = method != "GET" and b'"dryRun"' not in (body or b"")
        if is_write and self._when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        answer = await self._session.request(method, path, body, content_type=content_type, seconds=seconds)
        if is_write and self._when == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return answer


def main(kubeconfig: Path, when: When, patience: float) -> None:
    """Run until killed, or until no plan is active.

    when     : the process dies then, at its first write
    patience : refusal_deadline and ready_deadline
    """
    options = with_constants(
        ExecutionOptions(), parallel=1, pin=0.1, retry=1.0, refusal_deadline=patience, ready_deadline=patience
    )
    session = ApiSession(api_client(kubeconfig))
    session.start()
    requests = DeadlyRequests(session, when)
    executor = Executor(requests, PlanRecords(requests), options, unsure_seconds=3)
    while True:
        result = session.submit(executor.step()).result()
        if not result.active and not result.trouble:
            break
        time.sleep(min(result.wait_seconds, 0.2))
    session.stop()
