"""A cluster that the advisor follows, pods that its gate holds, and an API server with prepared answers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from kube.client.api_answer import ApiAnswer, answered
from kube.objects.objects import PodInfo
from kube.session.api_session import ApiSession
from kube.session.session_calls import SessionOver
from placement.gate_exemptions import ADVICE
from testing.objects import pod_info

OTHER_GATE = "kueue.x-k8s.io/admission"

DONE = answered(200, b'{"status":{"nominatedNodeName":"n1"}}')
MISSING = answered(404, b'{"reason":"NotFound","message":"pods not found"}')
ANOTHER_UID = answered(422, b'{"message":"is invalid","details":{"causes":[{"field":"metadata.uid"}]}}')
UID_CONFLICT = answered(409, b'{"message":"the UID in the precondition (a) does not match"}')
INVALID = answered(422, b'{"message":"is invalid","details":{"causes":[{"field":"spec"}]}}')
FORBIDDEN = answered(403, b'{"message":"pods/status is forbidden"}')


def gated(name: str = "a", *gates: str, **fields: Any) -> PodInfo:
    """A pod that waits behind our gate and these."""
    return pod_info(name, **({"gates": (ADVICE, *gates), "uid": f"uid-{name}"} | fields))


def pod_answer(pod: PodInfo, *, version: str = "7", **status: Any) -> ApiAnswer:
    """The answer to a GET of the pod."""
    spec: dict[str, Any] = {"nodeName": pod.node} if pod.node else {}
    if pod.gates:
        spec["schedulingGates"] = [{"name": gate} for gate in pod.gates]
    if pod.nominated_node:
        status["nominatedNodeName"] = pod.nominated_node
    metadata: dict[str, Any] = {"name": pod.name, "uid": pod.uid, "resourceVersion": version}
    if pod.terminating:
        metadata["deletionTimestamp"] = "2026-11-21T16:00:00Z"
    return answered(200, msgspec.json.encode({"metadata": metadata, "spec": spec, "status": status}))


def scheduled_is(status: str, reason: str | None) -> dict[str, Any]:
    """Status of a pod with the condition PodScheduled."""
    return {"conditions": [{"type": "PodScheduled", "status": status, "reason": reason}]}


@dataclass(frozen=True)
class Asked:
    """A request that was made, with its body as an object."""

    method: str
    path: str
    body: Any
    content_type: str


class Session:
    """Implements kube.session.session_calls.Session: says one answer after the other, then DONE.

    is_over : nothing can be submitted any more
    before  : called before each answer
    """

    def __init__(self, *answers: ApiAnswer) -> None:
        self.answers, self.asked = list(answers), list[Asked]()
        self.is_over = False
        self.before: Callable[[], object] = lambda: None

    async def request(
        self, method: str, path: str, body: bytes | None, *, content_type: str = "", seconds: float
    ) -> ApiAnswer:
        assert 0 < seconds <= 10
        self.asked.append(Asked(method, path, None if body is None else msgspec.json.decode(body), content_type))
        self.before()
        return self.answers.pop(0) if self.answers else DONE

    def submit(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Do it at once, to its end."""
        if self.is_over:
            work.close()
            raise SessionOver("it is over")
        done: Future[Any] = Future()

        def run() -> None:
            try:
                done.set_result(asyncio.run(work))
            except BaseException as error:
                done.set_exception(error)

        # A loop may run in this thread already.
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        return done

    @property
    def as_session(self) -> ApiSession:
        return cast(ApiSession, self)
