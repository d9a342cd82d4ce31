"""What it takes to bind a pod, without any I/O: the interface of a binder, which request is next, and what its answer
means.

The API server binds a pod once and never again (pkg/registry/core/pod/storage/storage.go of Kubernetes, assignPod),
and with the UID as precondition only that very pod. So a binding may be sent again whenever its outcome is unknown,
and what the pod says decides:

    POST .../pods/NAME/binding --2xx--> bound
       +--other status--> refused
       |  409, 429, 5xx, no answer
       v
    GET .../pods/NAME --on that node--> bound
       +--elsewhere, another UID, gone, being deleted--> refused
       |  not bound yet, no answer
       v
    pause, POST again, until the time is up: not known

A request that was never answered may still be under way when a later one is refused: unless the pod itself settles
it, the outcome is not known then, either.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Protocol, TypeAlias

import msgspec

from base.backoff import Backoff
from base.errors import ForecastError
from kube.client.api_answer import NO_ANSWER, NOT_SENT, ApiAnswer

# The interface for binding a pod, its request and its error; kube.binding.api_server_binder.ApiServerBinder implements
# it.

_MISSING: Final = 404
_CONFLICT: Final = 409
_TOO_MANY: Final = 429
_SERVER_ERRORS: Final = range(500, 600)
_MAY_STILL_HAPPEN: Final = frozenset({NO_ANSWER, 408, *_SERVER_ERRORS})
_UNDECIDED: Final = _MAY_STILL_HAPPEN | {_CONFLICT, _TOO_MANY}
_BACKOFF = Backoff(0.05, 0.5)
_SHORTEST_ATTEMPT_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class BindingRequest:
    """Which pod is to go to which node.

    uid         : of that very pod, not of a later one of the same name
    annotations : that the pod gets in the same write: it has all of them, or is not bound
    """

    namespace: str
    name: str
    uid: str
    node: str
    annotations: Mapping[str, str] = field(default_factory=dict)


class BindingFailed(ForecastError):
    """The pod was not bound, or it is not known whether it was; one sentence for kube-scheduler's event."""


class Binder(Protocol):
    """For any thread."""

    def bind(self, binding: BindingRequest) -> None:
        """Returns once the pod is bound to that node. Raises BindingFailed."""


class BindingVerdict(Enum):
    """What became of a binding."""

    BOUND = "bound"  # that very pod, to that very node
    GONE = "gone"  # the pod is gone, replaced or being deleted: never bound to that node
    ELSEWHERE = "elsewhere"  # it is bound to another node
    REFUSED = "refused"  # it is not bound
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class BindingResult:
    """reason: one sentence, '' = bound; node: where it is, of ELSEWHERE."""

    verdict: BindingVerdict
    reason: str = ""
    node: str = ""


@dataclass(frozen=True, slots=True)
class Send:
    """A request to make; its Answer is sent into the steps. body: b"" = none."""

    method: str
    path: str
    body: bytes
    seconds: float


@dataclass(frozen=True, slots=True)
class Pause:
    """Time to let pass. because: the answer that makes it necessary."""

    seconds: float
    because: ApiAnswer


Steps: TypeAlias = Generator[Send | Pause, ApiAnswer, BindingResult]
"""Yields what to do and is sent the Answer, after a Pause any; returns what became of the binding."""


def binding_steps(
    request: BindingRequest, *, seconds: float, attempt_seconds: float, clock: Callable[[], float]
) -> Steps:
    """Bind a pod.

    seconds         : for all of it, retries and looks at the pod included
    attempt_seconds : for one request, so that an unanswered one can be looked after
    clock           : seconds, monotonic
    """
    deadline, attempt, may_still_happen = clock() + seconds, 0, False
    while True:
        answer = yield _send("POST", request, deadline, attempt_seconds, clock)
        if answer.is_success:
            return BindingResult(BindingVerdict.BOUND)
        may_still_happen = may_still_happen or answer.status in _MAY_STILL_HAPPEN
        if answer.status not in _UNDECIDED:
            return _refused(request, "refused", answer, may_still_happen)
        if answer.status != _TOO_MANY:
            seen = what_is_seen(
                request, (yield _send("GET", request, deadline, attempt_seconds, clock)), trouble=answer.text
            )
            if isinstance(seen, BindingResult):
                return seen
            if answer.status == _CONFLICT and seen is SeenPod.OPEN and attempt > 0:
                return _refused(request, "refuses", answer, may_still_happen)
        pause = _pause(attempt, answer)
        if clock() + pause >= deadline:
            return _out_of_time(request, answer, seconds, may_still_happen)
        yield Pause(pause, answer)
        attempt += 1


