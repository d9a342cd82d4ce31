"""What is written into pods that another replica is to try: the latest, once, and no failure ends the writing."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Callable
from typing import Any, cast

from kube.client.api_answer import ApiAnswer, answered
from kube.objects.objects import PodInfo
from kube.session.api_session import ApiSession
from kube.session.session_calls import SessionOver
from scheduler.shards.passing_on import PASSED_ON, PassedOn, PassWriter
from testing.objects import pod_info


class Session:
    """Implements what the writer uses of an ApiSession, on the loop that runs. status: of the answers."""

    def __init__(self) -> None:
        self.written, self.status, self.is_over = list[tuple[str, dict[str, Any]]](), 200, False
        self.raises: list[Exception] = []
        self.at_once = self.most_at_once = 0

    def call_soon(self, function: Callable[..., object], *arguments: object) -> None:
        if self.is_over:
            raise SessionOver
        asyncio.get_running_loop().call_soon(function, *arguments)

    async def request(self, method: str, path: str, body: bytes, **_: object) -> ApiAnswer:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        if self.raises:
            raise self.raises.pop()
        self.written.append((path, json.loads(body)["metadata"]))
        return answered(self.status, b"{}")


def write(session: Session, *batches: list[tuple[PodInfo, PassedOn]], pause: bool = False) -> PassWriter:
    async def run() -> PassWriter:
        writer = PassWriter(cast(ApiSession, session))
        for batch in batches:
            writer.put(batch)
            for _ in range(20 if pause else 0):
                await asyncio.sleep(0)
        for _ in range(200):
            gc.collect(0)
            await asyncio.sleep(0)
        return writer

    return asyncio.run(run())


def test_the_annotation_is_written_into_the_status_of_the_pod_with_that_uid() -> None:
    session = Session()
    writer = write(session, [(pod_info("one", namespace="apps", uid="u"), PassedOn(2, 7))])
    assert session.written == [
        ("/api/v1/namespaces/apps/pods/one/status", {"uid": "u", "annotations": {PASSED_ON: "2@7"}})
    ]
    assert writer.written == 1


def test_of_what_waits_for_one_pod_only_the_latest_is_written() -> None:
    session, pod = Session(), pod_info("one")
    write(session, [(pod, PassedOn(1))], [(pod, PassedOn(2))])
    assert [said["annotations"][PASSED_ON] for _, said in session.written] == ["2"]


def test_many_pods_are_written_a_few_at_once() -> None:
    session = Session()
    write(session, [(pod_info(f"pod-{i}"), PassedOn(1)) for i in range(100)])
    assert len(session.written) == 100 and session.most_at_once == 32


def test_a_pod_whose_write_failed_can_be_written_again() -> None:
    session, pod = Session(), pod_info("one")
    session.raises.append(ValueError("broken"))
    write(session, [(pod, PassedOn(1))], [(pod, PassedOn(2))], pause=True)
    assert [said["annotations"][PASSED_ON] for _, said in session.written] == ["2"]
