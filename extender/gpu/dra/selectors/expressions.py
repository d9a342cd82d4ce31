"""Does a device match a CEL expression? Compiled once, and evaluated once for devices that differ in nothing it reads.

    device.driver == "gpu.example.com"
    device.attributes["gpu.example.com"].model == "a100"
    device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0

Source: staging/src/k8s.io/dynamic-resource-allocation/cel/compile.go. The API server has checked types and bounded the
cost of what it stores; what is not understood here nevertheless is an error, never a match.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from cel import Context, Program, compile, stdlib

from extender.gpu.dra.objects import Device, Version
from extender.gpu.dra.selectors.library import FUNCTIONS, Value, quantity_of, version_of
from extender.gpu.dra.selectors.rewriting import Lookups, lookups, spelled_out
from forecast.errors import InputError

__all__ = ["LONGEST_EXPRESSION", "Expressions", "SelectorError"]

LONGEST_EXPRESSION: Final = 10 * 1024
"""CELSelectorExpressionMaxLength of the API."""
_MOST_LOOPS: Final = 8
_MOST_COMPILED: Final = 4096
_MOST_KNOWN: Final = 1024  # answers kept with a device
_LOOPS: Final = (".all(", ".exists(", ".exists_one(", ".map(", ".filter(")
# What the library counts or matches in other units than cel-go where there is more than ASCII: bytes, not characters;
# \d and \w of all scripts.
_MOST_ANSWERS: Final = 4096  # kept with an expression
_OF_TEXT: Final = frozenset({"size", "matches", "substring", "charAt", "indexOf", "lastIndexOf"})


class SelectorError(InputError):
    """An expression cannot be compiled, or not be evaluated for a device."""


@dataclass(frozen=True, slots=True)
class _Compiled:
    program: Program
    lookups: Lookups
    looks_into_text: bool
    answers: dict[Hashable, bool] = field(default_factory=dict)


class Expressions:
    """Under the lock of the tables."""

    def __init__(self) -> None:
        self._compiled: OrderedDict[str, _Compiled | str] = OrderedDict()
        self._context = Context()
        stdlib.add_stdlib_to_context(self._context)
        for name, function in FUNCTIONS.items():
            self._context.add_function(name, function)
        self.evaluations = 0

    def matches(self, expression: str, device: Device) -> bool:
        """Raises SelectorError, which says what is wrong."""
        known = device.known.get(expression)
        if known is None:
            known = self._evaluated(expression, device)
            if len(device.known) >= _MOST_KNOWN:
                device.known.clear()
            device.known[expression] = known
        if isinstance(known, str):
            raise SelectorError(known)
        return known

    def _evaluated(self, expression: str, device: Device) -> bool | str:
        compiled = self._compile(expression)
        if isinstance(compiled, str):
            return compiled
        key = _what_is_read(device, compiled.lookups)
        if key is not None and key in compiled.answers:
            return compiled.answers[key]
        self.evaluations += 1
        name = f"device {'/'.join(device.id)}"
        try:
            value = _device(device, compiled.lookups)
            if compiled.looks_into_text and not _is_ascii(device):
                return f"CEL runtime error: {name} has text beyond ASCII, which cannot be looked into"
            self._context.add_variable("device", value)
            result = compiled.program.execute(self._context)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic of the library is no Exception
            return f"CEL runtime error for {name}: {_one_line(error)}"
        if not isinstance(result, bool):
            return f"CEL runtime error for {name}: the result is a {type(result).__name__}, no bool"
        if key is not None:
            if len(compiled.answers) >= _MOST_ANSWERS:
                compiled.answers.clear()
            compiled.answers[key] = result
        return result

    def _compile(self, expression: str) -> _Compiled | str:
        known = self._compiled.get(expression)
        if known is None:
            known = _compiled(expression)
            self._compiled[expression] = known
            if len(self._compiled) > _MOST_COMPILED:
                self._compiled.popitem(last=False)
        else:
            self._compiled.move_to_end(expression)
        return known


def _compiled(expression: str) -> _Compiled | str:
    if len(expression) > LONGEST_EXPRESSION:
        return f"CEL compile error: {len(expression)} characters, {LONGEST_EXPRESSION} are allowed"
    try:
        source = spelled_out(expression)
        if (n_loops := sum(map(expression.count, _LOOPS))) > _MOST_LOOPS:
            return f"CEL compile error: {n_loops} comprehensions, {_MOST_LOOPS} are allowed"
        program = compile(source)
        functions = frozenset(program.functions())
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        return f"CEL compile error: {_one_line(error)}"
    return _Compiled(program, lookups(source), bool(functions & _OF_TEXT))


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


def _one_line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
