"""Plugin VolumeBinding: claims that waited for their first consumer get their volumes, and then the pod is bound.

    cycle     reserve      chooses: a free volume, or the node for which one is made; assumed in the tables at once
    binding   pre_bind     writes it to the API server, and waits until the volume controllers have bound the claims
    failure   unreserve    what is assumed is taken back; what was written stays, as with kube-scheduler

Source: framework/plugins/volumebinding of Kubernetes (Reserve, PreBind, Unreserve). Needs patch on persistentvolumes
and persistentvolumeclaims. The filter of the same name says where a pod can go.

Pods whose volumes are being bound, and the callbacks for when that is over.

Looked at again whenever the tables change for one of them: nothing is polled.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import msgspec

from cluster.follower import NodesAndPodsOnly
from cluster.tables.changes import Change, NodeChanged, NodeRemoved, PodChange
from kube.objects.objects import PodInfo
from kube.objects.storage_objects import VolumeClaimInfo, VolumeInfo
from kube.session.session_calls import Requests, request_with_retries
from placement.filters.filter import ClusterView
from placement.status import SUCCESS, Code, Status
from scheduler.binding.volume_progress import (
    NAME,
    ChosenNode,
    ChosenVolume,
    Versions,
    VolumeChoice,
    progress,
    volume_choice,
)

BIND_SECONDS: Final = 600.0
"""bindTimeoutSeconds of kube-scheduler."""

_MARGIN_SECONDS: Final = 60.0
_MERGE: Final = "application/merge-patch+json"
_AT_ONCE: Final = 32


@dataclass(frozen=True, slots=True, eq=False)
class _Wait:
    choice: VolumeChoice
    written: Versions
    tell: Callable[[Status], None]

    def depends_on(self) -> Iterable[Hashable]:
        """UID of the pod, names of volumes, namespaces and names of claims."""
        yield self.choice.pod.uid
        yield from (one.volume.name for one in self.choice.existing)
        for one in self.choice.all:
            yield one.claim.namespace, one.claim.name


class VolumeWaits(NodesAndPodsOnly):
    """Implements cluster.follower.Follower and listens to Storage. Everything is called under the lock of the
    tables.
    """

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._waits: dict[str, _Wait] = {}  # by UID
        self._by_key: dict[Hashable, dict[str, None]] = {}
        view.index.storage.listeners.append(self._storage_changed)

    def __len__(self) -> int:
        return len(self._waits)

    def add(self, choice: VolumeChoice, written: Versions, tell: Callable[[Status], None]) -> None:
        """Call `tell` once when the binding is over, perhaps at once. tell: quick, and takes no lock."""
        wait = _Wait(choice, written, tell)
        self.remove(choice.pod.uid)
        self._waits[choice.pod.uid] = wait
        for key in wait.depends_on():
            self._by_key.setdefault(key, {})[choice.pod.uid] = None
        self._look([choice.pod.uid])

    def remove(self, uid: str) -> None:
        """Drop the callback of a pod."""
        wait = self._waits.pop(uid, None)
        for key in () if wait is None else set(wait.depends_on()):
            waiting = self._by_key[key]
            del waiting[uid]
            if not waiting:
                del self._by_key[key]

    # Implements Follower

    def apply(self, changes: Sequence[Change]) -> None:
        """Pods that go, nodes that go."""
        if not self._waits:
            return
        nodes = self._view.state.nodes
        for change in changes:
            match change:
                case PodChange(pod):
                    self._look([pod.uid])
                case NodeChanged(row) | NodeRemoved(row) if row >= len(nodes) or nodes[row] is None:
                    self.rebuild()
                case _:
                    pass

    def rebuild(self) -> None:
        self._look(list(self._waits))

    # Inside

    def _storage_changed(self, item: VolumeClaimInfo | VolumeInfo) -> None:
        if not self._waits:
            return
        keys: list[Hashable]
        if isinstance(item, VolumeClaimInfo):
            keys = [(item.namespace, item.name)]
        else:
            keys = [item.name] if item.claim is None else [item.name, (item.claim.namespace, item.claim.name)]
        self._look(list(dict.fromkeys(uid for key in keys for uid in self._by_key.get(key, ()))))

    def _look(self, uids: Sequence[str]) -> None:
        for uid in uids:
            wait = self._waits.get(uid)
            status = None if wait is None else progress(wait.choice, wait.written, self._view)
            if wait is not None and status is not None:
                self.remove(uid)
                wait.tell(status)


# The merge patches that the API server is asked for. They carry the resourceVersion: if another client has changed the
# object meanwhile, its change wins, and the pod is placed anew.
# Source: bindAPIUpdate in framework/plugins/volumebinding/binder.go; GetBindVolumeToClaim in
# component-helpers/storage/volume/pv_helpers.go.


def node_patch(chosen: ChosenNode, node: str) -> tuple[str, bytes]:
    """Path and body: a volume is to be made for the claim, on that node."""
    claim = chosen.claim
    path = f"/api/v1/namespaces/{quote(claim.namespace, safe='')}/persistentvolumeclaims/{quote(claim.name, safe='')}"
    metadata = _unchanged(claim.resource_version) | {
        "uid": claim.uid,
        "annotations": {"volume.kubernetes.io/selected-node": node},
    }
    return path, msgspec.json.encode({"metadata": metadata})


def reference_patch(chosen: ChosenVolume) -> tuple[str, bytes]:
    """Path and body: the volume is for the claim; the volume controller does the rest."""
    claim, volume = chosen.claim, chosen.volume
    metadata = _unchanged(volume.resource_version)
    if volume.claim is None:  # else it was reserved for the claim before, and stays so when the claim goes
        metadata["annotations"] = {"pv.kubernetes.io/bound-by-controller": "yes"}
    reference = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": claim.namespace,
        "name": claim.name,
        "uid": claim.uid,
        "resourceVersion": claim.resource_version or None,
    }
    body = {"metadata": metadata, "spec": {"claimRef": reference}}
    return f"/api/v1/persistentvolumes/{quote(volume.name, safe='')}", msgspec.json.encode(body)


def version_in(body: bytes) -> str:
    """resourceVersion of an object that the API server returned; '' = not to be read."""
    try:
        return str(msgspec.json.decode(body)["metadata"]["resourceVersion"])
    except (ValueError, KeyError, TypeError):
        return ""


def _unchanged(resource_version: str) -> dict[str, Any]:
    return {"resourceVersion": resource_version} if resource_version else {}


class _Failed(Exception):
    """Something was not written."""


class VolumeBinder:
    """Implements Reserve and PreBind; `waits` is to be attached to the tables.

    locked : takes the lock of the tables
    keep   : called under the lock with the UID of a pod and the unix seconds until which it stays assumed
    """

    name = NAME

    def __init__(
        self,
        session: Requests,
        view: ClusterView,
        *,
        locked: Callable[[], AbstractContextManager[object]],
        keep: Callable[[str, float], None],
        seconds: float = BIND_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._session, self._view, self._locked, self._keep = session, view, locked, keep
        self._seconds, self._clock = seconds, clock
        self.waits: Final = VolumeWaits(view)
        self._choices: dict[str, VolumeChoice] = {}  # by UID, changed under the lock of the tables
        self._gate: Final = asyncio.Semaphore(_AT_ONCE)

    def reserve(self, pod: PodInfo, node: str) -> Status:
        """See Reserve; under the lock of the tables."""
        if not pod.volumes:
            return SUCCESS
        choice = volume_choice(pod, node, self._view)
        if choice is None:
            return SUCCESS
        if isinstance(choice, str):
            return Status(Code.UNSCHEDULABLE, self.name, choice)
        self._choices[pod.uid] = choice
        for item in _assumed_by(choice):
            self._view.index.storage.assume(item)
        self._keep(pod.uid, self._clock() + self._seconds + _MARGIN_SECONDS)
        return SUCCESS

    def unreserve(self, pod: PodInfo, node: str) -> None:
        if pod.uid not in self._choices:
            return
        with self._locked():
            choice = self._choices.get(pod.uid)
            if choice is not None and choice.node == node:
                del self._choices[pod.uid]
                for item in reversed(_assumed_by(choice)):
                    self._view.index.storage.revert(item)

    def concerns(self, pod: PodInfo) -> bool:
        return pod.uid in self._choices

    async def pre_bind(self, pod: PodInfo, node: str) -> Status:
        choice = self._choices.get(pod.uid)
        if choice is None or choice.node != node:
            return Status(Code.ERROR, self.name, "what was reserved is gone")
        loop, over = asyncio.get_running_loop(), asyncio.Event()
        said: list[Status] = []

        def tell(status: Status) -> None:
            said.append(status)
            with suppress(RuntimeError):  # the loop has ended, and who waits with it
                loop.call_soon_threadsafe(over.set)

        try:
            async with asyncio.timeout(self._seconds):
                written = await self._write(choice)
                await asyncio.to_thread(self._wait, choice, written, tell)  # the loop must not wait for the lock
                await over.wait()
        except _Failed as error:
            return Status(Code.ERROR, self.name, f"binding volumes: {error}")
        except TimeoutError:
            return Status(Code.ERROR, self.name, f"binding volumes: they were not bound in {self._seconds:g} s")
        finally:
            if not said:
                await asyncio.shield(asyncio.to_thread(self._give_up, pod.uid))
        if said[0].is_success:
            self._choices.pop(pod.uid, None)
        return said[0]

    # Inside

    def _wait(self, choice: VolumeChoice, written: dict[str, str], tell: Callable[[Status], None]) -> None:
        with self._locked():
            self.waits.add(choice, written, tell)

    def _give_up(self, uid: str) -> None:
        with self._locked():
            self.waits.remove(uid)

    async def _write(self, choice: VolumeChoice) -> dict[str, str]:
        """resourceVersions of what was written. Raises _Failed."""
        written = {}
        for one in choice.existing:
            if one.chosen is not None:
                written[one.volume.name] = await self._patch(*reference_patch(one))
        for chosen in choice.to_provision:
            if chosen.chosen is not None:
                key = f"{chosen.claim.namespace}/{chosen.claim.name}"
                written[key] = await self._patch(*node_patch(chosen, choice.node))
        return written

    async def _patch(self, path: str, body: bytes) -> str:
        """Tried again while it is not known what became of it: had it been carried out, the second is refused, and the
        pod placed anew."""
        async with self._gate:
            answer = await request_with_retries(self._session, "PATCH", path, body, content_type=_MERGE)
        if not answer.is_success:
            raise _Failed(f"PATCH {path}: {answer.text or answer.status}")
        return version_in(answer.body)


def _assumed_by(choice: VolumeChoice) -> list[VolumeClaimInfo | VolumeInfo]:
    return [one.chosen for one in choice.all if one.chosen is not None]
