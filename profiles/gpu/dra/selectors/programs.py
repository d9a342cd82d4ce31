"""CEL expressions, compiled and evaluated, with the functions that Kubernetes adds: in this process, or in the one of
evaluator.py.

Source: staging/src/k8s.io/apiserver/pkg/cel/library/quantity.go and semverlib.go. Values are maps of one entry, so that
CEL compares them by what they are: {"quantity": 1.5}, {"semver": "1.2.3"}. Quantities are floats, which are exact for
whole numbers up to 8 PiB. A method is a function of what stands before the dot.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from cel import Context, Program
import re
from collections.abc import Callable

from base.errors import InputError
from kube.objects.quantity import parse_quantity

# Functions that Kubernetes adds to CEL: quantities and semantic versions.
#
# Source: staging/src/k8s.io/apiserver/pkg/cel/library/quantity.go and semverlib.go. Values are maps of one entry, so
# that CEL compares them by what they are: {"quantity": 1.5}, {"semver": "1.2.3"}. Quantities are floats, which are
# exact for whole numbers up to 8 PiB. A method is a function of what stands before the dot.

Value = dict[str, Any]
_QUANTITY: Final = "quantity"
_SEMVER: Final = "semver"
_NANO: Final = 9  # digits after the point that a quantity has
_PART: Final = "(?:0|[1-9][0-9]{0,18})"  # 64 bits, as the API server has it


# https://semver.org, "Is there a suggested regular expression"
_VERSION: Final = re.compile(
    rf"({_PART})\.({_PART})\.({_PART})"
    rf"(?:-((?:{_PART}|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:{_PART}|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*))?"
    r"(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?"
)

_MOST_PROGRAMS: Final = 512


def quantity_of(amount: float) -> Value:
    """A quantity as expressions see it."""
    return {_QUANTITY: round(amount, _NANO)}


def version_of(text: str) -> Value:
    """A semantic version as expressions see it, without what follows a +: that does not count, not for == either.

    Raises InputError.
    """
    if _VERSION.fullmatch(text) is None:
        raise InputError(f"{text[:64]!r} is no semantic version: write it as in 1.2.3")
    return {_SEMVER: text.partition("+")[0]}


def _quantity(text: str) -> Value:
    return quantity_of(parse_quantity(_text(text)))


def _semver(text: str, normalize: bool = False) -> Value:
    return version_of(_normalized(_text(text)) if normalize else _text(text))


def _normalized(text: str) -> str:
    """Without a v in front and leading zeros, with all three numbers (semver.Normalize)."""
    numbers, mark, rest = re.fullmatch(r"v?([0-9.]*)([-+]?)(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
    parts = [part.lstrip("0") or "0" for part in numbers.split(".")]
    return ".".join((*parts, *("0" for _ in range(3 - len(parts))))) + mark + rest


def _is(make: Callable[..., Value]) -> Callable[..., bool]:
    def made(*arguments: Any) -> bool:
        try:
            make(*arguments)
        except InputError:
            return False
        return True

    return made


def _compare(left: Value, right: Value) -> int:
    if _has(left, _QUANTITY) and _has(right, _QUANTITY):
        return _order(_amount(left), _amount(right))
    if _has(left, _SEMVER) and _has(right, _SEMVER):
        return _order(_precedence(left[_SEMVER]), _precedence(right[_SEMVER]))
    raise InputError("the operands are not two quantities, and not two semantic versions")


def _order(one: Any, other: Any) -> int:
    return int(one > other) - int(one < other)


def _precedence(version: str) -> tuple[Any, ...]:
    """https://semver.org/#spec-item-11"""
    match = _VERSION.fullmatch(version)
    if match is None:  # a map that the expression made
        raise InputError(f"{version[:64]!r} is no semantic version: write it as in 1.2.3")
    numbers, before = tuple(int(match[at]) for at in (1, 2, 3)), match[4]
    if before is None:
        return (*numbers, 1, ())
    parts = tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in before.split("."))
    return (*numbers, 0, parts)


def _add(left: Value, right: Value | int) -> Value:
    return quantity_of(_amount(left) + _amount_or_number(right))


def _sub(left: Value, right: Value | int) -> Value:
    return quantity_of(_amount(left) - _amount_or_number(right))


def _as_integer(value: Value) -> int:
    amount = _amount(value)
    if not _is_integer(value):
        raise InputError(f"quantity {amount:g} is no whole number of 64 bits")
    return int(amount)


def _is_integer(value: Value) -> bool:
    amount = _amount(value)
    return amount == int(amount) and -(2**63) <= amount < 2**63


def _sign(value: Value) -> int:
    amount = _amount(value)
    return (amount > 0) - (amount < 0)


def _part(at: int) -> Callable[[Value], int]:
    def part(value: Value) -> int:
        if not _has(value, _SEMVER):
            raise InputError("the operand is not a semantic version")
        return int(_precedence(value[_SEMVER])[at])

    return part


def _has(value: object, kind: str) -> bool:
    return isinstance(value, Mapping) and kind in value


def _amount(value: object) -> float:
    if not isinstance(value, Mapping) or _QUANTITY not in value:
        raise InputError("an operand is not a quantity")
    return float(value[_QUANTITY])


def _amount_or_number(value: object) -> float:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else _amount(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise InputError("a quantity or version must be text")
    return value


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "quantity": _quantity,
    "isQuantity": _is(_quantity),
    "semver": _semver,
    "isSemver": _is(_semver),
    "compareTo": _compare,
    "isGreaterThan": lambda left, right: _compare(left, right) > 0,
    "isLessThan": lambda left, right: _compare(left, right) < 0,
    "add": _add,
    "sub": _sub,
    "sign": _sign,
    "isInteger": _is_integer,
    "asInteger": _as_integer,
    "asApproximateFloat": _amount,
    "major": _part(0),
    "minor": _part(1),
    "patch": _part(2),
}
"""By the names that expressions call them by."""


class Programs:
    """Compiled expressions; those used longest ago are dropped first. A program takes up to 2 KiB per character."""

    def __init__(self, most_characters: int) -> None:
        """most_characters: of all expressions that are kept."""
        self._most_characters, self._characters = most_characters, 0
        self._programs: OrderedDict[str, Program | str] = OrderedDict()

    @cached_property
    def _context(self) -> Context:
        # Imported here: the library comes with a command line of its own, 0.2 s that most clusters never need.
        from cel import Context, stdlib

        made = Context()
        stdlib.add_stdlib_to_context(made)
        for name, function in FUNCTIONS.items():
            made.add_function(name, function)
        return made

    def answer(self, source: str, device: Mapping[str, Any], name: str) -> bool | str:
        """Whether the device matches, or what is wrong. device: the variable of that name; name: for messages."""
        program = self._program(source)
        if isinstance(program, str):
            return program
        try:
            self._context.add_variable("device", dict(device))
            result = program.execute(self._context)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic of the library is no Exception
            return f"CEL runtime error for {name}: {_one_line(error)}"
        if not isinstance(result, bool):
            return f"CEL runtime error for {name}: the result is a {type(result).__name__}, no bool"
        return result

    def _program(self, source: str) -> Program | str:
        known = self._programs.get(source)
        if known is not None:
            self._programs.move_to_end(source)
            return known
        from cel import compile

        made: Program | str
        try:
            made = compile(source)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            made = f"CEL compile error: {_one_line(error)}"
        self._programs[source] = made
        self._characters += len(source)
        while len(self._programs) > 1 and (
            self._characters > self._most_characters or len(self._programs) > _MOST_PROGRAMS
        ):
            self._characters -= len(self._programs.popitem(last=False)[0])
        return made


def _one_line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
