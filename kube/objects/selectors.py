"""Does a set of labels match? Label selectors as in apimachinery/pkg/labels/selector.go."""

from __future__ import annotations

from collections.abc import Mapping

from kube.objects.constraints import LabelSelector, Operator, Requirement


def selector_matches(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether all requirements hold; no selector matches nothing, an empty one everything."""
    return selector is not None and all(requirement_matches(one, labels) for one in selector.requirements)


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
