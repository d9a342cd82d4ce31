"""The annotation min-per-role of a PodGroup: a JSON object, role -> how many members it needs at least.

A mistake is an error with its place and way out, never a guess: a gang that begins without its parameter server is
worse than one that waits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from base.errors import InputError
from kube.objects.objects import ANNOTATION_PREFIX

MIN_PER_ROLE: Final = f"{ANNOTATION_PREFIX}min-per-role"

_LONGEST_TEXT: Final = 16_384
_MOST_ROLES: Final = 64
_LONGEST_ROLE: Final = 253
_MOST_MEMBERS: Final = 2**31 - 1

_WANTED: Final = 'must be a JSON object such as {"driver": 1, "worker": 4}'


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
