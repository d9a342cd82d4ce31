"""Shares of a device: how much of its capacity a request takes, and whether that much is left.

    no request for it : the default of the policy, or all there is
    a request         : rounded up to the values that the policy allows

Source: structured/internal/incubating/consumable_capacity.go of Kubernetes 1.37 (KEP-5075). Steps count in thousandths
(DRAFractionalCapacityRange). Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from base.errors import InputError

_NANO: Final = 9
_MILLI: Final = 1000


@dataclass(frozen=True, slots=True)
class CapacityPolicy:
    """requestPolicy of a capacity. None = it does not say.

    values : sorted, the only ones that are allowed; () = others are, too
    """

    default: float | None = None
    values: tuple[float, ...] = ()
    least: float | None = None
    most: float | None = None
    step: float | None = None


def consumed_capacity(
    asked: Mapping[str, float], capacity: Mapping[str, float], policies: Mapping[str, CapacityPolicy]
) -> dict[str, float] | None:
    """What a request takes of each capacity of a device; None = the device cannot meet it, however free it is.

    Raises InputError for a request that no step can be found for.
    """
    if any(name not in capacity for name in asked):
        return None
    taken: dict[str, float] = {}
    for name, amount in capacity.items():
        policy = policies.get(name, _NO_POLICY)
        if name in asked:
            taken[name] = _rounded(asked[name], policy)
        else:
            taken[name] = amount if policy.default is None else policy.default
        if taken[name] > amount or _violates(taken[name], policy):
            return None
    return taken


def has_room(taken: Mapping[str, float], capacity: Mapping[str, float], shares: Iterable[Mapping[str, float]]) -> bool:
    """Return whether that much is left next to the shares of others."""
    used = list(shares)
    return all(
        round(amount + sum(one.get(name, 0.0) for one in used), _NANO) <= capacity[name]
        for name, amount in taken.items()
    )


_NO_POLICY: Final = CapacityPolicy()


def _rounded(asked: float, policy: CapacityPolicy) -> float:
    if policy.least is not None:
        if asked < policy.least:
            return policy.least
        if policy.step is None:
            return asked
        least, step = _milli(policy.least), _milli(policy.step)
        steps = -(-(_milli(asked) - least) // step)
        return (least + steps * step) / _MILLI
    return next((value for value in policy.values if asked <= value), asked)


def _violates(taken: float, policy: CapacityPolicy) -> bool:
    if taken == policy.default:
        return False
    if policy.least is None and policy.most is None and policy.step is None:
        return bool(policy.values) and taken not in policy.values
    if policy.most is not None and taken > policy.most:
        return True
    return policy.step is not None and (_milli(taken) - _milli(policy.least or 0.0)) % _milli(policy.step) != 0


def _milli(amount: float) -> int:
    """Exact. Raises InputError."""
    whole = int(amount)
    rest = round((amount - whole) * _MILLI, 6)
    if not rest.is_integer():
        raise InputError(f"capacity {amount:g} is not a whole number of thousandths")
    return whole * _MILLI + int(rest)
