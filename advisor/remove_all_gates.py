"""Removes our gate from every pod that has it: for when no advisor runs any more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from kubernetes import client

from advisor.advice_requests import advice_note
from base.errors import ForecastError
from kube.client.api_answer import ApiAnswer, is_gone
from kube.client.kubernetes_client import send
from kube.client.kubernetes_steps import list_request
from kube.client.pod_writes import pod_path
from kube.decoding.watched_kinds import UndecodableObject, decode_page
from kube.status.pod_conditions import STRATEGIC_MERGE
from placement.gate_exemptions import ADVICE
from placement.gate_removal import UNBOUND_PODS, PodWithGates, may_go_without_note, release_body

_SECONDS: Final = 10.0
_PAGE: Final = 500


class ReleaseFailed(ForecastError):
    """Pods cannot be listed, or their gate cannot be removed."""


@dataclass(frozen=True, slots=True)
class Released:
    """
    held   : pods that our gate held
    failed : of these, how many it still holds, and why the last of them
    unread : why pods cannot be read, which it may hold, too; one sentence each
    """

    held: int
    failed: int
    why: str
    unread: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.unread:
            counted = Released(self.held, self.failed, self.why)
            return f"{counted}; {len(self.unread)} pod(s) cannot be read and may be held: {self.unread[-1]}"
        if self.failed:
            return f"{self.failed} of {self.held} pods are still held by {ADVICE}: {self.why}"
        return f"{self.held} pod(s) released from {ADVICE}"


def release_all(api: client.ApiClient) -> Released:
    """Remove our gate from every pod that has it.

    Raises ReleaseFailed: pods cannot be listed or read, or some of them are still held.
    """
    failed, why = 0, ""
    held, unread = _pods_with_our_gate(api)
    for pod in held:
        note = advice_note(None, "released by hand")
        answer = _sent(api, "PATCH", pod_path(pod), release_body(pod, note))
        if may_go_without_note(answer):
            answer = _sent(api, "PATCH", pod_path(pod), release_body(pod, None))
        if not answer.is_success and not is_gone(answer):
            failed, why = failed + 1, answer.text
    released = Released(len(held), failed, why, unread)
    if failed or unread:
        raise ReleaseFailed(str(released))
    return released


def held_pods(api: client.ApiClient) -> list[PodWithGates]:
    """Return the pods that our gate alone holds. Raises ReleaseFailed: they cannot be listed."""
    return [pod for pod in _pods_with_our_gate(api)[0] if pod.waits_for_us_alone]


def _pods_with_our_gate(api: client.ApiClient) -> tuple[list[PodWithGates], tuple[str, ...]]:
    """Return the pods that our gate holds, and why others cannot be read."""
    pods, unread, token = list[PodWithGates](), list[str](), ""
    while True:
        request = list_request(UNBOUND_PODS, limit=_PAGE, continue_token=token)
        answer = _sent(api, "GET", f"{request.path}?{urlencode(request.query)}")
        if not answer.is_success:
            raise ReleaseFailed(f"pods cannot be listed: {answer.text}")
        try:
            page = decode_page(UNBOUND_PODS, answer.body)
        except UndecodableObject as error:
            raise ReleaseFailed(f"pods cannot be listed: {error}") from error
        pods += [pod for pod in page.objects if pod.has_ours]
        unread += page.undecodable
        token = page.continue_token
        if not token:
            return pods, tuple(unread)


def _sent(api: client.ApiClient, method: str, path: str, body: bytes | None = None) -> ApiAnswer:
    answer = send(api, method, path, body, content_type=STRATEGIC_MERGE, seconds=_SECONDS)
    if answer.why_none:
        raise ReleaseFailed(f"the API server does not answer: {answer.why_none}")
    return answer
