"""What a gang needs: a number of members, and numbers of some roles. Both must be met; neither follows from the other.

Which members are counted is decided in members.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

_ROLES_NAMED: Final = 8
"""In a sentence."""


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
