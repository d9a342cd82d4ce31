"""The colours of a node's predicted or measured load, as a share of its capacity: page, dashboards, terminal.

Blue is calm, yellow is hot (above the setting `hot_share`), red is more than the node has (above FULL_SHARE). The
scale has no green, which some readers do not distinguish from red.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from base.load_colours import FULL_COLOUR, HOT_COLOUR

FULL_SHARE: Final = 1.0
"""All that a node has."""

UNKNOWN: Final = "–"
"""What is not known."""

HIGHEST_SHARE: Final = 1.2
"""The colours change up to here."""


class LoadColour(NamedTuple):
    """Colour from this share on; between two of them they are mixed. dark: on a dark page."""

    share: float
    light: str
    dark: str


def load_scale(hot: float) -> tuple[LoadColour, ...]:
    """The colours by rising shares. hot: share of its capacity above which a node is hot"""
    return (
        LoadColour(0.0, "#f4f7f9", "#25303a"),
        LoadColour(hot / 2, "#b9d6dc", "#2f5964"),
        LoadColour(round(hot * 7 / 8, 6), "#5fa3b0", "#5fa3b0"),
        LoadColour(hot, HOT_COLOUR, HOT_COLOUR),
        LoadColour(FULL_SHARE, FULL_COLOUR, FULL_COLOUR),
        LoadColour(HIGHEST_SHARE, "#6d1a36", "#ff8fa3"),
    )


def percent(share: float | None, *, digits: int = 0) -> str:
    """A share as per cent, halves up as JavaScript rounds; a dash if it is not known (None, or NaN)."""
    if share is None or not math.isfinite(share):
        return UNKNOWN
    return f"{math.floor(100 * share * 10**digits + 0.5) / 10**digits:.{digits}f} %"
