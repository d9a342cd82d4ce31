"""What the API server learns of a pod with claims, and what is taken back: the requests of dynamic_resources.py in
turn.

Coroutines run in the loop of the session; what takes something back goes on by itself until it is done.

Devices that have to be made ready before a pod is bound: are they, have they failed, or has it taken too long?

Source: isClaimReadyForBinding and isClaimTimeout in framework/plugins/dynamicresources/dynamicresources.go (KEP-5007).
Pure.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Final

from kube.objects.objects import PodInfo
from kube.session.session_calls import Session, begin
from profiles.gpu.dra.allocation_status import MadeAllocation
from profiles.gpu.dra.claim_table import DraTable
from profiles.gpu.dra.claim_writer import ClaimWriter, NotWritten
from profiles.gpu.dra.dra_objects import AllocatedDevice, Allocation, ClaimKey, ResourceClaimInfo
from profiles.gpu.dra.extended_resources import ExtendedClaim, created_key

logger = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 1.0

WRITE_SECONDS: Final = 20.0
"""The claims of a pod have to be written to the API server by then, repetitions included."""

READY_SECONDS: Final = 600.0
"""Drivers have this time, from the allocation on, to make devices with binding conditions ready, as in
kube-scheduler."""


# Devices that have to be made ready before a pod is bound: are they, have they failed, or has it taken too long?
#
# Source: isClaimReadyForBinding and isClaimTimeout in framework/plugins/dynamicresources/dynamicresources.go
# (KEP-5007). Pure.


class DeviceReadiness(Enum):
    """Of the devices of a claim."""

    READY = auto()
    WAITING = auto()
    FAILED = auto()


def needs_conditions(allocation: Allocation) -> bool:
    """Whether any of its devices has to be made ready."""
    return any(one.conditions for one in allocation.devices)


def readiness_of(claim: ResourceClaimInfo, now: float) -> tuple[DeviceReadiness, str]:
    """Return how ready the devices of a claim are, and why, for people. now: unix seconds."""
    allocation = claim.allocation
    if allocation is None:
        return DeviceReadiness.WAITING, "it is not allocated"
    pending = ""
    for one in allocation.devices:
        said = claim.conditions.get(one.id, frozenset())
        if failed := _first(one.failure_conditions if one.conditions else (), said, wanted=True):
            return DeviceReadiness.FAILED, f"device {_name(one)} has the condition {failed}"
        if not pending and (missing := _first(one.conditions, said, wanted=False)):
            pending = f"device {_name(one)} has yet to have the condition {missing}"
    if not pending:
        return DeviceReadiness.READY, ""
    if allocation.at is not None and now > allocation.at + READY_SECONDS:
        return DeviceReadiness.FAILED, f"{pending}, {READY_SECONDS:g} s after it was allocated"
    return DeviceReadiness.WAITING, pending


def _first(conditions: tuple[str, ...], said: frozenset[str], *, wanted: bool) -> str:
    return next((one for one in conditions if (one in said) is wanted), "")


def _name(one: AllocatedDevice) -> str:
    return "/".join(one.id)


@dataclass(slots=True)
class PodAllocations:
    """What a pod that has a node is to use: UID of each claim, and its allocation unless it had one.

    extended   : what of the claims is for extended resources; under its own key until the API server has it
    sent       : claims of which it is not certain that nothing was written for the pod
    is_written : all of it is in the API server
    """

    node: str
    claims: dict[ClaimKey, tuple[str, MadeAllocation | None]]
    extended: ExtendedClaim | None = None
    sent: set[ClaimKey] = field(default_factory=set)
    is_written: bool = False


class ClaimWrites:
    """writer: None = a dry run, nothing is written."""

    def __init__(
        self,
        session: Session | None,
        table: DraTable,
        *,
        is_held: Callable[[ClaimKey], bool],
    ) -> None:
        """is_held: whether a pod is about to use a claim."""
        self._session, self._table, self._is_held = session, table, is_held
        self.writer: Final = None if session is None else ClaimWriter(session, table)
        self._going: set[ClaimKey] = set()  # claims that are deallocated or deleted at the moment

    async def write(self, held: PodAllocations, pod: PodInfo) -> None:
        """All that the pod needs. Raises NotWritten, TimeoutError."""
        assert self.writer is not None
        async with asyncio.timeout(WRITE_SECONDS):
            if held.extended is not None:
                await self._create(held, held.extended, pod)
            for key, (uid, made) in held.claims.items():

                def tell_sent(what: str, key: ClaimKey = key, uid: str = uid) -> None:
                    if what != "finalizer":
                        held.sent.add(key)
                    if what == "allocate":
                        self._table.made.add(uid)

                await self.writer.make_usable(key, uid, made, pod, tell_sent)
            if held.extended is not None:
                await self.writer.record(pod, held.extended)

    async def ready(self, held: PodAllocations, clock: Callable[[], float]) -> None:
        """Once drivers have made ready what has binding conditions. Raises NotWritten: that failed, or took too long.

        clock : unix seconds
        """
        waiting = dict(held.claims)
        until = clock() + READY_SECONDS
        while waiting:
            for key, (uid, _) in list(waiting.items()):
                claim = self._table.claim(*key)
                if claim is None or claim.uid != uid or claim.allocation is None:
                    raise NotWritten(f"claim {key[0]}/{key[1]} got deallocated elsewhere in the meantime")
                state, why = readiness_of(claim, clock())
                if state is DeviceReadiness.FAILED or (state is DeviceReadiness.WAITING and clock() > until):
                    raise NotWritten(f"claim {key[0]}/{key[1]}: {why}")
                if state is DeviceReadiness.READY:
                    del waiting[key]
            if waiting:
                await asyncio.sleep(_LOOK_SECONDS)

    def give_back(self, claim: ResourceClaimInfo, pod: PodInfo) -> None:
        """The pod's reservation, and the allocation if it was made for this pod alone."""
        self._submit(self._give_back(claim, pod))

    def deallocate(self, claim: ResourceClaimInfo, pod: PodInfo) -> bool:
        """An allocation that no other pod may use. False = that is under way."""
        return self._once(claim.key, lambda: self._deallocate(claim, pod))

    def remove(self, key: ClaimKey, pod: PodInfo) -> bool:
        """The claim that was made for extended resources of the pod. False = that is under way."""
        return self._once(key, lambda: self._remove(key, pod))

    # Inside

    def _once(self, key: ClaimKey, work: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        if key in self._going:
            return False
        self._going.add(key)
        self._submit(work())
        return True

    async def _create(self, held: PodAllocations, extended: ExtendedClaim, pod: PodInfo) -> None:
        assert self.writer is not None
        if extended.claim.key in held.claims:
            held.sent.add(created_key(pod))
            claim = await self.writer.create(pod, extended)
            _, made = held.claims.pop(extended.claim.key)
            held.claims[claim.key] = (claim.uid, made)

    async def _give_back(self, claim: ResourceClaimInfo, pod: PodInfo) -> None:
        assert self.writer is not None

        def deallocate() -> bool:
            flight = self._table.in_flight.get(claim.key)
            return claim.uid in self._table.made and (flight is None or not flight.users)

        try:
            await self.writer.give_back(claim, pod, deallocate)
        except NotWritten as error:
            logger.warning("cannot release a claim", extra={"claim": "/".join(claim.key), "why": str(error)})
        finally:
            await asyncio.shield(asyncio.to_thread(self._given_back, claim.key, claim.uid))

    async def _remove(self, key: ClaimKey, pod: PodInfo) -> None:
        assert self.writer is not None
        try:
            await self.writer.remove(key, pod.uid)
        except NotWritten as error:
            logger.warning("a claim was not deleted", extra={"claim": "/".join(key), "why": str(error)})
        finally:
            self._going.discard(key)
            await asyncio.shield(asyncio.to_thread(self._given_back, key, None))

    def _given_back(self, key: ClaimKey, uid: str | None) -> None:
        with self._table.locked():
            flight = self._table.in_flight.get(key)
            if flight is not None and uid in (None, flight.uid) and not flight.users:
                self._table.forget(key)

    async def _deallocate(self, claim: ResourceClaimInfo, pod: PodInfo) -> None:
        assert self.writer is not None
        try:
            await self.writer.deallocate(claim, pod, lambda: not self._is_held(claim.key))
        except NotWritten as error:
            logger.warning("a claim was not deallocated", extra={"claim": "/".join(claim.key), "why": str(error)})
        finally:
            self._going.discard(claim.key)

    def _submit(self, work: Coroutine[Any, Any, None]) -> None:
        if self._session is None:
            work.close()
        else:
            begin(self._session, work)  # who starts next finds the claim as it is
