"""Removes our gate from every pod that has it: for when no advisor runs any more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec
import urllib3
from kubernetes import client

from advisor.advice_requests import advice_note, release_body
from forecast.errors import ForecastError
from kube.client.api_answer import answered, is_gone
from kube.client.kubernetes_client import send
from kube.decoding.decoding import WATCHED, Kind
from kube.objects.objects import PodInfo
from kube.status.pod_conditions import STRATEGIC_MERGE
from placement.advice_gate import ADVICE
from scheduler.preemption.eviction_requests import pod_path

_SECONDS: Final = 10.0
_PAGE: Final = 500


class ReleaseFailed(ForecastError):
    """Pods cannot be listed, or their gate cannot be removed."""


@dataclass(frozen=True, slots=True)
class Released:
    """held: pods that our gate held; failed: of these, how many it still holds, and why the last of them."""

    held: int
    failed: int
    why: str

    def __str__(self) -> str:
        if self.failed:
            return f"{self.failed} of {self.held} pods are still held by {ADVICE}: {self.why}"
        return f"{self.held} pod(s) released from {ADVICE}"


def release_all(api: client.ApiClient) -> Released:
    """Raises ReleaseFailed."""
    held, failed, why = 0, 0, ""
    for pod in _held(api):
        held += 1
        body = release_body(pod, advice_note(None, "released by hand"))
        answer = answered(*_sent(api, "PATCH", pod_path(pod), body))
        if not answer.is_success and not is_gone(answer):
            failed, why = failed + 1, answer.text
    if failed:
        raise ReleaseFailed(str(Released(held, failed, why)))
    return Released(held, failed, why)


def _held(api: client.ApiClient) -> list[PodInfo]:
    pods, token = list[PodInfo](), ""
    decode = WATCHED[Kind.PODS].decode
    while True:
        query = f"?limit={_PAGE}" + (f"&continue={token}" if token else "")
        status, body = _sent(api, "GET", "/api/v1/pods" + query)
        if status != 200:
            raise ReleaseFailed(f"pods cannot be listed: {answered(status, body).text}")
        page = msgspec.json.decode(body, type=_List)
        decoded = (decode(item)[0] for item in page.items)
        pods += [pod for pod in decoded if isinstance(pod, PodInfo) and ADVICE in pod.gates]
        token = page.metadata.continue_
        if not token:
            return pods


def _sent(api: client.ApiClient, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
    try:
        answer = send(api, method, path, body, content_type=STRATEGIC_MERGE, seconds=_SECONDS)
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise ReleaseFailed(f"the API server does not answer: {error}") from error
    return answer.status, answer.data


class _ListMetadata(msgspec.Struct):
    continue_: str = msgspec.field(name="continue", default="")


class _List(msgspec.Struct):
    items: list[msgspec.Raw]
    metadata: _ListMetadata = msgspec.field(default_factory=_ListMetadata)
