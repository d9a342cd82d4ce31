"""How people write how long something takes: 200ms, 30s, 5m, 1h30m, or a plain number of seconds.

The way of Prometheus, without years and weeks (https://prometheus.io/docs/prometheus/latest/querying/basics/), and with
fractions, as Go has them: 1.5h.
"""

from __future__ import annotations

import math
import re
from typing import Final

DURATION_EXAMPLES: Final = "200ms, 30s, 5m or 1h30m"

_LONGEST_TEXT: Final = 400
"""Characters: the largest number there is, written out, and some. A client that creates a pod can write more."""

_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_PART: Final = re.compile(rf"({_NUMBER.pattern})(ms|[smhd])")
_DURATION: Final = re.compile(rf"(?:{_PART.pattern})+")


def duration_seconds(text: str) -> float | None:
    """Seconds, at least 0 and finite; None = it is no duration."""
    if len(text) > _LONGEST_TEXT:
        return None
    if _NUMBER.fullmatch(text):
        seconds = float(text)
    elif _DURATION.fullmatch(text):
        seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
    else:
        return None
    return seconds if math.isfinite(seconds) else None
