"""How long to wait after failures in a row."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

_MOST_DOUBLINGS: Final = 60  # far beyond any longest pause, and no overflow


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses of first, 2 first, 4 first, ... longest seconds."""

    first: float = 0.2
    longest: float = 30.0

    def seconds(self, failures: int, rng: random.Random | None = None) -> float:
        """Return the pause after so many failures; none before the first.

        rng : shortens it at random by up to a half: without the chance all clients of a server that restarts would come
              back at the same moment
        """
        if failures < 1:
            return 0.0
        pause = min(self.longest, self.first * 2.0 ** min(failures - 1, _MOST_DOUBLINGS))
        return pause if rng is None else pause * rng.uniform(0.5, 1.0)
