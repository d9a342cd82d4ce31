"""A wall clock of its own for a process, which jumps when a test says so; its monotonic clocks go on as they are."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Final

HOUR: Final = 3600
DAY: Final = 24 * HOUR
_READ_EVERY: Final = 1  # seconds; libfaketime knows no parts of one


class OwnClock:
    """libfaketime, as the package of that name brings it. `environment` is that of the process."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._file = directory / "clock"
        library = files("libfaketime") / "vendor/libfaketime/src/libfaketime.so.1"
        self.environment: Final[Mapping[str, str]] = {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": str(_READ_EVERY),
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DONT_RESET": "1",
        }
        self._write(0)

    def set_to(self, offset: float) -> None:
        """So many seconds after the true time; the process has seen it when this returns."""
        self._write(offset)
        time.sleep(_READ_EVERY + 0.2)

    def _write(self, offset: float) -> None:
        new = self._file.with_suffix(".new")
        new.write_text(f"{round(offset):+d}\n")
        os.replace(new, self._file)
