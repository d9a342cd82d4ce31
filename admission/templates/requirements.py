"""Requirements on labels, seen as a set that must hold: which are the same, and can a node meet them all?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kube.objects.constraints import Operator, Requirement
from kube.objects.labels import requirement_matches, whole_number

_HIGHEST = 2**63 - 1


def normal(requirement: Requirement) -> Requirement:
    """The same for all ways to write it: values are a set."""
    values = requirement.values
    return (
        requirement if len(values) < 2 else Requirement(requirement.key, requirement.operator, tuple(sorted({*values})))
    )


def normal_set(requirements: Iterable[Requirement]) -> frozenset[Requirement]:
    """The same whatever the order."""
    return frozenset(map(normal, requirements))


def contradictory(requirements: Iterable[Requirement], labels: Mapping[str, str] | None = None) -> bool:
    """Whether no set of labels could meet them all.

    labels : values that are settled: a nodeSelector

    What it says of single keys is exact but for NotIn with Gt and Lt, where a number can be written in many ways: such
    a term counts as one that can be met.
    """
    return contradiction(requirements, labels) is not None


def contradiction(requirements: Iterable[Requirement], labels: Mapping[str, str] | None = None) -> str | None:
    """A label of which they demand what cannot be; None = they can be met."""
    by_key: dict[str, list[Requirement]] = {}
    for requirement in requirements:
        by_key.setdefault(requirement.key, []).append(requirement)
    for key, value in (labels or {}).items():
        if key in by_key:
            by_key[key].append(Requirement(key, Operator.IN, (value,)))
    return next((key for key, on_key in by_key.items() if _contradictory_key(key, on_key)), None)


def implied(wanted: Requirement, given: Iterable[Requirement], labels: Mapping[str, str] | None = None) -> bool:
    """Whether labels that meet all that is given meet what is wanted, too. Where that is not sure: no.

    labels : as of `contradictory`
    """
    on_key = [one for one in given if one.key == wanted.key]
    if labels is not None and wanted.key in labels:
        on_key.append(Requirement(wanted.key, Operator.IN, (labels[wanted.key],)))
    opposite = _OPPOSITE.get(wanted.operator)
    if opposite is not None:
        return _contradictory_key(wanted.key, [*on_key, Requirement(wanted.key, opposite, wanted.values)])
    if any(one.operator is Operator.IN for one in on_key):
        values = {value for one in on_key if one.operator is Operator.IN for value in one.values}
        possible = [v for v in values if all(requirement_matches(one, {wanted.key: v}) for one in on_key)]
        return all(requirement_matches(wanted, {wanted.key: value}) for value in possible)
    return any(_is_within(one, wanted) for one in on_key)


_OPPOSITE: Final = {
    Operator.IN: Operator.NOT_IN,
    Operator.NOT_IN: Operator.IN,
    Operator.EXISTS: Operator.DOES_NOT_EXIST,
    Operator.DOES_NOT_EXIST: Operator.EXISTS,
}
"""Each holds exactly where the other does not. Gt and Lt have none: a label that is no number meets neither."""


def _is_within(given: Requirement, wanted: Requirement) -> bool:
    """Of two that both are Gt or both Lt: whether the one that is given says as much, or more."""
    if given.operator is not wanted.operator or not (len(given.values) == len(wanted.values) == 1):
        return False
    limit, other = whole_number(given.values[0]), whole_number(wanted.values[0])
    if limit is None or other is None:
        return False
    return limit >= other if wanted.operator is Operator.GT else limit <= other


def _contradictory_key(key: str, requirements: list[Requirement]) -> bool:
    operators = {requirement.operator for requirement in requirements}
    for requirement in requirements:
        if requirement.operator is Operator.IN:  # one of these values, then, and each can be tried
            return not any(
                all(requirement_matches(other, {key: value}) for other in requirements) for value in requirement.values
            )
    if Operator.DOES_NOT_EXIST in operators:
        return bool(operators & {Operator.EXISTS, Operator.GT, Operator.LT})
    return _empty_range(requirements)


def _empty_range(requirements: Iterable[Requirement]) -> bool:
    """Whether no number is above every Gt and below every Lt. A limit that is no number is met by none.

    The value of a label has no sign: it begins with a letter or digit.
    """
    lowest, highest = 0, _HIGHEST
    for requirement in requirements:
        if requirement.operator not in (Operator.GT, Operator.LT):
            continue
        limit = whole_number(requirement.values[0]) if len(requirement.values) == 1 else None
        if limit is None:
            return True
        if requirement.operator is Operator.GT:
            lowest = max(lowest, limit + 1)
        else:
            highest = min(highest, limit - 1)
    return lowest > highest
