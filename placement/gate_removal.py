"""Removes our scheduling gate from a pod: the body of the patch, and the write itself, without its note if need be."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import orjson

from kube.client.api_answer import Answer, is_gone
from kube.client.pod_writes import PodIdentity, pod_path
from kube.session.request_retries import Requests, is_passing, is_passing_or_conflict, request_with_retries
from kube.status.pod_conditions import STRATEGIC_MERGE
from placement.advice_gate import ADVICE
from placement.preferred_nodes import PREFERRED

_MOST_AT_ONCE: Final = 64
_NOTE_REFUSED: Final = frozenset({400, 403, 413, 422})
_SECONDS: Final = 2.0
_TRIES: Final = 3


def release_body(pod: PodIdentity, note: str | None, *, preferred: Sequence[Any] = (), version: str = "") -> bytes:
    """Return a strategic merge patch that removes our gate and no other.

    The UID in it is a precondition: a later pod of the same name is left alone.
    note      : text of the annotation; None = the annotations stay as they are
    preferred : all terms of preferred node affinity that the pod is to have, its own among them; none = as it is. They
                may change while a pod is gated (KEP-3838)
    version   : resourceVersion, a further precondition; '' = whatever the pod has become
    """
    metadata: dict[str, object] = {"uid": pod.uid}
    if note is not None:
        metadata["annotations"] = {ADVICE: note}
    if version:
        metadata["resourceVersion"] = version
    spec: dict[str, Any] = {"schedulingGates": [{"$patch": "delete", "name": ADVICE}]}
    if preferred:
        spec["affinity"] = {"nodeAffinity": {PREFERRED: list(preferred)}}
    return orjson.dumps({"metadata": metadata, "spec": spec})


def may_go_without_note(answer: Answer) -> bool:
    """Return whether the API server refused a patch that it may take without the note.

    A pod may have 256 KiB of annotations, so that no note fits (ValidateAnnotationsSize in
    k8s.io/apimachinery/pkg/api/validation), or a policy of the cluster may forbid to change them.
    """
    return answer.status in _NOTE_REFUSED and not is_gone(answer)


async def remove_gate(
    patch: Callable[[bytes], Awaitable[Answer]],
    pod: PodIdentity,
    note: str,
    *,
    preferred: Sequence[Any] = (),
    version: str = "",
) -> Answer:
    """Patch the pod: with the note, or else without it. preferred, version: see release_body."""
    answer = await patch(release_body(pod, note, preferred=preferred, version=version))
    if not may_go_without_note(answer):
        return answer
    return await patch(release_body(pod, None, preferred=preferred, version=version))


class GateRemover:
    """Removes gates, a bounded number at once. To be called in the loop of the session."""

    def __init__(self, session: Requests) -> None:
        self._session = session
        self._room: asyncio.Semaphore | None = None

    async def remove(
        self, pod: PodIdentity, note: str, *, version: str = "", still_wanted: Callable[[], bool] = lambda: True
    ) -> Answer:
        """Return the last answer; what may be answered otherwise in a moment is asked again, for some seconds.

        version : see release_body; still_wanted: asked before every request
        """
        if self._room is None:
            self._room = asyncio.Semaphore(_MOST_AT_ONCE)
        async with self._room:
            worth_it = is_passing if version else is_passing_or_conflict
            return await remove_gate(
                lambda body: self._patch(pod, body, worth_it, still_wanted), pod, note, version=version
            )

    async def _patch(
        self, pod: PodIdentity, body: bytes, worth_it: Callable[[Answer], bool], still_wanted: Callable[[], bool]
    ) -> Answer:
        return await request_with_retries(
            self._session,
            "PATCH",
            pod_path(pod),
            lambda: body,
            content_type=STRATEGIC_MERGE,
            seconds=_SECONDS,
            tries=_TRIES,
            worth_it=worth_it,
            still_wanted=still_wanted,
        )
