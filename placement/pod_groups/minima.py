"""What a gang needs: a number of members, and numbers of some roles, as the annotation min-per-role says. Both must
be met; neither follows from the other.

Which members are counted is decided in members.py.

A mistake is an error with its place and way out, never a guess: a gang that begins without its parameter server is
worse than one that waits.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from base.errors import InputError
from kube.objects.objects import ANNOTATION_PREFIX

_ROLES_NAMED: Final = 8
"""In a sentence."""

MIN_PER_ROLE: Final = f"{ANNOTATION_PREFIX}min-per-role"
_LONGEST_TEXT: Final = 16_384
_MOST_ROLES: Final = 64
_LONGEST_ROLE: Final = 253
_MOST_MEMBERS: Final = 2**31 - 1
_WANTED: Final = 'must be a JSON object such as {"driver": 1, "worker": 4}'


@dataclass(frozen=True, slots=True)
class Minima:
    """members: in all, whatever their role; by_role: of each of these roles."""

    members: int = 1
    by_role: Mapping[str, int] = field(default_factory=dict)

    @property
    def needed(self) -> int:
        """The fewest members that can meet both."""
        return max(self.members, sum(self.by_role.values()))


@dataclass(frozen=True, slots=True)
class Count:
    """How many there are. by_role: of the roles that have a minimum, none = 0."""

    members: int = 0
    by_role: Mapping[str, int] = field(default_factory=dict)

    def plus(self, roles: Sequence[str]) -> Count:
        """With further members of these roles."""
        by_role = Counter(roles)
        by_role.update(self.by_role)
        return Count(self.members + len(roles), by_role)


def are_met(minima: Minima, count: Count) -> bool:
    """Whether nothing falls short: quicker than the words, for every change of a pod asks."""
    if count.members < minima.members:
        return False
    return all(count.by_role.get(role, 0) >= minimum for role, minimum in minima.by_role.items())


def shortfall(minima: Minima, count: Count) -> str:
    """'' = the minima are met, else what there is of what falls short: "3 of 4 members, role worker 1 of 2"."""
    missing = [f"{count.members} of {minima.members} members"] if count.members < minima.members else []
    roles = [
        f"role {role} {count.by_role.get(role, 0)} of {minimum}"
        for role, minimum in sorted(minima.by_role.items())
        if count.by_role.get(role, 0) < minimum
    ]
    if len(roles) > _ROLES_NAMED:
        roles = [*roles[:_ROLES_NAMED], f"and {len(roles) - _ROLES_NAMED} roles more"]
    return ", ".join([*missing, *roles])


def placing_order(minima: Minima, count: Count, roles: Sequence[str], sizes: Sequence[float]) -> list[int]:
    """Positions of members in the order in which they are to be placed: first those that fill the minimum of a role,
    else as they are. Where room ends, it ends for those that can be done without.

    Of those that cannot be done without the larger go first: a smaller one might take the only room that they have.

    count : of the members that sit
    roles, sizes : of those to be placed
    """
    missing = {role: minimum - count.by_role.get(role, 0) for role, minimum in minima.by_role.items()}
    first: list[int] = []
    others: list[int] = []
    for position, role in enumerate(roles):
        if missing.get(role, 0) > 0:
            missing[role] -= 1
            first.append(position)
        else:
            others.append(position)
    if count.members + len(roles) <= minima.needed:
        first, others = first + others, []
    first.sort(key=lambda position: -sizes[position])
    return first + others


def role_minima(text: str) -> dict[str, int]:
    """Role -> members, at least 1. Raises InputError that begins with the annotation's key."""
    if len(text) > _LONGEST_TEXT:
        raise _mistake(f"has {len(text)} characters, at most {_LONGEST_TEXT} are read")
    try:
        found = json.loads(text, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError) as error:
        raise _mistake(f"{_WANTED}, found {_shown(text)}: {str(error)[:100]}") from error
    if not isinstance(found, _Pairs):
        raise _mistake(f"{_WANTED}, found {_shown(text)}")
    if len(found.pairs) > _MOST_ROLES:
        raise _mistake(f"names {len(found.pairs)} roles, at most {_MOST_ROLES} are allowed")
    minima: dict[str, int] = {}
    for role, count in found.pairs:
        if not role or len(role) > _LONGEST_ROLE:
            raise _mistake(f"the name of a role has 1 to {_LONGEST_ROLE} characters, found {_shown(role)}")
        if role in minima:
            raise _mistake(f"role {_shown(role)} is there twice")
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= _MOST_MEMBERS:
            raise _mistake(f"role {_shown(role)} must have a whole number of at least 1, found {_shown(count)}")
        minima[role] = count
    return minima


class _Pairs:
    """A JSON object as it is written: one key may be there twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self.pairs = pairs

    def __repr__(self) -> str:
        return "an object"


def _mistake(what: str) -> InputError:
    return InputError(f"{MIN_PER_ROLE}: {what}")


def _shown(value: object) -> str:
    if isinstance(value, int) and abs(value) > _MOST_MEMBERS:
        return "a number that is too large"  # Python refuses to write out those of thousands of digits
    return repr(value)[:60]


def of_annotations(annotations: Mapping[str, str]) -> dict[str, int]:
    """What a PodGroup's annotations say; none = no role has a minimum. Raises InputError."""
    text = annotations.get(MIN_PER_ROLE)
    return {} if text is None else role_minima(text)
