"""Which devices there are, with the taints that DeviceTaintRules add, and from which nodes each can be used: slices put
together to pools.

A driver describes a pool in one or more ResourceSlices, all of one generation; until all of them are there, no pod gets
a device of it. Source: structured/internal/stable/pools_stable.go. Stricter here: a slice of an older generation is
never used, whether or not the newer one is about the same nodes, and device names must be unique in the whole pool.

Source: applyPatches in k8s.io/dynamic-resource-allocation/resourceslice/tracker/tracker.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from profiles.gpu.dra.dra_objects import Device, DeviceId, PoolId, SliceInfo, TaintRule, WhereUsable


@dataclass(frozen=True, slots=True, eq=False)
class DevicePool:
    """The slices of a pool's newest generation, by name.

    is_complete : all of them are there
    mistake     : why nothing of it may be given away; '' = it may
    counters    : what there is of each by (set, counter), before anything is used
    """

    id: PoolId
    slices: tuple[SliceInfo, ...]
    is_complete: bool
    mistake: str
    counters: Mapping[tuple[str, str], float]
    devices: Mapping[str, Device]


@dataclass(frozen=True, slots=True)
class PoolOnNode:
    """What of a pool a node can use."""

    pool: DevicePool
    devices: tuple[Device, ...]


@dataclass(slots=True)
class DeviceInventory:
    """All slices, put together. Under the lock of the tables.

    pools     : those that have a slice
    own_pools : by name of a node, those with anything that is of that node alone
    """

    pools: dict[PoolId, DevicePool] = field(default_factory=dict)
    own_pools: dict[str, dict[PoolId, None]] = field(default_factory=dict)
    _slices: dict[str, SliceInfo] = field(default_factory=dict)
    _names: dict[PoolId, set[str]] = field(default_factory=dict)
    _wide: dict[PoolId, None] = field(default_factory=dict)  # pools with anything that is not of one node

    def replace(self, slices: Iterable[SliceInfo]) -> None:
        self.pools, self._slices, self._names, self.own_pools, self._wide = {}, {}, {}, {}, {}
        for one in slices:
            self._add(one)
        for pool in self._names:
            self._build(pool)

    def put(self, one: SliceInfo) -> set[str] | None:
        """A slice is new or has changed. Returns the nodes that this concerns; None = any."""
        touched = self.delete(one)
        self._add(one)
        self._build(one.pool)
        return _both(touched, self._nodes_of(one.pool))

    def delete(self, one: SliceInfo) -> set[str] | None:
        """A slice is gone. Returns the nodes that this concerns; None = any."""
        before = self._slices.pop(one.name, None)
        if before is None:
            return set()
        touched = self._nodes_of(before.pool)
        names = self._names[before.pool]
        names.discard(one.name)
        self._build(before.pool)
        if not names:
            del self._names[before.pool]
        return touched

    def slice(self, name: str) -> SliceInfo | None:
        return self._slices.get(name)

    def device(self, device: DeviceId) -> Device | None:
        """A device that is described now."""
        pool = self.pools.get(device.pool_id)
        return None if pool is None else pool.devices.get(device.device)

    def nodes_of(self, pool: PoolId) -> set[str] | None:
        """Names of the nodes that can use anything of a pool; None = any might."""
        return self._nodes_of(pool)

    def of_node(self, node: str, matches: Callable[[WhereUsable], bool]) -> list[PoolOnNode]:
        """What a node can use, pools and slices by name. matches: whether the node is one of those meant."""
        found = []
        for pool_id in sorted({**self.own_pools.get(node, {}), **self._wide}):
            pool = self.pools[pool_id]
            devices = tuple(
                device
                for one in pool.slices
                if _is_by_device(one) or matches(one.where)
                for device in one.devices
                if device.where is None or matches(device.where)
            )
            # Counters are for all of the pool: where it is incomplete, so is what this node knows of it.
            if devices or any(one.counters and matches(one.where) for one in pool.slices):
                found.append(PoolOnNode(pool, devices))
        return found

    # Inside

    def _add(self, one: SliceInfo) -> None:
        self._slices[one.name] = one
        self._names.setdefault(one.pool, set()).add(one.name)

    def _build(self, pool_id: PoolId) -> None:
        for node in self._nodes_of(pool_id) or ():
            of_node = self.own_pools.get(node, {})
            of_node.pop(pool_id, None)
            if not of_node:
                self.own_pools.pop(node, None)
        for of_node in self.own_pools.values() if pool_id in self._wide else ():
            of_node.pop(pool_id, None)
        self._wide.pop(pool_id, None)
        self.pools.pop(pool_id, None)
        named = [self._slices[name] for name in sorted(self._names.get(pool_id, ()))]
        if not named:
            return
        self.pools[pool_id] = _pool(pool_id, named)
        for where in _places(self.pools[pool_id]):
            if where.node:
                self.own_pools.setdefault(where.node, {})[pool_id] = None
            else:
                self._wide[pool_id] = None

    def _nodes_of(self, pool_id: PoolId) -> set[str] | None:
        if pool_id in self._wide:
            return None
        pool = self.pools.get(pool_id)
        return set() if pool is None else {where.node for where in _places(pool)}


def _pool(pool_id: PoolId, named: list[SliceInfo]) -> DevicePool:
    newest = max(one.generation for one in named)
    slices = tuple(one for one in named if one.generation == newest)
    devices: dict[str, Device] = {}
    counters: dict[tuple[str, str], float] = {}
    mistake = ""
    for one in slices:
        for device in one.devices:
            if device.id.device in devices:
                mistake = mistake or f"duplicate device name {device.id.device}"
            devices[device.id.device] = device
        for of_set, counter, amount in one.counters:
            if (of_set, counter) in counters:
                mistake = mistake or f"duplicate counter {counter} in counter set {of_set}"
            counters[of_set, counter] = amount
    missing = next(
        (pair for device in devices.values() for *pair, _ in device.consumes if tuple(pair) not in counters), None
    )
    if missing is not None:
        mistake = mistake or f"counter {missing[1]} not found in counter set {missing[0]}"
    is_complete = all(one.n_slices == len(slices) for one in slices)
    return DevicePool(pool_id, slices, is_complete, mistake if is_complete else "", counters, devices)


def _places(pool: DevicePool) -> Iterable[WhereUsable]:
    for one in pool.slices:
        if _is_by_device(one):
            yield from (device.where for device in one.devices if device.where is not None)
        elif one.devices or one.counters:
            yield one.where


def _is_by_device(one: SliceInfo) -> bool:
    """Whether the slice leaves it to its devices."""
    return any(device.where is not None for device in one.devices)


def _both(left: set[str] | None, right: set[str] | None) -> set[str] | None:
    return None if left is None or right is None else left | right


@dataclass(slots=True)
class TaintedSlices:
    """Slices as drivers write them, by name, and the rules. Under the lock of the tables."""

    _slices: dict[str, SliceInfo] = field(default_factory=dict)
    _rules: dict[str, TaintRule] = field(default_factory=dict)

    def replace_slices(self, slices: Iterable[SliceInfo]) -> Iterator[SliceInfo]:
        """These are all. Yields them with all taints."""
        self._slices = {one.name: one for one in slices}
        return map(self._tainted, self._slices.values())

    def put_slice(self, one: SliceInfo) -> SliceInfo:
        """A slice is new or has changed. Returns it with all taints."""
        self._slices[one.name] = one
        return self._tainted(one)

    def delete_slice(self, one: SliceInfo) -> None:
        """A slice is gone."""
        self._slices.pop(one.name, None)

    def replace_rules(self, rules: Iterable[TaintRule]) -> list[SliceInfo]:
        """These are all rules. Returns the slices whose devices have other taints now."""
        return self._changed({one.name: one for one in rules})

    def put_rule(self, rule: TaintRule) -> list[SliceInfo]:
        """A rule is new or has changed. Returns the slices whose devices have other taints now."""
        return self._changed(self._rules | {rule.name: rule})

    def delete_rule(self, rule: TaintRule) -> list[SliceInfo]:
        """A rule is gone. Returns the slices whose devices have other taints now."""
        return self._changed({name: one for name, one in self._rules.items() if name != rule.name})

    def _changed(self, rules: dict[str, TaintRule]) -> list[SliceInfo]:
        before = self._rules
        differing = [
            one
            for name in before.keys() | rules.keys()
            if before.get(name) != rules.get(name)
            for one in (before.get(name), rules.get(name))
            if one is not None
        ]
        self._rules = rules
        return [
            self._tainted(one)
            for one in self._slices.values()
            if any(rule.concerns(device.id) for rule in _of_pool(differing, one) for device in one.devices)
        ]

    def _tainted(self, one: SliceInfo) -> SliceInfo:
        rules = _of_pool(self._rules.values(), one)
        return replace(one, devices=tuple(_with_taints(device, rules) for device in one.devices)) if rules else one


def _of_pool(rules: Iterable[TaintRule], one: SliceInfo) -> list[TaintRule]:
    """Those that may concern a device of the slice."""
    driver, pool = one.pool
    return [rule for rule in rules if rule.selects and rule.driver in (None, driver) and rule.pool in (None, pool)]


def _with_taints(device: Device, rules: Iterable[TaintRule]) -> Device:
    """What expressions said of it stays known: they cannot ask for taints."""
    more = tuple(rule.taint for rule in rules if rule.concerns(device.id))
    return replace(device, taints=(*device.taints, *more)) if more else device
