"""Carries one move out: the record of it is written onto the workload, then the workload is scaled.

    PATCH workload   annotation tide-moves, with the resourceVersion that was read
    PATCH scale      spec.replicas, with the resourceVersion of the answer           (a Job: both in the first)
      409            another client wrote: read again; if it still has as many replicas the same is tried again,
                     else nothing is done, and the next look plans anew

No other client's change of the number is overwritten. If the process stops between the two, the record says from what
number the move was, and the next process finds that it was not made (tide_annotation.py).

The pause after a training could not be scaled: twice as long each time it fails again.

Only the process that failed knows: the next leader tries at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from base.backoff import Backoff
from kube.client.api_answer import ApiAnswer
from kube.client.pod_writes import MERGE
from kube.decoding.watched_kinds import REFUSED
from kube.session.session_calls import Requests, is_passing
from profiles.gpu.tide.workload_reader import WorkloadReader
from profiles.gpu.tide.workloads import (
    JOB,
    WorkloadState,
    job_patch,
    object_path,
    read_scale,
    record_patch,
    scale_patch,
    scale_path,
)

_SECONDS: Final = 5.0
_TRIES: Final = 4
_BACKOFF: Final = Backoff(0.1)
_CONFLICT: Final = 409

_LONGEST_SECONDS: Final = 600.0


class ScalingOutcome(Enum):
    """What became of a move."""

    DONE = "done"
    CHANGED = "changed"  # it has another number by now, or is gone: to be planned anew
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Scaled:
    """outcome, and of a failure why."""

    outcome: ScalingOutcome
    why: str = ""


async def scale(
    session: Requests,
    reader: WorkloadReader,
    state: WorkloadState,
    replicas: int,
    annotations: Mapping[str, str],
    *,
    label: bool,
) -> Scaled:
    """label: write the label of the tide as well, by which the workload is found while it has no pods."""
    now: WorkloadState = state
    for attempt in range(_TRIES):
        answer = await _write(session, now, replicas, annotations, label)
        if answer.is_success:
            return Scaled(ScalingOutcome.DONE)
        if answer.status != _CONFLICT and not is_passing(answer):
            if answer.status == 404:
                return Scaled(ScalingOutcome.CHANGED)
            return Scaled(
                ScalingOutcome.FAILED, f"it cannot be scaled (grant patch on it and its scale): {answer.text}"
            )
        await asyncio.sleep(max(answer.retry_after_seconds, _BACKOFF.seconds(attempt + 1)))
        again, read = await reader.again(now)
        if again is None:
            return Scaled(
                ScalingOutcome.CHANGED if read.is_success or read.status == 404 else ScalingOutcome.FAILED, read.text
            )
        if again.replicas == replicas:
            return Scaled(ScalingOutcome.DONE)  # no answer came, but it was carried out
        if again.replicas != state.replicas or again.is_over:
            return Scaled(ScalingOutcome.CHANGED)
        now = again
    return Scaled(ScalingOutcome.FAILED, f"others keep changing it, or the API server does not answer: {answer.text}")


async def _write(
    session: Requests, state: WorkloadState, replicas: int, annotations: Mapping[str, str], label: bool
) -> ApiAnswer:
    path = object_path(state.kind, state.key)
    if state.kind == JOB:
        body = job_patch(state.resource_version, annotations, label, replicas)
        return await session.request("PATCH", path, body, content_type=MERGE, seconds=_SECONDS)
    body = record_patch(state.resource_version, annotations, label)
    answer = await session.request("PATCH", path, body, content_type=MERGE, seconds=_SECONDS)
    if not answer.is_success:
        return answer
    try:
        _, version = read_scale(answer.body)  # of any object: its metadata
    except REFUSED as error:
        return ApiAnswer(422, text=f"the API server's answer cannot be read: {error}")
    body = scale_patch(version, replicas)
    return await session.request("PATCH", scale_path(state.kind, state.key), body, content_type=MERGE, seconds=_SECONDS)


class RetryPauses:
    """By key. Times in unix seconds."""

    def __init__(self, every: float) -> None:
        """every: seconds between looks; the first pause is two of them"""
        self._backoff = Backoff(2 * every, max(_LONGEST_SECONDS, 2 * every))
        self._failures: dict[str, tuple[int, float]] = {}

    def failed(self, key: str, now: float) -> None:
        n = self._failures.get(key, (0, now))[0] + 1
        self._failures[key] = n, now + self._backoff.seconds(n)

    def went_well(self, key: str) -> None:
        """The next failure is the first again."""
        self._failures.pop(key, None)

    def left(self, key: str, now: float) -> float:
        """Seconds until it may be tried again, 0 = at once."""
        left = self._failures.get(key, (0, now))[1] - now
        return left if 0.0 < left <= self._backoff.longest else 0.0  # no longer if the clock is set back

    def keep(self, keys: Collection[str]) -> None:
        """The others are gone."""
        for key in self._failures.keys() - set(keys):
            del self._failures[key]
