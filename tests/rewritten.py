"""Rewrites the asserts of all test files, on two processors: python -m tests.rewritten

pytest keeps what it rewrote. In a fresh clone nothing is kept, and each worker would rewrite all files by itself.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from _pytest.assertion import rewrite

from tests.parts import TESTS


class _State:
    """What the functions of pytest ask for."""

    def trace(self, message: str) -> None:
        """Keep quiet: pytest traces files that it cannot write."""


def keep(file: Path) -> None:
    """Write what pytest loads in place of a test file, if that of today is not there yet."""
    folder, state = rewrite.get_cache_dir(file), _State()
    kept = folder / (file.stem + rewrite.PYC_TAIL)
    if rewrite.try_makedirs(folder) and rewrite._read_pyc(file, kept, state.trace) is None:
        digest, code = rewrite._rewrite_test(file, None)  # type: ignore[arg-type]
        rewrite._write_pyc(state, code, digest, kept)  # type: ignore[arg-type]


if __name__ == "__main__":
    found = [*sorted(TESTS.rglob("test_*.py")), *sorted(TESTS.rglob("conftest.py"))]
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(keep, found, chunksize=8))
