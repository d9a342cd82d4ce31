"""Carries plans out in a process of its own, which may kill itself at its n-th write, before it is sent or after it.

Usage: python -m tests.rebalance.driver KUBECONFIG never|before|after N [LEASE]
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from kube.client.api_answer import Answer
from kube.client.kubernetes_client import api_client
from kube.leader_election.lease import Lease
from kube.leader_election.options import LeaseOptions
from kube.session.api_session import ApiSession
from rebalancer.execution.executor import Executor
from rebalancer.execution.options import ExecutionOptions
from rebalancer.execution.plan_records import PlanRecords

OPTIONS = ExecutionOptions(parallel=1, pin=0.1, retry=1, refusal_deadline=10, ready_deadline=30)


class DeadlyRequests:
    """Implements Requests: the process ends at its n-th write. A dry run is none."""

    def __init__(self, session: ApiSession, when: str, n: int) -> None:
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


def main(kubeconfig: str, when: str, n: str, lease_name: str = "") -> None:
    """Run until killed, or until no plan is active."""
    api = api_client(Path(kubeconfig))
    options = LeaseOptions(
        namespace="default", name=lease_name or "none", duration=2, renew_deadline=1.5, retry_period=0.3
    )
    lease = Lease(api_client(Path(kubeconfig)), options) if lease_name else None
    session = ApiSession(api, may_write=lease.may_write if lease is not None else lambda: True)
    session.start()
    if lease is not None:
        lease.start()
    requests = DeadlyRequests(session, when, int(n))
    executor = Executor(requests, PlanRecords(requests), OPTIONS, unsure_seconds=3)
    led = False
    while True:
        leads = lease is None or lease.may_write()
        if leads and not led:
            executor.reset()
            print("leads", flush=True)
        led = leads
        if leads:
            result = session.submit(executor.step()).result()
            if not result.active and not result.trouble:
                break
            time.sleep(min(result.wait_seconds, 0.2))
        else:
            time.sleep(0.1)
    if lease is not None:
        lease.stop()
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
