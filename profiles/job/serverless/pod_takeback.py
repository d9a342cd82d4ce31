"""Takes back one pod that its provider has not started, so that its controller makes another one.

    condition DisruptionTarget --> as the answer says, has it started?
         no: delete, if nothing has changed since          yes: it stays, and the condition is taken away again

Nothing can be unbound: a pod gets another node only as another pod. The condition is there for Jobs with a
podFailurePolicy, which need not count it. The deletion names the UID and the resourceVersion of the answer: a pod that
has started by then, as far as the API server knows, is not deleted. The pod's own grace period applies; one whose node
is dead stays, terminating, until the node is removed, while its Job goes on with the next one.

Needs patch on pods/status and delete on pods.

How many pods a Job can afford to have taken back: each one counts as a failure of it, unless it says otherwise.

    left = backoffLimit - counted failures - those that are not counted yet - 1

One is left for a failure of its own. What was taken back within the last minute is not counted yet, as far as is known
here: the Job controller counts in its own time, and a Job that was asked too little is asked again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

import msgspec

from kube.client.api_answer import ApiAnswer, is_gone
from kube.client.pod_writes import pod_path
from kube.decoding.job_specs import OnDisruption
from kube.decoding.jobs import JobInfo
from kube.decoding.object_decoding import pod_info
from kube.decoding.wire import PodJson
from kube.objects.objects import PodInfo
from kube.session.session_calls import Requests, is_passing_or_conflict, request_with_retries
from kube.status.pod_conditions import STRATEGIC_MERGE
from profiles.job.circuit_breaker import StartFailure, has_started
from profiles.job.serverless.provider_tables import NotStarted
from scheduler.preemption.executor import delete_body, disruption_body

_REASON: Final = "ProviderDidNotStartPod"

_WHY: Final = {
    StartFailure.REJECTED: "the provider {} rejects it",
    StartFailure.STALLED: "the provider {} has not started it in time",
    StartFailure.LOST: "its node, of the provider {}, is gone or not ready",
}

_COUNTED_SECONDS: Final = 60.0
"""Seconds after which the Job controller has counted a deleted pod."""

_UNKNOWN: Final = "its Job is not known, nor how many failures that can afford"
_FATAL: Final = "the podFailurePolicy of its Job fails that for a disruption"

_TOO_MANY: Final = (
    "its Job could fail of it, with a backoffLimit of {}; with a podFailurePolicy that ignores DisruptionTarget it "
    "would be taken back"
)


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
            TakebackOutcome.FAILED, f"its condition cannot be written (grant patch on pods/status): {answer.text}"
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
    answer = await request_with_retries(session, "DELETE", pod_path(pod), body)
    if is_gone(answer) or answer.is_success:
        return TakenBack(TakebackOutcome.TAKEN_BACK)
    if answer.status == 409:
        return TakenBack(TakebackOutcome.CHANGED)
    return TakenBack(TakebackOutcome.FAILED, f"it cannot be deleted (grant delete on pods): {answer.text}")


def why_of(one: NotStarted) -> str:
    """For people."""
    return _WHY[one.failure].format(one.provider)


async def _send(session: Requests, method: str, path: str, body: bytes, content_type: str) -> ApiAnswer:
    return await request_with_retries(
        session, method, path, body, content_type=content_type, worth_it=is_passing_or_conflict
    )


# How many pods a Job can afford to have taken back: each one counts as a failure of it, unless it says otherwise.
#
#     left = backoffLimit - counted failures - those that are not counted yet - 1
#
# One is left for a failure of its own. What was taken back within the last minute is not counted yet, as far as is
# known here: the Job controller counts in its own time, and a Job that was asked too little is asked again.


def pods_to_spare(run: JobInfo) -> int | None:
    """How many a Job can lose now and still bear one more failure; None = any number."""
    failing = run.failing
    if failing.on_disruption is OnDisruption.IGNORED:
        return None
    if failing.on_disruption is OnDisruption.FATAL:
        return 0
    lost = run.failed + run.uncounted_failed + (run.terminating if failing.replaces_only_ended else 0)
    return max(0, failing.limit - lost - 1)


class Affording:
    """Which pods Jobs can afford to lose. Asked by one thread; `stays` may be called from any. jobs: by UID."""

    def __init__(self, jobs: Mapping[str, JobInfo]) -> None:
        self._jobs = jobs
        self._taken: dict[str, tuple[str, float]] = {}  # by UID of a pod: UID of its Job, when
        self._not_counted: Counter[str] = Counter()  # of these, by UID of the Job

    def begin(self, now: float) -> None:
        """Before pods are asked about. now: unix seconds."""
        for uid, (_, at) in list(self._taken.items()):
            if not 0 <= now - at < _COUNTED_SECONDS:
                self._taken.pop(uid, None)
        self._not_counted = Counter(job for job, _ in list(self._taken.values()))

    def refusal(self, pod: PodInfo) -> str:
        """Why it is not to be taken back, for people; '' = it may be. Only Jobs count failures."""
        if pod.owner.kind != "Job" or pod.uid in self._taken:
            return ""
        run = self._jobs.get(pod.owner_uid)
        if run is None:
            return _UNKNOWN
        left = pods_to_spare(run)
        if left is None or left > self._not_counted[run.uid]:
            return ""
        return _FATAL if run.failing.on_disruption is OnDisruption.FATAL else _TOO_MANY.format(run.failing.limit)

    def takes(self, pod: PodInfo, now: float) -> None:
        """It is taken back."""
        if pod.owner.kind != "Job":
            return
        if pod.uid not in self._taken:
            self._not_counted[pod.owner_uid] += 1
        self._taken[pod.uid] = pod.owner_uid, now

    def stays(self, uid: str) -> None:
        """It was not, after all."""
        self._taken.pop(uid, None)
