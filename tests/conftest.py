"""Settings of all tests."""

from __future__ import annotations

import gc
import logging
import os
from pathlib import Path

import pytest
from hypothesis import settings

from testing.servers.control_plane.pool import stop_idle
from tests.measured_run import Clocks, Summary
from tests.parts import PARTS, TESTS, belongs, recorded

# Two workers that fit small models on all processors each mostly wait for each other: one thread is twice as fast.
# Set before anything loads OpenMP, and inherited by the processes that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Workers of pytest-xdist have it, and commands would take it for the width of a terminal that somebody looks at.
os.environ.pop("COLUMNS", None)

# `make test-long` asks for it: hundreds of thousands of cases in all, others each time. It is registered first, since a
# profile takes what it does not name from the one that is loaded.
settings.register_profile("long", max_examples=500, deadline=None)

# `make test-fast`: a first look while you write.
settings.register_profile("fast", max_examples=10, deadline=None, derandomize=True)

# Nothing is judged by the time it takes: the machine may be busy with other tests. A third of the cases that Hypothesis
# would try by itself, the same in each run: a change is not stopped by a case that has nothing to do with it.
settings.register_profile("usual", max_examples=30, deadline=None, derandomize=True)
settings.load_profile("usual")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The targets of the Makefile pass these."""
    parts = ("fast", "default", "random", *PARTS)
    parser.addoption("--part", choices=parts, help="run only the files of this part (tests/parts.py)")
    parser.addoption("--record-durations", action="store_true", help="write tests/durations.json")


def pytest_configure(config: pytest.Config) -> None:
    """Measure the run; pytest-xdist's workers only send their figures."""
    clocks = Clocks()
    config.pluginmanager.register(clocks)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Summary(clocks, record=config.getoption("--record-durations")))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Return True for files of other parts; None lets pytest decide."""
    is_test = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    part = config.getoption("--part")
    return True if is_test and part and not belongs(collection_path, part) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that took longest: none of them may begin when all others have ended."""
    seconds = recorded()
    items.sort(key=lambda item: -seconds.get(item.path.relative_to(TESTS).as_posix(), 0.0))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Leave all that was imported and collected out of what the garbage collector looks through in each test."""
    gc.freeze()


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
