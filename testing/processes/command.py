"""One command line of `forecast-scheduler`, run to its end in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

from testing.processes.scorer_process import ROOT


def command(
    *arguments: object, seconds: float = 120, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Its exit status and what it said. Raises subprocess.TimeoutExpired. environment: beyond that of the tests."""
    return subprocess.run(
        [sys.executable, "-m", "forecast_scheduler", *map(str, arguments)],
        cwd=ROOT, env=os.environ | dict(environment or {}), capture_output=True, text=True, timeout=seconds,
        stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
