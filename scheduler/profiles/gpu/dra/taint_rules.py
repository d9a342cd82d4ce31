"""Slices with the taints that DeviceTaintRules add to their devices.

Source: applyPatches in k8s.io/dynamic-resource-allocation/resourceslice/tracker/tracker.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from scheduler.profiles.gpu.dra.objects import Device, SliceInfo, TaintRule


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
