"""What is not allocated here: better no devices than the wrong ones. Said with the name of what is not supported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from profiles.gpu.dra.dra_objects import (
    MOST_RESULTS,
    AllocationMode,
    ClassInfo,
    DeviceAlternative,
    ResourceClaimInfo,
)

MOST_DEVICES: Final = 128
"""That the claims of one pod may ask for together: four claims at the limit of the API."""


def refusal_of(claim: ResourceClaimInfo, classes: Mapping[str, ClassInfo]) -> str:
    """Why nothing can be allocated for a claim at the moment, on any node; '' = something might."""
    what = f"resource claim {claim.namespace}/{claim.name}"
    fewest = 0
    for request in claim.spec.requests:
        if not request.wishes:
            return f"{what}, request {request.name}: unknown request type"
        for wish in request.wishes:
            if why := _refusal_of_wish(wish, classes):
                return f"{what}, request {wish.name}: {why}"
        fewest += min(wish.count if wish.mode is AllocationMode.EXACT_COUNT else 1 for wish in request.wishes)
    if fewest > MOST_RESULTS:
        return f"{what}: number of requested devices {fewest} exceeds the claim limit of {MOST_RESULTS}"
    for at, constraint in enumerate(claim.spec.constraints):
        if not constraint.attribute:
            return f"{what}, constraint #{at}: empty constraint (unsupported constraint type?)"
    return ""


def unusable(claim: ResourceClaimInfo) -> str:
    """Return why a claim that has been allocated, perhaps by another scheduler, is unusable for pods placed here; '' =
    usable.
    """
    devices = () if claim.allocation is None else claim.allocation.devices
    lacking = next((one for one in devices if one.lacks), None)
    if lacking is None:
        return ""
    what = f"resource claim {claim.namespace}/{claim.name} has device {'/'.join(lacking.id)}"
    return f"{what}, which needs {lacking.lacks}: that is not supported here"


def _refusal_of_wish(wish: DeviceAlternative, classes: Mapping[str, ClassInfo]) -> str:
    if not wish.device_class:
        return "missing device class name (unsupported request type?)"
    device_class = classes.get(wish.device_class)
    if device_class is None:
        return f"device class {wish.device_class} does not exist"
    if wish.mode is None:
        return "unsupported allocation mode"
    if wish.lacks:
        return f"it needs {wish.lacks}, which is not supported here"
    if None in wish.selectors or None in device_class.selectors:
        return "CEL expression empty (unsupported selector type?)"
    if wish.mode is AllocationMode.EXACT_COUNT and wish.count < 1:
        return f"count is {wish.count}, it must be 1 or more"
    return ""
