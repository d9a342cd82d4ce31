from __future__ import annotations

import logging

import pytest

from serving.quiet_log import Quiet, QuietLog, quiet_libraries
from testing.settable_clock import SettableClock


def test_lines_are_held_back_by_kind_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    clock = SettableClock(0.0)
    log = QuietLog(logging.getLogger("serving.test"), Quiet(10, clock))
    for _ in range(5):
        log.log(logging.WARNING, "%s failed", "it")
    clock.now = 10
    log.log(logging.WARNING, "%s failed", "it")
    assert [record.getMessage() for record in caplog.records] == ["it failed", "it failed (4 more were not logged)"]
    caplog.clear()
    log = QuietLog(logging.getLogger("serving.test"))
    for kind in ("filter", "bind", "filter"):
        log.log(logging.WARNING, "%s failed", kind, kind=kind)
    assert [record.getMessage() for record in caplog.records] == ["filter failed", "bind failed"]
    quiet = Quiet(10, SettableClock(0.0))
    assert sum(quiet.held_back(f"text {number}") is not None for number in range(10_000)) == 65


@pytest.mark.parametrize("name", ["asyncio", "uvicorn.error"])
def test_libraries_are_quiet_while_a_server_runs(caplog: pytest.LogCaptureFixture, name: str) -> None:
    library = logging.getLogger(name)
    with quiet_libraries():
        for number in range(100):
            library.error("Fatal error on transport\ntransport: %d", number)
    assert len(caplog.records) == 1
    library.error("Fatal error on transport\ntransport: 100")
    assert len(caplog.records) == 2
