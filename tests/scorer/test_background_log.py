"""What a job that keeps failing writes to the log."""

from __future__ import annotations

import threading

import pytest

from scorer.periodic_task import PeriodicTask


def test_a_job_that_fails_every_time_is_logged_less_and_less_often(caplog: pytest.LogCaptureFixture) -> None:
    enough, calls = threading.Event(), 0

    def fail() -> None:
        nonlocal calls
        calls += 1
        if calls == 11:
            return  # once it goes well, and what fails afterwards is news again
        if calls == 14:
            enough.set()
        raise ZeroDivisionError

    job = PeriodicTask("doomed", 0.0, fail)
    job.start()
    assert enough.wait(10)
    job.stop()
    logged = [record.__dict__["failures"] for record in caplog.records]
    assert logged[:6] == [1, 2, 4, 8, 1, 2]
