"""Writes claims to the API server: sends them, again after a conflict, and releases them until the release is known.

claim_patches.py decides what to send. One request at a time for each claim; pods that share one wait in turn.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import msgspec

from base.backoff import Backoff
from kube.client.api_answer import NOT_SENT, ApiAnswer
from kube.client.pod_writes import MERGE, pod_path
from kube.decoding.watched_kinds import UndecodableObject
from kube.objects.objects import PodInfo
from kube.session.session_calls import Requests, is_passing, request_with_retries
from profiles.gpu.dra.allocation_status import MadeAllocation
from profiles.gpu.dra.claim_patches import (
    OutdatedClaim,
    Write,
    claim_path,
    deallocation,
    giving_back,
    next_write,
    without_finalizer,
)
from profiles.gpu.dra.claim_table import DraTable
from profiles.gpu.dra.dra_decoding import WATCHED_CLAIMS
from profiles.gpu.dra.dra_metrics import WriteCounts
from profiles.gpu.dra.dra_objects import ClaimKey, ResourceClaimInfo
from profiles.gpu.dra.extended_resources import ExtendedClaim, created_key, creation, mapping_status

logger = logging.getLogger(__name__)

_AT_ONCE: Final = 32
_TRIES: Final = 8  # a claim that many pods share is written by others, too
_CONFLICT: Final = 409
_NOT_FOUND: Final = 404


class NotWritten(Exception):
    """The pod may not use a claim; the reason, for people."""


class ClaimWriter:
    """To be used in the event loop of the session. writes: what was sent so far."""

    def __init__(self, session: Requests, table: DraTable) -> None:
        self._session, self._table = session, table
        self._backoff = Backoff(1.0)  # until a release is tried again that the server did not answer
        self.writes: WriteCounts = Counter()
        self._gate: Final = asyncio.Semaphore(_AT_ONCE)
        self._turns: dict[ClaimKey, tuple[asyncio.Lock, int]] = {}

    async def make_usable(
        self,
        key: ClaimKey,
        uid: str,
        made: MadeAllocation | None,
        pod: PodInfo,
        tell_sent: Callable[[str], None] = lambda what: None,
    ) -> None:
        """See claim_patches.next_write. tell_sent: called with what is about to be sent. Raises NotWritten."""
        async with _Turn(self._turns, key):
            claim = self._table.claim(*key)
            for _ in range(_TRIES):
                if claim is None:
                    raise NotWritten(f"claim {key[0]}/{key[1]} is gone")
                step = next_write(claim, uid, made, pod)
                if isinstance(step, OutdatedClaim):
                    raise NotWritten(step.reason)
                if step is None:
                    await self._learn(claim)
                    return
                tell_sent(step.what)
                answer = await self._send(step)
                if answer.is_success:
                    claim = self._decoded(answer)
                    if step.what != "finalizer":
                        await self._learn(claim)
                elif answer.status == _CONFLICT or is_passing(answer):
                    claim = await self._read(key)
                else:
                    raise NotWritten(f"{step.what} of claim {key[0]}/{key[1]}: {answer.text or answer.status}")
            raise NotWritten(f"claim {key[0]}/{key[1]} is changed by others again and again")

    async def give_back(self, claim: ResourceClaimInfo, pod: PodInfo, deallocate: Callable[[], bool]) -> None:
        """Until it is known that the claim is not reserved for the pod, nor allocated if `deallocate` says so and no
        other pod may use it."""

        def decide(now: ResourceClaimInfo) -> Write | None:
            return giving_back(now, claim.uid, pod.uid, deallocate=deallocate())

        await self._until_done(claim.key, decide)

    async def deallocate(self, claim: ResourceClaimInfo, pod: PodInfo, is_unused: Callable[[], bool]) -> None:
        """Remove the allocation if only this pod may use it, and the pod fits nowhere with it."""

        def decide(now: ResourceClaimInfo) -> Write | None:
            others = [one for one in now.consumers if one.uid != pod.uid]
            is_free = now.uid == claim.uid and now.allocation is not None and not others and is_unused()
            return deallocation(now) if is_free else None

        await self._until_done(claim.key, decide)

    # Claims that are made here, for extended resources

    async def create(self, pod: PodInfo, extended: ExtendedClaim) -> ResourceClaimInfo:
        """The claim as the API server has it now. Raises NotWritten."""
        key, body = created_key(pod), msgspec.json.encode(creation(pod, extended.claim))
        path = claim_path(key).rpartition("/")[0]
        answer = await self._request("create", "POST", path, body, "application/json")
        if answer.is_success:
            claim: ResourceClaimInfo | None = self._decoded(answer)
        elif answer.status == _CONFLICT:  # an earlier try was carried out after all
            claim = await self._read(key)
        else:
            raise NotWritten(f"create of claim {key[0]}/{key[1]}: {answer.text or answer.status}")
        if claim is None or claim.extended_for != pod.uid or claim.terminating or claim.allocation is not None:
            raise NotWritten(f"claim {key[0]}/{key[1]} is there already, or is going")
        await asyncio.to_thread(self._tell_created, extended.claim.key, claim)
        return claim

    async def record(self, pod: PodInfo, extended: ExtendedClaim) -> None:
        """Have the kubelet know which container gets which devices. Raises NotWritten."""
        status = mapping_status(created_key(pod), extended.mappings)
        body = msgspec.json.encode({"metadata": {"uid": pod.uid}, "status": status})
        answer = await self._request("record", "PATCH", f"{pod_path(pod)}/status", body, MERGE)
        if not answer.is_success:
            raise NotWritten(f"status of pod {pod.namespace}/{pod.name}: {answer.text or answer.status}")

    async def remove(self, key: ClaimKey, pod_uid: str) -> None:
        """Until it is known that there is no claim that was made for this pod, or that others keep it."""
        found: list[ResourceClaimInfo] = []

        def decide(now: ResourceClaimInfo) -> Write | None:
            found[:] = [now] if now.extended_for == pod_uid else []
            return without_finalizer(now) if found else None

        await self._until_done(key, decide)
        for claim in found:
            body = msgspec.json.encode({"preconditions": {"uid": claim.uid}})
            answer = await self._request("remove", "DELETE", claim_path(key), body, "application/json")
            if not answer.is_success and answer.status not in (_NOT_FOUND, _CONFLICT):
                raise NotWritten(f"claim {key[0]}/{key[1]} is not deleted: {answer.text or answer.status}")

    # Inside

    async def _request(self, what: str, method: str, path: str, body: bytes, content_type: str) -> ApiAnswer:
        """Tried again while it is not known what became of it: had it been carried out, the second is a conflict."""
        async with self._gate:
            answer = await request_with_retries(self._session, method, path, body, content_type=content_type)
        outcome = "written" if answer.is_success else "conflict" if answer.status == _CONFLICT else "failed"
        self.writes[what, outcome] += 1
        return answer

    async def _until_done(self, key: ClaimKey, decide: Callable[[ResourceClaimInfo], Write | None]) -> None:
        failures = 0
        async with _Turn(self._turns, key):
            while True:
                answer = await self._get(key)
                if answer.is_success:
                    now = self._decoded(answer)
                    await self._learn(now)
                    step = decide(now)
                    if step is None:
                        return
                    answer = await self._send(step)
                    if answer.is_success:
                        await self._learn(self._decoded(answer))
                        return
                if answer.status in (_NOT_FOUND, NOT_SENT):
                    return  # it is gone, or this process does not write any more
                if answer.status == _CONFLICT:
                    continue
                logger.warning("cannot release a claim yet", extra={"claim": "/".join(key), "why": answer.text})
                failures += 1
                await asyncio.sleep(max(self._backoff.seconds(failures), answer.retry_after_seconds))

    async def _send(self, step: Write) -> ApiAnswer:
        return await self._request(step.what, "PATCH", step.path, step.body, MERGE)

    async def _get(self, key: ClaimKey) -> ApiAnswer:
        async with self._gate:
            return await request_with_retries(self._session, "GET", claim_path(key))

    async def _read(self, key: ClaimKey) -> ResourceClaimInfo | None:
        answer = await self._get(key)
        if answer.is_success:
            return self._decoded(answer)
        if answer.status == _NOT_FOUND:
            return None
        raise NotWritten(f"claim {key[0]}/{key[1]} cannot be read: {answer.text or answer.status}")

    @staticmethod
    def _decoded(answer: ApiAnswer) -> ResourceClaimInfo:
        try:
            return WATCHED_CLAIMS.decoded(answer.body)[0]
        except UndecodableObject as error:
            raise NotWritten(str(error)) from error

    async def _learn(self, claim: ResourceClaimInfo) -> None:
        """The loop must not wait for the lock."""
        await asyncio.to_thread(self._tell, claim)

    def _tell_created(self, key: ClaimKey, claim: ResourceClaimInfo) -> None:
        with self._table.locked():
            self._table.created(key, claim)

    def _tell(self, claim: ResourceClaimInfo) -> None:
        with self._table.locked():
            self._table.written(claim)


class _Turn:
    """One request at a time for each claim; a turn without waiters is forgotten."""

    def __init__(self, turns: dict[ClaimKey, tuple[asyncio.Lock, int]], key: ClaimKey) -> None:
        self._turns, self._key = turns, key

    async def __aenter__(self) -> None:
        lock, waiting = self._turns.get(self._key, (asyncio.Lock(), 0))
        self._turns[self._key] = (lock, waiting + 1)
        try:
            await lock.acquire()
        except BaseException:
            self._leave(lock)
            raise

    async def __aexit__(self, *unused: Any) -> None:
        lock, _ = self._turns[self._key]
        lock.release()
        self._leave(lock)

    def _leave(self, lock: asyncio.Lock) -> None:
        _, waiting = self._turns.pop(self._key)
        if waiting > 1:
            self._turns[self._key] = (lock, waiting - 1)
