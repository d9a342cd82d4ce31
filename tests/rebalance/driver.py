"""Carries plans out in a process of its own, which may kill itself at its n-th write, before it is sent or after it.

A fork server starts it, which has everything imported: a test kills dozens of them.
"""

from __future__ import annotations

import os
import signal
import time
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Literal

from kube.client.api_answer import Answer
from kube.client.kubernetes_client import api_client
from kube.leader_election.lease import Lease
from kube.leader_election.options import LeaseOptions
from kube.session.api_session import ApiSession
from rebalancer.execution.executor import Executor
from rebalancer.execution.options import ExecutionOptions
from rebalancer.execution.plan_records import PlanRecords

When = Literal["never", "before", "after"]


class DeadlyRequests:
    """Implements Requests: the process ends at its n-th write. A dry run is none."""

    def __init__(self, session: ApiSession, when: When, n: int) -> None:
        self._session, self._when, self._left = session, when, n

    async def request(
        self, method: str, path: str, body: bytes | None, *, content_type: str = "application/json", seconds: float
    ) -> Answer:
        is_write = method != "GET" and b'"dryRun"' not in (body or b"")
        self._left -= is_write
        if is_write and not self._left and self._when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        answer = await self._session.request(method, path, body, content_type=content_type, seconds=seconds)
        if is_write and not self._left and self._when == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return answer


def main(kubeconfig: Path, when: When, n: int, patience: float, lease_name: str, leads: Event) -> None:
    """Run until killed, or until no plan is active.

    when, n    : the process dies then, at its n-th write
    patience   : refusal_deadline and ready_deadline
    lease_name : '' = it leads without a Lease
    leads      : set once it leads
    """
    options = ExecutionOptions(parallel=1, pin=0.1, retry=1, refusal_deadline=patience, ready_deadline=patience)
    lease = _lease(kubeconfig, lease_name) if lease_name else None
    session = ApiSession(api_client(kubeconfig), may_write=lease.may_write if lease is not None else lambda: True)
    session.start()
    if lease is not None:
        lease.start()
    requests = DeadlyRequests(session, when, n)
    executor = Executor(requests, PlanRecords(requests), options, unsure_seconds=3)
    while True:
        if lease is not None and not lease.may_write():
            leads.clear()
            time.sleep(0.1)
            continue
        if not leads.is_set():
            executor.reset()
            leads.set()
        result = session.submit(executor.step()).result()
        if not result.active and not result.trouble:
            break
        time.sleep(min(result.wait_seconds, 0.2))
    if lease is not None:
        lease.stop()
    session.stop()


def _lease(kubeconfig: Path, name: str) -> Lease:
    options = LeaseOptions(namespace="default", name=name, duration=5, renew_deadline=4, retry_period=0.3)
    return Lease(api_client(kubeconfig), options)
