"""Settings of all tests."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import settings

from testing.servers.control_plane.pool import stop_idle
from tests.fast_selection import is_fast

# Two workers that fit small models on all processors each mostly wait for each other: one thread is twice as fast.
# Set before anything loads OpenMP, and inherited by the processes that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Workers of pytest-xdist have it, and commands would take it for the width of a terminal that somebody looks at.
os.environ.pop("COLUMNS", None)

# Nothing is judged by the time it takes: the machine may be busy with other tests. A third of the cases that Hypothesis
# would try by itself.
settings.register_profile("usual", max_examples=30, deadline=None)
settings.load_profile("usual")

# `make test-long` asks for it: hundreds of thousands of cases in all.
settings.register_profile("long", max_examples=500, deadline=None)

# `make test-fast`: a first look while you write.
settings.register_profile("fast", max_examples=10, deadline=None)


_LONGEST_FIRST = (
    "schedule",
    "advise",
    "differential",
    "processes",
    "cluster",
    "forecast",
    "trainer",
    "forecast_scheduler",
)
"""Directories whose files take up to minutes: they wait for real servers, or fit models. Where two files run at a time
one of these must not begin when all others have ended."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """`make test-fast` passes --fast."""
    parser.addoption("--fast", action="store_true", help="leave out files that start servers or fit models")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Return True for files that --fast leaves out; None lets pytest decide."""
    is_test = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    return True if is_test and config.getoption("--fast") and not is_fast(collection_path) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In the order above, others behind these; within a directory as they were."""
    items.sort(key=lambda item: place_of(item.path.relative_to(Path(__file__).parent).parts))


def place_of(parts: Sequence[str]) -> int:
    """Of a test file, by its path below tests/: 0 = begins first."""
    return _LONGEST_FIRST.index(parts[0]) if parts[0] in _LONGEST_FIRST else len(_LONGEST_FIRST)


def pytest_sessionfinish() -> None:
    """End the control planes that tests of this process have shared."""
    stop_idle()


@pytest.fixture(autouse=True)
def _logging_as_at_the_start() -> None:
    """Commands that ran in this process before have set levels and a handler (forecast_scheduler/commands/shell.py)."""
    logging.captureWarnings(False)
    for name in (
        "forecast",
        "trainer",
        "kube",
        "serving",
        "scorer",
        "placement",
        "extender",
        "scheduler",
        "advisor",
        "admission",
        "forecast_scheduler",
        "py.warnings",
    ):
        logging.getLogger(name).setLevel(logging.NOTSET)
    root = logging.getLogger()
    for handler in root.handlers[:]:
        if type(handler) is logging.StreamHandler:  # pytest's own are subclasses
            root.removeHandler(handler)
