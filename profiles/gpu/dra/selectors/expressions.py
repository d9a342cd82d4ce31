"""Does a device match a CEL expression? Compiled once, and evaluated once for devices that differ in nothing it reads.

    device.driver == "gpu.example.com"
    device.attributes["gpu.example.com"].model == "a100"
    device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0

    short, calls nothing that costs much --> evaluated here: at most 1 KiB of it, in a millisecond
    every other one ----------------------> in another process, with a limit of time and memory (isolated_evaluator.py)

Source: staging/src/k8s.io/dynamic-resource-allocation/cel/compile.go. The API server has checked types; what is not
understood here nevertheless is an error, never a match.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from base.errors import InputError
from profiles.gpu.dra.dra_objects import Device, Version
from profiles.gpu.dra.search_time import SearchTime
from profiles.gpu.dra.selectors.isolated_evaluator import Apart, NoAnswer, TooCostly, shared_evaluator
from profiles.gpu.dra.selectors.programs import FUNCTIONS, Programs, Value, quantity_of, version_of
from profiles.gpu.dra.selectors.rewriting import LOOPS, Lookups, calls, lookups, spelled_out

LONGEST_EXPRESSION: Final = 10 * 1024
"""CELSelectorExpressionMaxLength of the API."""
_MOST_LOOPS: Final = 8
_MOST_COMPILED: Final = 512
_MOST_CHARACTERS: Final = 64 * 1024
_MOST_KNOWN: Final = 32  # answers kept with a device
_MOST_ANSWERS: Final = 1024  # kept with an expression
_MOST_COSTLY: Final = 1024
_COSTLY_SECONDS: Final = 60.0
"""An expression that took too long or too much is not tried again before."""
_LONGEST_HERE: Final = 1024
_CHEAP: Final = frozenset(
    {"has", "size", "startsWith", "endsWith", "contains", "lowerAscii", "upperAscii", "trim", "int", "string", "in"}
    | FUNCTIONS.keys()
)
"""What takes no longer than the text is long."""
# What the library counts or matches in other units than cel-go where there is more than ASCII: bytes, not characters;
# \d and \w of all scripts.
_OF_TEXT: Final = frozenset({"size", "matches", "substring", "charAt", "indexOf", "lastIndexOf"})


class SelectorError(InputError):
    """An expression cannot be compiled, or not be evaluated for a device."""


@dataclass(frozen=True, slots=True)
class _Expression:
    """is_costly: evaluated in another process."""

    source: str
    lookups: Lookups
    looks_into_text: bool
    is_costly: bool
    answers: dict[Hashable, bool] = field(default_factory=dict)


class Expressions:
    """Under the lock of the tables.

    evaluations : so far
    refused     : so far, because there was no time left, or an expression costs too much
    """

    def __init__(self, time: SearchTime | None = None, apart: Callable[[], Apart] = shared_evaluator) -> None:
        """apart: evaluates what may take long."""
        self._time, self._apart = time or SearchTime(), apart
        self._read: OrderedDict[str, _Expression | str] = OrderedDict()
        self._programs = Programs(_MOST_CHARACTERS)
        self._costly: OrderedDict[str, tuple[float, str]] = OrderedDict()  # until when, and why
        self.evaluations = 0
        self.refused = 0

    def matches(self, expression: str, device: Device, payer: str = "") -> bool:
        """Raises SelectorError, which says what is wrong.

        payer : namespace on whose behalf it is asked; '' = the cluster itself, whose time has no limit
        """
        known = device.known.get(expression)
        if known is None:
            known = self._evaluated(expression, device, payer)
            if len(device.known) >= _MOST_KNOWN:
                device.known.clear()
            device.known[expression] = known
        if isinstance(known, str):
            raise SelectorError(known)
        return known

    def _evaluated(self, expression: str, device: Device, payer: str) -> bool | str:
        read = self._of(expression)
        if isinstance(read, str):
            return read
        key = _what_is_read(device, read.lookups)
        if key is not None and key in read.answers:
            return read.answers[key]
        name = f"device {'/'.join(device.id)}"
        if read.looks_into_text and not _is_ascii(device):
            return f"CEL runtime error: {name} has text beyond ASCII, which cannot be looked into"
        try:
            value = _device(device, read.lookups)
        except InputError as error:
            return f"CEL runtime error for {name}: {error}"
        self.evaluations += 1
        result = self._answer(read, value, name, payer)
        if key is not None and isinstance(result, bool):
            if len(read.answers) >= _MOST_ANSWERS:
                read.answers.clear()
            read.answers[key] = result
        return result

    def _answer(self, read: _Expression, value: dict[str, Any], name: str, payer: str) -> bool | str:
        """Raises SelectorError where another time may bring another answer."""
        now = self._time.clock()
        until, why = self._costly.get(read.source, (0.0, ""))
        if now < until:
            self.refused += 1
            raise SelectorError(why)
        if not self._time.is_left(payer):
            self.refused += 1
            raise SelectorError(self._time.refuse(payer))
        try:
            return (self._apart() if read.is_costly else self._programs).answer(read.source, value, name)
        except (TooCostly, NoAnswer) as error:
            self.refused += 1
            if isinstance(error, TooCostly):
                self._costly[read.source] = (now + _COSTLY_SECONDS, str(error))
                if len(self._costly) > _MOST_COSTLY:
                    self._costly.popitem(last=False)
            elif payer:
                self._time.refuse(payer)  # the machine is busy: the pod is tried again once there is time
            raise SelectorError(str(error)) from error
        finally:
            self._time.spend(payer, self._time.clock() - now)

    def _of(self, expression: str) -> _Expression | str:
        known = self._read.get(expression)
        if known is None:
            known = self._read[expression] = _read(expression)
            if len(self._read) > _MOST_COMPILED:
                self._read.popitem(last=False)
        else:
            self._read.move_to_end(expression)
        return known


def _read(expression: str) -> _Expression | str:
    if len(expression) > LONGEST_EXPRESSION:
        return f"CEL compile error: {len(expression)} characters, {LONGEST_EXPRESSION} are allowed"
    try:
        source = spelled_out(expression)
    except InputError as error:
        return f"CEL compile error: {error}"
    called = calls(expression)
    if (n_loops := sum(called[name] for name in LOOPS)) > _MOST_LOOPS:
        return f"CEL compile error: {n_loops} comprehensions, {_MOST_LOOPS} are allowed"
    is_costly = len(expression) > _LONGEST_HERE or not called.keys() <= _CHEAP
    return _Expression(source, lookups(source), not _OF_TEXT.isdisjoint(called), is_costly)


def _device(device: Device, wanted: Lookups) -> dict[str, Any]:
    """The variable `device`. Raises InputError for attributes of a kind that is not known."""
    attributes: dict[str, dict[str, Any]] = {domain: {} for domain in wanted.attributes or ()}
    for name, value in device.attributes.items():
        domain, own = _split(name, device.id.driver)
        attributes.setdefault(domain, {})[own] = _attribute(name, value)
    capacity: dict[str, dict[str, Value]] = {domain: {} for domain in wanted.capacity or ()}
    for name, amount in device.capacity.items():
        domain, own = _split(name, device.id.driver)
        capacity.setdefault(domain, {})[own] = quantity_of(amount)
    return {
        "driver": device.id.driver,
        "allowMultipleAllocations": device.is_shareable,
        "attributes": attributes,
        "capacity": capacity,
    }


def _what_is_read(device: Device, wanted: Lookups) -> Hashable | None:
    """Devices for which this is equal get the same answer; None = nothing can be said."""
    if wanted.read is None or None in device.attributes.values():
        return None
    values: list[Hashable] = [device.id.driver, device.is_shareable, _is_ascii(device)]
    for which, domain, name in wanted.read:
        of_device: Mapping[str, object] = device.attributes if which == "attributes" else device.capacity
        value = of_device.get(f"{domain}/{name}")
        if domain == device.id.driver and name in of_device:
            if value is not None:
                return None  # said twice
            value = of_device[name]
        values.append((type(value), value))  # 1 is not true
    return tuple(values)


def _attribute(name: str, value: object) -> object:
    match value:
        case Version(text):
            return version_of(text)
        case bool() | int() | str():
            return value
        case _:
            raise InputError(f"attribute {name}: unsupported attribute value")


def _split(name: str, default_domain: str) -> tuple[str, str]:
    domain, slash, own = name.partition("/")
    return (domain, own) if slash else (default_domain, name)


def _is_ascii(device: Device) -> bool:
    values: Mapping[str, object] = device.attributes
    return all(value.isascii() for value in values.values() if isinstance(value, str))
