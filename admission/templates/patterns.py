r"""Patterns that a parameter's text must match as a whole: a small language that means the same to Python and to CEL.

The API server checks defaults with RE2, which takes linear time; Python's `re` tries combinations, so that
`(a*)*b` would stop everything. What both read alike, and `re` decides quickly, is allowed:

    letters, digits, _ / - . \.  [classes]  (groups)  a|b  * + ? {n} {n,} {n,m}
    at most 3 of * + {n,m} ? | together, of them 2 of * + {n,m}; at most 4 groups
    a group may be followed by ? but not repeated

Each of them multiplies the ways in which a text can be tried: two repetitions try some 30,000 places in the longest
text there is (253 characters), one of ? or | twice as many. That is a millisecond.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_LANGUAGE: Final = re.compile(
    r"(?:[A-Za-z0-9_/.|-]|\\\.|\(|\)|\[\^?[A-Za-z0-9_./-]+\]|[*+?]|\{[0-9]{1,2}(?:,(?:[0-9]{1,2})?)?\})*"
)
_REPEATED: Final = re.compile(r"[*+?}][*+?{]|\)[*+{]|\(\?|--")
_MOST_CHOICES: Final = 3
_MOST_REPETITIONS: Final = 2
_MOST_GROUPS: Final = 4


def pattern_problem(pattern: str) -> str:
    """Why a pattern is not allowed; '' = it is."""
    if _LANGUAGE.fullmatch(pattern) is None or _REPEATED.search(pattern):
        return (
            r"may hold letters, digits, _ / - . \. [classes], (groups) that are not repeated, | and one of * + ? {n,m} "
            "after a character"
        )
    if (
        len(re.findall(r"[*+{?|]", pattern)) > _MOST_CHOICES
        or len(re.findall(r"[*+{]", pattern)) > _MOST_REPETITIONS
        or pattern.count("(") > _MOST_GROUPS
    ):
        return "may hold at most 3 of * + {n,m} ? | together, 2 of * + {n,m}, and 4 groups"
    try:
        re.compile(pattern)
    except re.error as error:
        return f"is no regular expression: {error}"
    return ""


def matches(pattern: str, text: str) -> bool:
    """Whether the whole text does. Only for patterns without a problem; no pattern matches everything."""
    return not pattern or _compiled(pattern).fullmatch(text) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
