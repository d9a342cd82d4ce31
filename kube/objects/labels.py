"""Labels: is a text a valid key, value or namespace, and does a set of labels match a selector? As in apimachinery.

The patterns are those of the schemas in deploy/crds, which cannot look ahead: a rule of theirs bounds the prefix.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from base.errors import InputError
from kube.objects.constraints import LabelSelector, Operator, Requirement

_KEY: Final = r"[A-Za-z0-9][-A-Za-z0-9_./]*"
_VALUE: Final = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?"

_REQUIREMENT: Final = re.compile(
    rf"\s*(?:(?P<absent>!)\s*(?P<missing>{_KEY})"
    rf"|(?P<key>{_KEY})\s*(?:(?P<equals>==|=|!=)\s*(?P<value>{_VALUE})"
    rf"|\s(?P<within>in|notin)\s*\((?P<values>[^()]*)\))?)\s*(?P<end>,|$)"
)

LABEL_VALUE: Final = r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?\Z"

QUALIFIED_NAME: Final = (
    r"^(?![^/]{254})([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z"
)

NAMESPACE: Final = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z"

_LABEL_VALUE, _QUALIFIED_NAME, _NAMESPACE = map(re.compile, (LABEL_VALUE, QUALIFIED_NAME, NAMESPACE))


def selector_matches(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether all requirements hold; no selector matches nothing, an empty one everything."""
    return selector is not None and all(requirement_matches(one, labels) for one in selector.requirements)


def parse_selector(text: str) -> LabelSelector:
    """Read a selector as it stands in a URL: `app=web,tier in (a, b),!old`; '' matches everything. Raises InputError.

    apimachinery/pkg/labels/selector.go, Parse; without its `<` and `>`, which no object but a node is asked by.
    """
    requirements: list[Requirement] = []
    position = 0
    while position < len(text):
        found = _REQUIREMENT.match(text, position)
        if found is None or (found["end"] == "," and found.end() == len(text)):
            raise InputError(
                f"label selector {text[:200]!r} cannot be read from {text[position:][:40]!r} on: write key=value, "
                "key!=value, key in (a,b), key notin (a,b), key or !key, with commas between them"
            )
        requirements.append(_requirement(found))
        position = found.end()
    return LabelSelector(tuple(requirements))


def _requirement(found: re.Match[str]) -> Requirement:
    if found["absent"]:
        return Requirement(found["missing"], Operator.DOES_NOT_EXIST)
    if found["equals"]:
        operator = Operator.NOT_IN if found["equals"] == "!=" else Operator.IN
        return Requirement(found["key"], operator, (found["value"],))
    if found["within"]:
        values = tuple(value.strip() for value in found["values"].split(","))
        return Requirement(found["key"], Operator.IN if found["within"] == "in" else Operator.NOT_IN, values)
    return Requirement(found["key"], Operator.EXISTS)


def requirement_matches(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """NotIn and DoesNotExist hold where the label is missing; Gt and Lt do not, nor for what is no whole number."""
    value = labels.get(requirement.key)
    match requirement.operator:
        case Operator.IN:
            return value is not None and value in requirement.values
        case Operator.NOT_IN:
            return value is None or value not in requirement.values
        case Operator.EXISTS:
            return value is not None
        case Operator.DOES_NOT_EXIST:
            return value is None
        case Operator.GT | Operator.LT:
            return _compares(requirement, value)


def whole_number(text: str) -> int | None:
    """As Go's strconv.ParseInt(text, 10, 64) reads it; None if it does not."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 40:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def _compares(requirement: Requirement, value: str | None) -> bool:
    if value is None or len(requirement.values) != 1:
        return False
    number, limit = whole_number(value), whole_number(requirement.values[0])
    if number is None or limit is None:
        return False
    return number > limit if requirement.operator is Operator.GT else number < limit


def is_qualified_name(text: str) -> bool:
    """A name of at most 63 characters, with or without the name of a domain (at most 253) and a slash before it."""
    return _QUALIFIED_NAME.match(text) is not None


def is_label_value(text: str) -> bool:
    """Nothing, or a name of at most 63 characters."""
    return _LABEL_VALUE.match(text) is not None


def is_namespace(text: str) -> bool:
    """Whether a text can be the name of a namespace (an RFC 1123 label)."""
    return _NAMESPACE.match(text) is not None
