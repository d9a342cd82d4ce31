"""Which devices of a node satisfy the claims of a pod? The first set that does, found by backtracking.

    claims in order -> requests in order -> wishes (firstAvailable) in order -> devices by pool, slice and place

Source: structured/internal/stable/allocator_stable.go. The same set is found, but devices of one request are tried in
one order only: upstream also tries every permutation of them. Where too much would have to be tried the node counts as
one where the claims do not fit. Pure: nothing is changed but the answers that expressions keep with devices.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from base.errors import ForecastError, InputError
from profiles.gpu.dra.capacity import consumed_capacity, has_room
from profiles.gpu.dra.constraints import ConstraintState, is_tolerated
from profiles.gpu.dra.device_pools import DevicePool, PoolOnNode
from profiles.gpu.dra.dra_objects import (
    MOST_RESULTS,
    AllocationMode,
    ClaimKey,
    ClassInfo,
    Device,
    DeviceAlternative,
    DeviceId,
    DeviceRequest,
    PoolId,
    ResourceClaimInfo,
)
from profiles.gpu.dra.selectors.expressions import SelectorError
from profiles.gpu.dra.unsupported import MOST_DEVICES

MOST_STEPS: Final = 20_000
"""Devices that are tried for the claims of one pod on one node before they count as not fitting there: claims with
constraints over many devices could take for ever."""

_NANO: Final = 9


class AllocationFailed(ForecastError):
    """A claim or class is at fault: trying other nodes makes no sense."""


class NodeUnusable(ForecastError):
    """The allocation on this node cannot be decided now, or not within the steps."""


@dataclass(frozen=True, slots=True)
class ChosenDevice:
    """A device for a claim. wish: of the request that it is for; share: what it consumes, None = it has the device."""

    device: Device
    pool: DevicePool
    wish: DeviceAlternative
    share: Mapping[str, float] | None = None


ChosenDevices = tuple[tuple[ChosenDevice, ...], ...]
"""For each claim."""


@dataclass(frozen=True, slots=True)
class Supply:
    """What devices are given from.

    used    : devices that others have
    shares  : what others have of devices that they share
    matches : whether an expression selects a device; raises SelectorError
    """

    classes: Mapping[str, ClassInfo]
    used: Collection[DeviceId]
    matches: Callable[[str, Device], bool]
    shares: Mapping[DeviceId, Mapping[tuple[ClaimKey, str], Mapping[str, float]]] = field(default_factory=dict)


def allocate(
    claims: Sequence[ResourceClaimInfo], pools: Sequence[PoolOnNode], supply: Supply, *, most_steps: int = MOST_STEPS
) -> ChosenDevices | None:
    """Devices for all claims of a pod on one node; None = there are none. Claims: none that is refused
    (unsupported.py).

    pools : what the node can use

    Raises AllocationFailed, NodeUnusable.
    """
    search = _Search(claims, pools, supply, most_steps)
    if search.run():
        return tuple(map(tuple, search.chosen))
    for one in pools:
        if one.pool.mistake:
            raise NodeUnusable(f"resource pool {'/'.join(one.pool.id)} is invalid: {one.pool.mistake}")
    if (lacking := search.lacking) is not None:
        raise NodeUnusable(
            f"the claims cannot be allocated without {'/'.join(lacking.id)}, which needs {lacking.lacks}: that is not "
            "supported here"
        )
    return None


def takeable(claim: ResourceClaimInfo, pools: Sequence[PoolOnNode], supply: Supply) -> Sequence[DeviceId]:
    """Whole devices that the one request of a claim could have, taken one after the other.

    Raises AllocationFailed, NodeUnusable.
    """
    return list(_Search((claim,), pools, supply, MOST_STEPS).takeable())


@dataclass(slots=True)
class _Search:
    """
    chosen  : for each claim, the last one added is removed first
    lacking : a device that would do, if what it needs were supported
    """

    claims: Sequence[ResourceClaimInfo]
    pools: Sequence[PoolOnNode]
    supply: Supply
    steps_left: int
    chosen: list[list[ChosenDevice]] = field(init=False)
    lacking: Device | None = field(init=False, default=None)
    _constraints: list[list[ConstraintState]] = field(init=False)
    _taken: dict[DeviceId, list[int]] = field(init=False, default_factory=dict)  # by claims of this pod
    _shares: dict[DeviceId, list[Mapping[str, float]]] = field(init=False, default_factory=dict)  # of this pod
    _counters: dict[PoolId, dict[tuple[str, str], float]] = field(init=False, default_factory=dict)
    _all: dict[tuple[int, str], list[tuple[DevicePool, Device]]] = field(init=False, default_factory=dict)
    _devices: list[tuple[DevicePool, Device]] = field(init=False)

    def __post_init__(self) -> None:
        self.chosen = [[] for _ in self.claims]
        self._constraints = [[ConstraintState(one) for one in claim.spec.constraints] for claim in self.claims]
        self._devices = [
            (one.pool, device)
            for one in self.pools
            if one.pool.is_complete and not one.pool.mistake
            for device in one.devices
        ]

    def run(self) -> bool:
        """Whether there is a solution."""
        wanted = 0
        for at, claim in enumerate(self.claims):
            for wish in (wish for request in claim.spec.requests for wish in request.wishes):
                if wish.mode is AllocationMode.ALL:
                    self._all[at, wish.name] = self._all_of(at, wish)
            wanted += sum(min(self._count(at, wish) for wish in request.wishes) for request in claim.spec.requests)
        if wanted > MOST_DEVICES:
            raise AllocationFailed(f"the claims ask for {wanted} devices together, {MOST_DEVICES} are allowed")
        return self._from_request(0, 0)

    def takeable(self) -> Iterator[DeviceId]:
        request = self.claims[0].spec.requests[0]
        wish = request.wishes[0]
        for pool, device in self._devices:
            if device.lacks or device.is_shareable or not self._is_free(0, wish, device.id):
                continue
            if self._selects(0, wish, device) and self._add(0, request, wish, pool, device):
                yield device.id

    # One level per request and per device

    def _from_request(self, at: int, number: int) -> bool:
        """The rest from this request on."""
        if at == len(self.claims):
            return True
        requests = self.claims[at].spec.requests
        if number == len(requests):
            return self._from_request(at + 1, 0)
        request = requests[number]
        return any(self._for_wish(at, number, request, wish) for wish in request.wishes)

    def _for_wish(self, at: int, number: int, request: DeviceRequest, wish: DeviceAlternative) -> bool:
        count = self._count(at, wish)
        if wish.mode is AllocationMode.ALL and count == 0:
            return False  # at least one is required
        if len(self.chosen[at]) + count > MOST_RESULTS:
            return False
        if wish.mode is AllocationMode.ALL:
            return self._every(at, number, request, wish)
        return self._some(at, number, request, wish, count, 0)

    def _some(
        self, at: int, number: int, request: DeviceRequest, wish: DeviceAlternative, count: int, start: int
    ) -> bool:
        """Choose `number` more devices from this place on, and then the rest."""
        if count == 0:
            return self._from_request(at, number + 1)
        for place in range(start, len(self._devices) - count + 1):
            pool, device = self._devices[place]
            if not self._is_free(at, wish, device.id) or not self._selects(at, wish, device):
                continue
            if device.lacks:
                self.lacking = device
                continue
            if not self._add(at, request, wish, pool, device):
                continue
            if self._some(at, number, request, wish, count - 1, place + 1):
                return True
            self._remove(at, request, wish)
        return False

    def _every(self, at: int, number: int, request: DeviceRequest, wish: DeviceAlternative) -> bool:
        added = 0
        for pool, device in self._all[at, wish.name]:
            if not self._is_free(at, wish, device.id) or not self._add(at, request, wish, pool, device):
                break
            added += 1
        else:
            if self._from_request(at, number + 1):
                return True
        for _ in range(added):
            self._remove(at, request, wish)
        return False

    # One device

    def _count(self, at: int, wish: DeviceAlternative) -> int:
        return len(self._all[at, wish.name]) if wish.mode is AllocationMode.ALL else wish.count

    def _all_of(self, at: int, wish: DeviceAlternative) -> list[tuple[DevicePool, Device]]:
        for one in self.pools:
            name = "/".join(one.pool.id)
            if not one.pool.is_complete:
                raise NodeUnusable(f"all devices are asked for, but resource pool {name} is being updated")
            if one.pool.mistake:
                raise NodeUnusable(f"all devices are asked for, but resource pool {name} is invalid")
        found = [
            (pool, device)
            for pool, device in self._devices
            if self._selects(at, wish, device) and self._share(at, wish, device) is not None
        ]
        for _, device in found:
            if device.lacks:
                raise NodeUnusable(
                    f"all devices are asked for, but {'/'.join(device.id)} needs {device.lacks}, which is not supported"
                )
        return found

    def _is_free(self, at: int, wish: DeviceAlternative, device: DeviceId) -> bool:
        taken = self._taken.get(device, ())  # never a device that is shared
        return at not in taken if wish.admin else not taken and device not in self.supply.used

    def _selects(self, at: int, wish: DeviceAlternative, device: Device) -> bool:
        self.steps_left -= 1
        if self.steps_left < 0:
            raise NodeUnusable("there are too many ways to allocate the claims: they were not all tried")
        device_class = self.supply.classes[wish.device_class]
        claim = self.claims[at]
        return self._match(device_class.selectors, device, f"class {device_class.name}") and self._match(
            wish.selectors, device, f"claim {claim.namespace}/{claim.name}"
        )

    def _match(self, selectors: Sequence[str | None], device: Device, whose: str) -> bool:
        for at, selector in enumerate(selectors):
            assert selector is not None  # unsupported.py
            try:
                if not self.supply.matches(selector, device):
                    return False
            except SelectorError as error:
                raise AllocationFailed(f"{whose}: selector #{at}: {error}") from error
        return True

    def _add(self, at: int, request: DeviceRequest, wish: DeviceAlternative, pool: DevicePool, device: Device) -> bool:
        share = self._share(at, wish, device)
        if share is None or not has_room(share, device.capacity, self._shares_of(device)):
            return False
        # Who shares a device that is in use consumes nothing more of its counters.
        is_first = bool(device.consumes) and not self._is_in_use(device)
        if not is_tolerated(device, wish.tolerations) or (is_first and not self._has_counters(pool, device)):
            return False
        states = self._constraints[at]
        for n_added, state in enumerate(states):
            if not state.add(request.name, wish.name, device):
                for before in states[:n_added]:
                    before.remove(request.name, wish.name)
                return False
        if is_first:
            self._consume(pool, device, 1)
        if device.is_shareable:
            self._shares.setdefault(device.id, []).append(share)
        else:
            self._taken.setdefault(device.id, []).append(at)
        self.chosen[at].append(ChosenDevice(device, pool, wish, share if device.is_shareable else None))
        return True

    def _remove(self, at: int, request: DeviceRequest, wish: DeviceAlternative) -> None:
        last = self.chosen[at].pop()
        if last.share is None:
            self._taken[last.device.id].remove(at)
        else:
            self._shares[last.device.id].pop()
        if last.device.consumes and not self._is_in_use(last.device):
            self._consume(last.pool, last.device, -1)
        for state in self._constraints[at]:
            state.remove(request.name, wish.name)

    # Shares (consumable capacity, KEP-5075)

    def _share(self, at: int, wish: DeviceAlternative, device: Device) -> Mapping[str, float] | None:
        """What the request takes of the device; None = the device is too small for it."""
        if not wish.capacity and not device.is_shareable:
            return {}
        try:
            return consumed_capacity(dict(wish.capacity), device.capacity, device.policies)
        except InputError as error:
            claim = self.claims[at]
            raise AllocationFailed(f"claim {claim.namespace}/{claim.name}, request {wish.name}: {error}") from error

    def _shares_of(self, device: Device) -> list[Mapping[str, float]]:
        if not device.is_shareable:
            return []
        return [*self.supply.shares.get(device.id, {}).values(), *self._shares.get(device.id, ())]

    def _is_in_use(self, device: Device) -> bool:
        """Return whether a share, which has been charged for the device, uses it."""
        return bool(device.id in self.supply.shares or self._shares.get(device.id))

    # Counters (partitionable devices, KEP-4815)

    def _has_counters(self, pool: DevicePool, device: Device) -> bool:
        if not device.consumes:
            return True
        left = self._left(pool)
        return all(left[of_set, counter] >= amount for of_set, counter, amount in device.consumes)

    def _consume(self, pool: DevicePool, device: Device, sign: int) -> None:
        left = self._left(pool)
        for of_set, counter, amount in device.consumes:
            left[of_set, counter] = round(left[of_set, counter] - sign * amount, _NANO)

    def _left(self, pool: DevicePool) -> dict[tuple[str, str], float]:
        """What others have not consumed, wherever in the pool their devices are."""
        left = self._counters.get(pool.id)
        if left is None:
            left = self._counters[pool.id] = dict(pool.counters)
            for of_set, counter, amount in self._used_counters(pool):
                left[of_set, counter] = round(left[of_set, counter] - amount, _NANO)
        return left

    def _used_counters(self, pool: DevicePool) -> Iterator[tuple[str, str, float]]:
        for device in pool.devices.values():
            if device.consumes and (device.id in self.supply.used or device.id in self.supply.shares):
                yield from device.consumes
