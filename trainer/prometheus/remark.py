"""One thing about a reading that its user should know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

_NAMED = 3


@dataclass(frozen=True, slots=True)
class Remark:
    """What was found, and what to do.

    cause : stable, the same from day to day
    wrong : whether it makes figures wrong or missing, rather than telling how they were read
    """

    cause: str
    text: str
    wrong: bool = True


def some(names: Collection[str] | Counter[str]) -> str:
    """Return the first names, those that count most where they are counted, and how many more there are."""
    listed = [name for name, _ in names.most_common()] if isinstance(names, Counter) else list(names)
    return ", ".join(listed[:_NAMED]) + (f" and {len(listed) - _NAMED:,} more" if len(listed) > _NAMED else "")
