"""The directory of a look is gone however its user ends."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from forecast_scheduler.commands.look.temporary import temporary_directory


def interrupted_work(number: signal.Signals, seen: list[Path]) -> None:
    """Work with a directory that a signal ends."""
    with temporary_directory() as directory:
        seen.append(directory)
        (directory / "history").mkdir()
        os.kill(os.getpid(), number)
        raise AssertionError("the signal did not arrive")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_work_and_removes_the_directory(number: signal.Signals) -> None:
    before, seen = signal.getsignal(number), list[Path]()
    with pytest.raises(KeyboardInterrupt):
        interrupted_work(number, seen)
    assert seen and not seen[0].exists()
    assert signal.getsignal(number) is before


def test_a_signal_during_the_removal_waits_for_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    remove = shutil.rmtree

    def interrupted(path: Path, ignore_errors: bool) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        remove(path, ignore_errors=ignore_errors)

    monkeypatch.setattr(shutil, "rmtree", interrupted)
    seen: list[Path] = []
    with pytest.raises(KeyboardInterrupt), temporary_directory() as directory:
        seen.append(directory)
    assert seen and not seen[0].exists()


def test_only_its_user_may_read_it() -> None:
    with temporary_directory() as directory:
        assert directory.stat().st_mode & 0o077 == 0
