"""Takes back one pod that its provider has not started, so that its controller makes another one.

    condition DisruptionTarget --> as the answer says, has it started?
         no: delete, if nothing has changed since          yes: it stays, and the condition is taken away again

Nothing can be unbound: a pod gets another node only as another pod. The condition is there for Jobs with a
podFailurePolicy, which need not count it. The deletion names the UID and the resourceVersion of the answer: a pod that
has started by then, as far as the API server knows, is not deleted. The pod's own grace period applies; one whose node
is dead stays, terminating, until the node is removed, while its Job goes on with the next one.

Needs patch on pods/status and delete on pods.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

import msgspec

from kube.client.api_answer import Answer, is_gone
from kube.client.pod_writes import pod_path
from kube.decoding.object_decoding import pod_info
from kube.decoding.wire import PodJson
from kube.session.request_retries import Requests, is_passing_or_conflict, request_with_retries
from kube.status.pod_conditions import STRATEGIC_MERGE
from scheduler.preemption.eviction_requests import delete_body, disruption_body
from scheduler.profiles.job.serverless.pod_start_state import Failure, has_started
from scheduler.profiles.job.serverless.tables import NotStarted

_REASON: Final = "ProviderDidNotStartPod"

_WHY: Final = {
    Failure.REJECTED: "the provider {} rejects it",
    Failure.STALLED: "the provider {} has not started it in time",
    Failure.LOST: "its node, of the provider {}, is gone or not ready",
}


class TakebackOutcome(Enum):
    """What became of it."""

    TAKEN_BACK = "taken_back"  # it goes, or is gone
    STARTED = "started"  # it has started after all
    CHANGED = "changed"  # it changed at that moment: to be looked at again
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class TakenBack:
    """outcome, and of a failure why."""

    outcome: TakebackOutcome
    why: str = ""


async def take_back(session: Requests, one: NotStarted, now: float) -> TakenBack:
    """now: unix seconds. Sends at most three requests, each again where that may help."""
    pod, why = one.pod, why_of(one)
    body = disruption_body(pod, _REASON, why, now)
    answer = await _send(session, "PATCH", pod_path(pod) + "/status", body, STRATEGIC_MERGE)
    if is_gone(answer):
        return TakenBack(TakebackOutcome.TAKEN_BACK)
    if not answer.is_success:
        return TakenBack(
            TakebackOutcome.FAILED, f"its condition cannot be written (grant patch on pods/status): {_said(answer)}"
        )
    try:
        said = msgspec.json.decode(answer.body, type=PodJson)
        is_running = has_started(pod_info(said))
    except (msgspec.MsgspecError, ValueError) as error:
        return TakenBack(TakebackOutcome.FAILED, f"the API server's answer cannot be read: {error}")
    if is_running:
        body = disruption_body(pod, _REASON, why, now, goes=False)
        await _send(session, "PATCH", pod_path(pod) + "/status", body, STRATEGIC_MERGE)
        return TakenBack(TakebackOutcome.STARTED)
    body = delete_body(pod, said.metadata.resource_version or "")
    # Without a second try after a conflict: the pod has changed, maybe it has started.
    answer = await request_with_retries(session, "DELETE", pod_path(pod), lambda: body)
    if is_gone(answer) or answer.is_success:
        return TakenBack(TakebackOutcome.TAKEN_BACK)
    if answer.status == 409:
        return TakenBack(TakebackOutcome.CHANGED)
    return TakenBack(TakebackOutcome.FAILED, f"it cannot be deleted (grant delete on pods): {_said(answer)}")


def why_of(one: NotStarted) -> str:
    """For people."""
    return _WHY[one.failure].format(one.provider)


async def _send(session: Requests, method: str, path: str, body: bytes, content_type: str) -> Answer:
    return await request_with_retries(
        session, method, path, lambda: body, content_type=content_type, worth_it=is_passing_or_conflict
    )


def _said(answer: Answer) -> str:
    return answer.text or str(answer.status)