def looking_steps(
    request: BindingRequest, *, seconds: float, attempt_seconds: float, clock: Callable[[], float]
) -> Steps:
    """Find out what became of a binding that is not known: nothing is bound. REFUSED: the pod still waits."""
    deadline, attempt = clock() + seconds, 0
    while True:
        answer = yield _send("GET", request, deadline, attempt_seconds, clock)
        seen = what_is_seen(request, answer, trouble="asked for again")
        if isinstance(seen, BindingResult):
            return seen
        if seen is SeenPod.OPEN:
            return BindingResult(BindingVerdict.REFUSED, f"{_names(request)} is not bound")
        pause = _pause(attempt, answer)
        if clock() + pause >= deadline:
            return _out_of_time(request, answer, seconds, True)
        yield Pause(pause, answer)
        attempt += 1


class SeenPod(Enum):
    """What a look at the pod did not settle."""

    OPEN = "not bound yet"
    NOTHING = "no answer to that either"


def what_is_seen(request: BindingRequest, answer: ApiAnswer, *, trouble: str) -> BindingResult | SeenPod:
    """What the answer to a look at the pod says. trouble: why it was looked at."""
    names = _names(request)
    # The API server itself says so, and not a load balancer in front of it.
    if answer.status == _MISSING and answer.reason == "NotFound":
        return BindingResult(BindingVerdict.GONE, f"{names} is not bound: the pod is gone")
    if answer.status in (401, 403):
        return BindingResult(BindingVerdict.UNKNOWN, f"whether {names} is bound may not be looked up: {answer.text}")
    if answer.status != 200:
        return SeenPod.NOTHING
    try:
        pod = msgspec.json.decode(answer.body, type=_Pod)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return BindingResult(BindingVerdict.UNKNOWN, f"whether {names} is bound cannot be read: {error}")
    if pod.metadata.uid != request.uid:
        return BindingResult(
            BindingVerdict.GONE, f"{names} is not bound: the pod was replaced by another of the same name"
        )
    if pod.spec.node_name == request.node:
        return BindingResult(BindingVerdict.BOUND)
    if at := pod.spec.node_name:
        return BindingResult(BindingVerdict.ELSEWHERE, f"{names} is not bound: the pod is on node {at} already", at)
    if pod.metadata.deletion_timestamp is not None:
        return BindingResult(BindingVerdict.GONE, f"{names} is not bound: the pod is being deleted ({trouble})")
    return SeenPod.OPEN


# Inside


class _PodMetadata(msgspec.Struct, rename="camel"):
    uid: str = ""
    deletion_timestamp: str | None = None


class _PodSpec(msgspec.Struct, rename="camel"):
    node_name: str | None = None


class _Pod(msgspec.Struct):
    metadata: _PodMetadata
    spec: _PodSpec


def _refused(request: BindingRequest, refuses: str, answer: ApiAnswer, may_still_happen: bool) -> BindingResult:
    reason = f"the API server {refuses} to bind {_names(request)}: {answer.text}"
    if answer.status == NOT_SENT:
        reason = f"{_names(request)} is not bound: {answer.text}"
    if answer.status == _MISSING and answer.reason == "NotFound":
        return BindingResult(BindingVerdict.GONE, reason)
    return BindingResult(BindingVerdict.UNKNOWN if may_still_happen else BindingVerdict.REFUSED, reason)


def _out_of_time(request: BindingRequest, answer: ApiAnswer, seconds: float, may_have: bool) -> BindingResult:
    if may_have:
        reason = f"{_names(request)} is not known to be bound within {seconds:g} s: {answer.text}"
        return BindingResult(BindingVerdict.UNKNOWN, reason)
    return BindingResult(BindingVerdict.REFUSED, f"{_names(request)} was not bound within {seconds:g} s: {answer.text}")


def _send(
    method: str, request: BindingRequest, deadline: float, attempt_seconds: float, clock: Callable[[], float]
) -> Send:
    seconds = max(_SHORTEST_ATTEMPT_SECONDS, min(attempt_seconds, deadline - clock()))
    # Both were checked to be names, without anything that a URL would need escaped.
    path = f"/api/v1/namespaces/{request.namespace}/pods/{request.name}"
    return (
        Send("POST", f"{path}/binding", _body(request), seconds)
        if method == "POST"
        else Send("GET", path, b"", seconds)
    )


def _pause(attempt: int, answer: ApiAnswer) -> float:
    return max(_BACKOFF.seconds(attempt + 1), answer.retry_after_seconds)


def _body(request: BindingRequest) -> bytes:
    """v1 Binding. metadata.uid is a precondition: a later pod of the same name is not bound.

    Its annotations come onto the pod with the node (setPodNodeAndMetadata in registry/core/pod/storage/storage.go).
    """
    metadata: dict[str, object] = {"namespace": request.namespace, "name": request.name, "uid": request.uid}
    if request.annotations:
        metadata["annotations"] = dict(request.annotations)
    return msgspec.json.encode(
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": metadata,
            "target": {"apiVersion": "v1", "kind": "Node", "name": request.node},
        }
    )


def _names(request: BindingRequest) -> str:
    return f"pod {request.namespace}/{request.name} to node {request.node}"
