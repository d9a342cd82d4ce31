"""Settings of all tests."""

from __future__ import annotations

import logging
import os

import pytest
from hypothesis import settings

# Two workers that fit small models on all processors each mostly wait for each other: one thread is twice as fast.
# Set before anything loads OpenMP, and inherited by the processes that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Workers of pytest-xdist have it, and commands would take it for the width of a terminal that somebody looks at.
os.environ.pop("COLUMNS", None)

# Nothing is judged by the time it takes: the machine may be busy with other tests.
settings.register_profile("usual", deadline=None)
settings.load_profile("usual")

# `make test-long` asks for it: every property is tried on five times as many cases, hundreds of thousands in all.
settings.register_profile("long", max_examples=500, deadline=None)


@pytest.fixture(autouse=True)
def _logging_as_at_the_start() -> None:
    """Commands that ran in this process before have set levels and a handler (forecast_scheduler/shell.py)."""
    logging.captureWarnings(False)
    for name in ("forecast", "trainer", "scorer", "extender", "forecast_scheduler", "py.warnings"):
        logging.getLogger(name).setLevel(logging.NOTSET)
    root = logging.getLogger()
    for handler in root.handlers[:]:
        if type(handler) is logging.StreamHandler:  # pytest's own are subclasses
            root.removeHandler(handler)
