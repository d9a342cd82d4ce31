"""Measures a run: seconds of each test file, of collection, servers and fits; prints them at its end.

A run with --record-durations writes them to tests/durations.json, from which later runs take their order.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from testing.timings import taken
from tests.parts import DURATIONS

_LEAST: Final = 1.0
"""Seconds: files that take less are not recorded, and run last."""
_SLOWEST: Final = 10


class Clocks:
    """In each process that runs tests: adds to the report of a test what it has cost this process and its children."""

    def __init__(self) -> None:
        self._began, self._cpu, self.collection = time.perf_counter(), _cpu_seconds(), 0.0

    def pytest_collection_finish(self) -> None:
        """Tests begin now: what has passed was for imports and collection."""
        self.collection = time.perf_counter() - self._began
        self._cpu = _cpu_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Iterator[None]:
        """Attach the figures as plain values: pytest-xdist sends them to the process that prints."""
        report: Any = yield
        now = _cpu_seconds()
        report.cpu_seconds, self._cpu = now - self._cpu, now
        report.taken = taken()
        return report  # type: ignore[no-any-return]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Send the time of collection, too."""
        if output := getattr(session.config, "workeroutput", None):
            output["collection"] = self.collection


class Summary:
    """In the process that prints: sums by file, and of what many tests share."""

    def __init__(self, clocks: Clocks, *, record: bool) -> None:
        self._clocks, self._record = clocks, record
        self._files: dict[str, tuple[float, float]] = {}  # wall and CPU seconds
        self._shared: dict[str, tuple[int, float]] = {}  # times and wall seconds
        self._collection: list[float] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add one phase of a test."""
        path = report.nodeid.partition("::")[0].removeprefix("tests/")
        wall, cpu = self._files.get(path, (0.0, 0.0))
        self._files[path] = wall + report.duration, cpu + getattr(report, "cpu_seconds", 0.0)
        for what, (n, seconds) in getattr(report, "taken", {}).items():
            before = self._shared.get(what, (0, 0.0))
            self._shared[what] = before[0] + n, before[1] + seconds

    def pytest_testnodedown(self, node: Any) -> None:
        """Add the figures of a worker of pytest-xdist that ends."""
        self._collection.append(getattr(node, "workeroutput", {}).get("collection", 0.0))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the slowest files, and what servers, fits and collection took."""
        terminalreporter.section(f"{_SLOWEST} slowest files: seconds of wall clock, of CPU")
        for path, (wall, cpu) in sorted(self._files.items(), key=lambda item: -item[1][0])[:_SLOWEST]:
            terminalreporter.write_line(f"{wall:7.1f} {cpu:7.1f}  {path}")
        shared = (f"{what} {seconds:.1f} s ({n})" for what, (n, seconds) in sorted(self._shared.items()))
        terminalreporter.write_line("started or made: " + (", ".join(shared) or "nothing"))
        collection = max(self._collection, default=self._clocks.collection)
        walls, cpus = (sum(seconds) for seconds in zip(*self._files.values(), strict=True)) if self._files else (0, 0)
        terminalreporter.write_line(
            f"collection and imports {collection:.1f} s in each process; tests {walls:.0f} s, of CPU {cpus:.0f} s"
        )
        if self._record:
            DURATIONS.write_text(as_recorded(self._files))


def as_recorded(files: Mapping[str, tuple[float, float]]) -> str:
    """Return the JSON of durations.json: a line for each file that is worth one, the slowest first."""
    known = json.loads(DURATIONS.read_text()) if DURATIONS.exists() else {}
    known = {path: one for path, one in known.items() if path not in files and (DURATIONS.parent / path).exists()}
    known |= {path: (round(wall, 1), round(cpu, 1)) for path, (wall, cpu) in files.items() if wall >= _LEAST}
    lines = (
        f" {json.dumps(path)}: {json.dumps(list(one))}"
        for path, one in sorted(known.items(), key=lambda item: (-item[1][0], item[0]))
    )
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _cpu_seconds() -> float:
    """Of this process, and of its children that have ended."""
    return sum(os.times()[:4])
