"""Bind pods through the API server for kube-scheduler, where its bindVerb is given to us.

The API server binds a pod once and never again (pkg/registry/core/pod/storage/storage.go of Kubernetes, assignPod), and
with the UID as precondition only that very pod. So a binding may be sent again whenever its outcome is unknown, and
what the pod says decides:

    POST .../pods/NAME/binding --2xx--> bound
       +--other status--> refused
       |  409, 429, 5xx, no answer
       v
    GET .../pods/NAME --on that node--> bound
       +--elsewhere, another UID, gone, being deleted--> refused
       |  not bound yet, no answer
       v
    pause, POST again, until the time is up: not known, which is an error to kube-scheduler
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

import msgspec
import urllib3
from kubernetes import client

from extender.binder import BindingFailed, BindingRequest
from scorer.cluster.kubernetes_client import send

__all__ = ["ApiServerBinder"]

_NO_ANSWER: Final = 0
_MISSING: Final = 404
_CONFLICT: Final = 409
_TOO_MANY: Final = 429
_UNDECIDED: Final = frozenset({_NO_ANSWER, 408, _CONFLICT, _TOO_MANY, *range(500, 600)})
_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.05, 0.5


class _Verdict(Enum):
    BOUND = "bound"
    OPEN = "not bound yet"
    UNKNOWN = "no answer to that either"


class ApiServerBinder:
    """Implements Binder. For any thread; one connection each."""

    def __init__(
        self,
        api: client.ApiClient,
        *,
        seconds: float = 3.5,
        attempt_seconds: float = 1.5,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """
        seconds         : for one binding, retries and looks at the pod included; less than the service waits
        attempt_seconds : for one request, so that an unanswered one can be looked after
        """
        self._api, self._seconds, self._attempt_seconds = api, seconds, attempt_seconds
        self._clock, self._sleep = clock, sleep

    def bind(self, binding: BindingRequest) -> None:
        """Returns once the pod is bound to that node. Raises BindingFailed."""
        deadline, attempt = self._clock() + self._seconds, 0
        while True:
            answer = self._send("POST", _path(binding) + "/binding", _body(binding), deadline)
            if 200 <= answer.status < 300:
                return
            if answer.status not in _UNDECIDED:
                raise BindingFailed(f"the API server refused to bind {_names(binding)}: {answer.text}")
            verdict = _Verdict.OPEN if answer.status == _TOO_MANY else self._look(binding, deadline, answer.text)
            if verdict is _Verdict.BOUND:
                return
            if answer.status == _CONFLICT and verdict is _Verdict.OPEN and attempt > 0:
                raise BindingFailed(f"the API server refuses to bind {_names(binding)}: {answer.text}")
            pause = min(_LONGEST_PAUSE_SECONDS, _PAUSE_SECONDS * 2**attempt)
            if self._clock() + pause >= deadline:
                raise BindingFailed(
                    f"{_names(binding)} is not known to be bound within {self._seconds:g} s: {answer.text}"
                )
            self._sleep(pause)
            attempt += 1

    def _look(self, binding: BindingRequest, deadline: float, trouble: str) -> _Verdict:
        """What became of it. Raises BindingFailed where it cannot become what was asked for."""
        answer = self._send("GET", _path(binding), b"", deadline)
        if answer.status == _MISSING:
            raise BindingFailed(f"{_names(binding)} is not bound: the pod is gone")
        if answer.status in (401, 403):
            raise BindingFailed(f"whether {_names(binding)} is bound may not be looked up: {answer.text}")
        if answer.status != 200:
            return _Verdict.UNKNOWN
        return _verdict(binding, answer.body, trouble)

    def _send(self, method: str, path: str, body: bytes, deadline: float) -> _Answer:
        """One request; no answer is status _NO_ANSWER."""
        seconds = max(0.05, min(self._attempt_seconds, deadline - self._clock()))
        try:
            answer = send(self._api, method, path, body or None, seconds=seconds)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            return _Answer(_NO_ANSWER, b"", " ".join(f"no answer: {error}".split())[:300])
        return _Answer(answer.status, answer.data, _message(answer.status, answer.data))


@dataclass(frozen=True, slots=True)
class _Answer:
    """status _NO_ANSWER: none came, the request may or may not have been carried out."""

    status: int
    body: bytes
    text: str


class _PodMetadata(msgspec.Struct, rename="camel"):
    uid: str = ""
    deletion_timestamp: str | None = None


class _PodSpec(msgspec.Struct, rename="camel"):
    node_name: str | None = None


class _Pod(msgspec.Struct):
    metadata: _PodMetadata
    spec: _PodSpec


class _Status(msgspec.Struct):
    message: str = ""


def _verdict(binding: BindingRequest, body: bytes, trouble: str) -> _Verdict:
    """What the pod says. Raises BindingFailed where it can never be bound as asked."""
    try:
        pod = msgspec.json.decode(body, type=_Pod)
    except msgspec.DecodeError as error:
        raise BindingFailed(f"whether {_names(binding)} is bound cannot be read: {error}") from error
    if pod.metadata.uid != binding.uid:
        raise BindingFailed(f"{_names(binding)} is not bound: the pod was replaced by another of the same name")
    if pod.spec.node_name == binding.node:
        return _Verdict.BOUND
    if pod.spec.node_name:
        raise BindingFailed(f"{_names(binding)} is not bound: the pod is on node {pod.spec.node_name} already")
    if pod.metadata.deletion_timestamp is not None:
        raise BindingFailed(f"{_names(binding)} is not bound: the pod is being deleted ({trouble})")
    return _Verdict.OPEN


def _path(binding: BindingRequest) -> str:
    # Both were checked to be names, without anything that a URL would need escaped.
    return f"/api/v1/namespaces/{binding.namespace}/pods/{binding.name}"


def _body(binding: BindingRequest) -> bytes:
    """v1 Binding. metadata.uid is a precondition: a later pod of the same name is not bound."""
    return msgspec.json.encode(
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"namespace": binding.namespace, "name": binding.name, "uid": binding.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": binding.node},
        }
    )


def _message(status: int, body: bytes) -> str:
    """What the API server says about a failure, in one line."""
    try:
        text = msgspec.json.decode(body, type=_Status).message
    except msgspec.DecodeError:
        text = body[:200].decode(errors="replace")
    return " ".join(f"{status} {text}".split())[:400]


def _names(binding: BindingRequest) -> str:
    return f"pod {binding.namespace}/{binding.name} to node {binding.node}"
