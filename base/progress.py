"""Progress of long-running pure code, reported without knowing the listener."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with a stage name, the steps done and the steps in all."""


def silent(stage: str, done: int, total: int) -> None:
    """Report nothing."""
