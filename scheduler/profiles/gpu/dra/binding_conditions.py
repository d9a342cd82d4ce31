"""Devices that have to be made ready before a pod is bound: are they, have they failed, or has it taken too long?

Source: isClaimReadyForBinding and isClaimTimeout in framework/plugins/dynamicresources/dynamicresources.go (KEP-5007).
Pure.
"""

from __future__ import annotations

from enum import Enum, auto

from scheduler.profiles.gpu.dra.objects import AllocatedDevice, Allocation, ClaimInfo


class Readiness(Enum):
    """Of the devices of a claim."""

    READY = auto()
    WAITING = auto()
    FAILED = auto()


def needs_conditions(allocation: Allocation) -> bool:
    """Whether any of its devices has to be made ready."""
    return any(one.conditions for one in allocation.devices)


def readiness_of(claim: ClaimInfo, now: float, timeout: float) -> tuple[Readiness, str]:
    """And why, for people. now: unix seconds; timeout: seconds that it may take from the allocation on."""
    allocation = claim.allocation
    if allocation is None:
        return Readiness.WAITING, "it is not allocated"
    pending = ""
    for one in allocation.devices:
        said = claim.conditions.get(one.id, frozenset())
        if failed := _first(one.failure_conditions if one.conditions else (), said, wanted=True):
            return Readiness.FAILED, f"device {_name(one)} has the condition {failed}"
        if not pending and (missing := _first(one.conditions, said, wanted=False)):
            pending = f"device {_name(one)} has yet to have the condition {missing}"
    if not pending:
        return Readiness.READY, ""
    if allocation.at is not None and now > allocation.at + timeout:
        return Readiness.FAILED, f"{pending}, {timeout:g} s after it was allocated"
    return Readiness.WAITING, pending


def _first(conditions: tuple[str, ...], said: frozenset[str], *, wanted: bool) -> str:
    return next((one for one in conditions if (one in said) is wanted), "")


def _name(one: AllocatedDevice) -> str:
    return "/".join(one.id)
