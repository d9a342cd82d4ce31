"""Creates the PodGroups that owners of pods ask for by annotation, and changes those whose annotation has changed.

    pods with the annotation --GangDirectory.stated--> GroupCreator --POST, PATCH--> API server --watch--> directory

Only the replica that leads writes. An answer of 409 means that another client was faster: the watch brings its group.
Why a group cannot be created is what its pods say in their condition.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import msgspec

from base.errors import InputError
from kube.client.api_answer import NO_ANSWER, NOT_SENT, ApiAnswer
from kube.objects.objects import PodInfo
from kube.session.session_calls import Session
from placement.pod_groups.group_apis import pod_groups_path
from placement.pod_groups.group_of_pod import group_of, manifest_of, minima_of, owner_of, patch_of, supposed_group
from placement.pod_groups.pod_group import PodGroupInfo
from scheduler.gangs.directory import GangDirectory

logger = logging.getLogger(__name__)

_AT_ONCE: Final = 50
"""Groups per step: they are created one after the other, so that bindings, which matter more, go first."""

_SECONDS: Final = 5.0
"""Time limit of one request to the API server."""

_AGAIN_SECONDS: Final = 10.0
"""Until the same is tried again, whatever the answer was: what succeeded comes back by the watch long before."""


@dataclass(frozen=True, slots=True)
class _Due:
    key: str
    pod: PodInfo
    group: PodGroupInfo | None


def suppose_groups(directory: GangDirectory) -> None:
    """Put the groups that would be created into the directory, for dry runs."""
    for pod, group in directory.stated():
        try:
            supposed = supposed_group(pod)
        except InputError as error:
            directory.explain_missing(group_of(pod) or "", str(error))
            continue
        if group is None or (group.is_by_annotation and group.minima != supposed.minima):
            directory.put_group(supposed)


class GroupCreator:
    """`step` is called again and again, every second or so, by one thread.

    may_write : whether this replica leads; one that does not writes nothing
    clock     : own seconds
    """

    def __init__(
        self,
        session: Session,
        directory: GangDirectory,
        *,
        may_write: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._session, self._directory = session, directory
        self._may_write, self._clock = may_write, clock
        self._tried: dict[tuple[str, str], float] = {}  # by key and UID of the pod that states it: when
        self._under_way: Future[None] | None = None

    def step(self) -> None:
        """Begin to write what is due, unless the step before is not through yet."""
        if not self._may_write() or (self._under_way is not None and not self._under_way.done()):
            return
        now = self._clock()
        self._tried = {key: at for key, at in self._tried.items() if 0 <= now - at < _AGAIN_SECONDS}
        due = [one for pod, group in self._directory.stated() if (one := self._look(pod, group)) is not None]
        due = due[:_AT_ONCE]
        for one in due:
            self._tried[one.key, one.pod.uid] = now
        if due:
            self._under_way = self._session.submit(self._write(due))

    # Inside

    def _look(self, pod: PodInfo, group: PodGroupInfo | None) -> _Due | None:
        """The write that the group of this pod needs now; None = it needs none."""
        key = group_of(pod) or ""
        if group is not None and not group.is_by_annotation:
            return None  # another owner's group of that name: its spec holds
        try:
            minima = minima_of(pod)
        except InputError as error:
            self._directory.explain_missing(key, str(error))
            return None
        is_right = group is not None and not group.problem and group.minima == minima
        return None if is_right or (key, pod.uid) in self._tried else _Due(key, pod, group)

    async def _write(self, due: list[_Due]) -> None:
        """In the session's loop, one after the other."""
        for one in due:
            why = await self._write_one(one)
            self._directory.explain_missing(one.key, why)
            if why:
                logger.warning("a PodGroup is not created", extra={"group": one.key, "why": why})

    async def _write_one(self, one: _Due) -> str:
        """Create the group. Returns why it cannot be done; '' = it is done, or another client was faster."""
        minima, path = minima_of(one.pod), pod_groups_path(one.pod.namespace)
        if one.group is not None:
            change = msgspec.json.encode(patch_of(minima, one.group))
            path = f"{path}/{quote(one.group.name, safe='')}"
            answer = await self._session.request(
                "PATCH", path, change, content_type="application/merge-patch+json", seconds=_SECONDS
            )
            return _refusal(answer, "change it", "patch on podgroups of scheduling.x-k8s.io")
        reference, why = await self._reference(one.pod)
        if reference is None:
            return why
        body = msgspec.json.encode(manifest_of(one.pod, minima, reference))
        answer = await self._session.request("POST", path, body, seconds=_SECONDS)
        return _refusal(answer, "create it", "create on podgroups of scheduling.x-k8s.io")

    async def _reference(self, pod: PodInfo) -> tuple[dict[str, Any] | None, str]:
        """Return the owner reference to the controller with which the group is deleted; or None and why there
        is none.
        """
        path = f"/api/v1/namespaces/{quote(pod.namespace, safe='')}/pods/{quote(pod.name, safe='')}"
        reference, why = await self._controller(path, pod.uid, "get on pods")
        if reference is None or owner_of(pod) == pod.owner:
            return reference, why
        path = f"/apis/apps/v1/namespaces/{quote(pod.namespace, safe='')}/replicasets/{quote(pod.owner.name, safe='')}"
        above, why = await self._controller(path, pod.owner_uid, "get on replicasets of apps")
        return (reference if above is None and not why else above), why

    async def _controller(self, path: str, uid: str, right: str) -> tuple[dict[str, Any] | None, str]:
        """The controller of an object; None and '' = it has none."""
        answer = await self._session.request("GET", path, None, seconds=_SECONDS)
        if not answer.is_success:
            return None, _refusal(answer, f"read {path}", right)
        metadata = msgspec.json.decode(answer.body)["metadata"]
        if metadata.get("uid") != uid:
            return None, f"{path} has been made anew"
        owners = metadata.get("ownerReferences", ())
        return next((dict(one) for one in owners if one.get("controller")), None), ""


def _refusal(answer: ApiAnswer, what: str, right: str) -> str:
    """Return why it was refused; '' = it was done, or another client was faster."""
    if answer.is_success or answer.status == 409:
        return ""
    if answer.status == 403:
        return f"the API server forbids to {what} (403): grant {right}"
    if answer.status in (NO_ANSWER, NOT_SENT):
        return f"no answer to the request to {what}, it is tried again"
    return f"the API server refuses to {what} ({answer.status}): {answer.text[:300]}"
