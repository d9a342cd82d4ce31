"""What is not allocated here: better no devices than the wrong ones. Said with the name of what is not supported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from profiles.gpu.dra.dra_objects import (
    MOST_RESULTS,
    AllocationMode,
    ClassInfo,
    Device,
    DeviceAlternative,
    DeviceId,
    ResourceClaimInfo,
)

NODE_RESOURCES: Final = "DRANodeAllocatableResources"
"""Of a device that takes CPU or memory of the node from each pod that uses it: what pods that another scheduler has
placed take so is counted (kube/objects/pod_requests.py), and none is placed here."""

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


def unusable(claim: ResourceClaimInfo, described: Callable[[DeviceId], Device | None]) -> str:
    """Return why a claim that has been allocated, perhaps by another scheduler, is unusable for pods placed here; '' =
    usable. described: the device as its slice has it now.
    """
    for one in () if claim.allocation is None else claim.allocation.devices:
        device = described(one.id)
        takes_more = device is not None and device.lacks == NODE_RESOURCES
        if lacks := one.lacks or (NODE_RESOURCES if takes_more else ""):
            what = f"resource claim {claim.namespace}/{claim.name} has device {'/'.join(one.id)}"
            return f"{what}, which needs {lacks}: that is not supported here"
    return ""


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
