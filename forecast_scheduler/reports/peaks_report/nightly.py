"""The page of predicted against actual peaks, written by `train` after it has published.

A process of its own writes it: whatever goes wrong there, memory included, neither undoes nor fails the night.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

_LONGEST_SECONDS: Final = 3600.0
_SHOWN_CHARACTERS: Final = 500


def write_peaks_report(html: Path, *, history: str, models: str, config: Path | None) -> str | None:
    """Run `forecast-scheduler report --html` on a history directory and the models that it was published to.

    config : settings file of the run, if it has one
    Returns None if the page was written, else why it was not, for people. The page before stays in that case.
    """
    if "://" in history:
        return f"the history is at {history}, and the page is made from a history directory"
    command = [sys.executable, "-m", "forecast_scheduler", "report"]
    command += [f"--history={history}", f"--models={models}", f"--html={html}"]
    command += [] if config is None else [f"--config={config}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LONGEST_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)[:_SHOWN_CHARACTERS]
    if done.returncode == 0:
        return None
    said = " ".join(done.stderr.split()) or "it said nothing"
    return f"report ended with status {done.returncode}: {said[-_SHOWN_CHARACTERS:]}"
