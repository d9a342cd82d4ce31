"""Where a pod that waits will go: written if it takes long, with the UID, and withdrawn."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field, replace

from kube.client.api_answer import ApiAnswer
from scheduler.preemption.expected_node import ExpectedNode
from tests.scheduler.preemption.made_up import pod


@dataclass
class Written:
    """status : of every answer"""

    status: int = 200
    requests: list[tuple[str, str, object]] = field(default_factory=list)

    async def request(
        self, method: str, path: str, body: bytes | None, *, content_type: str = "", seconds: float
    ) -> ApiAnswer:
        assert content_type == "application/merge-patch+json"
        self.requests.append((method, path, json.loads(body or b"null")))
        return ApiAnswer(self.status, b"{}")


def announced(written: Written, *, long: bool, nominated: str = "", leads: bool = True) -> bool:
    async def run() -> bool:
        expected = ExpectedNode(written, may_write=lambda: leads, after_seconds=0.01)
        work = asyncio.ensure_future(asyncio.sleep(5 if long else 0))
        try:
            return await expected.announce(replace(pod("p"), nominated_node=nominated), "a", work)
        finally:
            work.cancel()

    return asyncio.run(run())


def test_a_pod_that_waits_long_is_nominated() -> None:
    written = Written()
    assert announced(written, long=True)
    body = {"metadata": {"uid": "p"}, "status": {"nominatedNodeName": "a"}}
    assert written.requests == [("PATCH", "/api/v1/namespaces/shop/pods/p/status", body)]


def test_a_pod_that_binds_at_once_costs_no_write() -> None:
    written = Written()
    assert not announced(written, long=False)
    assert not announced(written, long=True, nominated="a")  # by a preemption, which keeps that
    assert not announced(written, long=True, leads=False)
    assert written.requests == []


def test_it_is_withdrawn_with_its_uid() -> None:
    written = Written()
    asyncio.run(ExpectedNode(written).withdraw(pod("p")))
    assert [body for _, _, body in written.requests] == [
        {"metadata": {"uid": "p"}, "status": {"nominatedNodeName": None}}
    ]
