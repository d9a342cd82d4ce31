"""What devices of one claim must have in common, or must not: matchAttribute, distinctAttribute; and tolerated taints.

Source: structured/internal/experimental/constraint.go and resourceclaim/devicetoleration.go. Distinct means any two
devices, those of one request, too.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from profiles.gpu.dra.dra_objects import Constraint, Device, DeviceTaint, DeviceToleration, Version

_KEEPING_AWAY = ("NoSchedule", "NoExecute")  # unknown effects and None are to be ignored


@dataclass(slots=True)
class ConstraintState:
    """A constraint and the values of the devices that have been chosen so far; the last one added is removed first."""

    constraint: Constraint
    values: list[Hashable] = field(default_factory=list)

    def add(self, request: str, wish: str, device: Device) -> bool:
        """Whether the device may be added; it is then."""
        if not self.constraint.concerns(request, wish):
            return True
        value = _value(device, self.constraint.attribute)
        if value is None:
            return False
        if self.values and (value in self.values if self.constraint.is_distinct else value != self.values[0]):
            return False
        self.values.append(value)
        return True

    def remove(self, request: str, wish: str) -> None:
        """Undo the last `add` that said yes, with the same names."""
        if self.constraint.concerns(request, wish):
            self.values.pop()


def tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    """As of node taints: an empty effect or key means any."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case _:
            return False


def is_tolerated(device: Device, tolerations: Iterable[DeviceToleration]) -> bool:
    """Whether no taint keeps such a request away from the device."""
    return all(
        any(tolerates(one, taint) for one in tolerations) for taint in device.taints if taint.effect in _KEEPING_AWAY
    )


def _value(device: Device, attribute: str) -> Hashable:
    """With its type: 1 and true are not equal. None = it has none that can be compared."""
    value = device.attribute(attribute)
    if value is None:
        return None
    return (type(value).__name__, value.text if isinstance(value, Version) else value)
