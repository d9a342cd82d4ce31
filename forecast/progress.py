"""How long-running pure code tells the outside how far it is, without knowing who listens."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with a stage name, the steps done and the steps in all."""


def silent(stage: str, done: int, total: int) -> None:
    """Report nothing."""
