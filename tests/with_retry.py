"""Runs pytest, then each failed test once more, alone: a test that passes then is reported as flaky.

    python -m tests.with_retry PYTEST_ARGUMENTS     the exit status is that of pytest
    python -m tests.with_retry --flaky              print, then drop, what the runs so far found, for the end of a log

Real servers share two cores with three workers, so a test can lose to its neighbours. What fails alone is a defect.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

MOST: Final = 10
"""More failures than these are no flakes: they are not repeated."""

_FAILED: Final = Path(".pytest_cache", "v", "cache", "lastfailed")
_FLAKY: Final = Path(".pytest_cache", "flaky.json")


def run(arguments: Sequence[str]) -> int:
    """Return pytest's exit status: that of the repetition, if there was one."""
    status = _pytest(*arguments)
    if status != 1:  # 1 = tests failed; others say that the run itself did
        return status
    failed = sorted(json.loads(_FAILED.read_text()))
    if len(failed) > MOST:
        print(f"{len(failed)} tests failed: more than {MOST} are not repeated")
        return status
    print(f"{len(failed)} failed, once more, alone:", *failed, sep="\n  ")
    status = _pytest(*failed)
    still = set(json.loads(_FAILED.read_text())) if status else set()
    _FLAKY.write_text(json.dumps([*_found(), *(name for name in failed if name not in still)]))
    return status


def report() -> str:
    """Return a paragraph that names the flaky tests found so far, empty if there are none, and drop them."""
    flaky = _found()
    _FLAKY.unlink(missing_ok=True)
    return "\n  ".join(["flaky: failed beside others, passed alone. Find the cause of each:", *flaky]) if flaky else ""


def _found() -> list[str]:
    return list(json.loads(_FLAKY.read_text())) if _FLAKY.exists() else []


def _pytest(*arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *arguments]).returncode


if __name__ == "__main__":
    if sys.argv[1:] == ["--flaky"]:
        if text := report():
            print(text)
    else:
        sys.exit(run(sys.argv[1:]))
