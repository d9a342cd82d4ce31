"""Pods that wait behind our scheduling gate, read with as little of them as possible, and the patch that removes the
gate, without its note if need be. What a user writes into the rest of a pod keeps no part from removing our gate.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct, field

from kube.client.api_answer import ApiAnswer, is_gone
from kube.client.pod_writes import PodIdentity, pod_path
from kube.decoding.watched_kinds import Watched
from kube.session.session_calls import Requests, is_passing, is_passing_or_conflict, request_with_retries
from kube.status.pod_conditions import STRATEGIC_MERGE
from placement.gate_exemptions import ADVICE
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
    return msgspec.json.encode({"metadata": metadata, "spec": spec})


def may_go_without_note(answer: ApiAnswer) -> bool:
    """Return whether the API server refused a patch that it may take without the note.

    A pod may have 256 KiB of annotations, so that no note fits (ValidateAnnotationsSize in
    k8s.io/apimachinery/pkg/api/validation), or a policy of the cluster may forbid to change them.
    """
    return answer.status in _NOTE_REFUSED and not is_gone(answer)


async def remove_gate(
    patch: Callable[[bytes], Awaitable[ApiAnswer]],
    pod: PodIdentity,
    note: str,
    *,
    preferred: Sequence[Any] = (),
    version: str = "",
) -> ApiAnswer:
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
    ) -> ApiAnswer:
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
        self, pod: PodIdentity, body: bytes, worth_it: Callable[[ApiAnswer], bool], still_wanted: Callable[[], bool]
    ) -> ApiAnswer:
        return await request_with_retries(
            self._session,
            "PATCH",
            pod_path(pod),
            body,
            content_type=STRATEGIC_MERGE,
            seconds=_SECONDS,
            tries=_TRIES,
            worth_it=worth_it,
            still_wanted=still_wanted,
        )


@dataclass(frozen=True, slots=True)
class PodWithGates:
    """Implements PodIdentity.

    gates   : names of all its scheduling gates
    created : unix seconds
    version : resourceVersion
    """

    namespace: str
    name: str
    uid: str
    gates: tuple[str, ...] = ()
    created: float = 0.0
    version: str = ""

    @property
    def has_ours(self) -> bool:
        """Return whether our gate is among those that hold it."""
        return ADVICE in self.gates

    @property
    def waits_for_us_alone(self) -> bool:
        """Return whether our gate is the only one."""
        return self.gates == (ADVICE,)


class _Metadata(Struct, rename="camel", gc=False):
    name: str
    uid: str
    namespace: str = ""
    resource_version: str = ""
    creation_timestamp: datetime | None = None
    deletion_timestamp: str | None = None


class _Gate(Struct, gc=False):
    name: str = ""


class _Spec(Struct, rename="camel", gc=False):
    scheduling_gates: list[_Gate] | None = None


class _Pod(Struct, gc=False):
    metadata: _Metadata
    spec: _Spec = field(default_factory=_Spec)


_POD: Final = msgspec.json.Decoder(_Pod)


def _decode(body: bytes | Raw) -> tuple[PodWithGates, str]:
    """One that is being deleted waits for nobody."""
    pod = _POD.decode(body)
    metadata = pod.metadata
    gates = () if metadata.deletion_timestamp else tuple(gate.name for gate in pod.spec.scheduling_gates or ())
    created = metadata.creation_timestamp.timestamp() if metadata.creation_timestamp else 0.0
    version = metadata.resource_version
    return PodWithGates(metadata.namespace, metadata.name, metadata.uid, gates, created, version), version


UNBOUND_PODS: Final = Watched("pods", "Pod", "/api/v1/pods", _decode, query={"fieldSelector": "spec.nodeName="})
"""Pods that no scheduler has bound yet: a pod that is bound leaves the list as if it had been deleted."""
