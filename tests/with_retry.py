"""Runs pytest, then each failed test once more, alone: python -m tests.with_retry PYTEST_ARGUMENTS

For CI, so that a change does not wait for a defect of another test. A test that passes then has failed beside others: a
defect of the test or of the product, which the last lines of the log name.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

MOST: Final = 10
"""More failures than these are not repeated."""

_FAILED: Final = Path(".pytest_cache", "v", "cache", "lastfailed")


def run(arguments: Sequence[str]) -> int:
    """Return pytest's exit status: that of the repetition, if there was one."""
    status = _pytest("--cache-clear", *arguments)  # or failures of earlier runs would be repeated, too
    if status != 1:  # 1 = tests failed; others say that the run itself did
        return status
    failed = sorted(json.loads(_FAILED.read_text()))
    if len(failed) > MOST:
        print(f"{len(failed)} tests failed: more than {MOST} are not repeated")
        return status
    print(f"{len(failed)} failed, once more, alone:", *failed, sep="\n  ", flush=True)
    status = _pytest(*failed)
    still = set(json.loads(_FAILED.read_text())) if status else set()
    if flaky := [name for name in failed if name not in still]:
        print("DEFECT: failed beside others, passed alone. Find the cause of each:", *flaky, sep="\n  ", flush=True)
    return status


def _pytest(*arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *arguments]).returncode


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
