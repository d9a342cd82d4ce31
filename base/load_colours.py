"""The colours of a node that is hot, and of one that is full: pages, reports, dashboards, terminal."""

from __future__ import annotations

from typing import Final

HOT_COLOUR: Final = "#f2c14e"
FULL_COLOUR: Final = "#d1495b"
