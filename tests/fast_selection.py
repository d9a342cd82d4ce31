"""Which test files `make test-fast` leaves out: those that start servers or processes, or fit models."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parent

_STARTS_SOMETHING: Final = re.compile(
    r"testing\.(servers|processes|soak|local_cluster)|\bsubprocess\b|\bmultiprocessing\b"
    r"|tests\.(processes|differential|entry_points|browser|dashboards)\."
    r"|from benchmarks\.|with_retry|serving\.server import"
)
_FITS_MODELS: Final = re.compile(
    r"import (fit|fitted|backtest|train_and_publish|synthetic_history|nightly_model|run)\b"
    r"|recorded_evening|small_history|\"sample\""
)


def is_fast(file: Path) -> bool:
    """Return whether neither a test file nor the conftest.py files above it start or fit anything."""
    texts = [file.read_text(), *(_text(one / "conftest.py") for one in file.parents if TESTS in one.parents)]
    return not any(_STARTS_SOMETHING.search(text) or _FITS_MODELS.search(text) for text in texts)


@cache
def _text(file: Path) -> str:
    return file.read_text() if file.exists() else ""
