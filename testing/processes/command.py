"""One command line of `forecast-scheduler`, run to its end in a process of its own."""

from __future__ import annotations

import subprocess
import sys

from testing.processes.scorer_process import ROOT


def command(*arguments: object, seconds: float = 120) -> subprocess.CompletedProcess[str]:
    """Its exit status and what it said. Raises subprocess.TimeoutExpired."""
    return subprocess.run(
        [sys.executable, "-m", "forecast_scheduler", *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
