"""One thing about a reading that its user should know."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Remark:
    """What was found, and what to do.

    cause : stable, the same from day to day
    wrong : whether it makes figures wrong or missing, rather than telling how they were read
    """

    cause: str
    text: str
    wrong: bool = True
