"""A directory that is gone when its user ends, however that is: Ctrl-C, SIGTERM and a closed terminal included."""

from __future__ import annotations

import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def temporary_directory() -> Iterator[Path]:
    """Yield a directory for this user alone. A signal that ends the program is raised as KeyboardInterrupt."""
    with _raising(signal.SIGHUP):
        with _held():
            directory = Path(tempfile.mkdtemp(prefix="forecast-scheduler-look-"))
        try:
            yield directory
        finally:
            with _held():
                shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def _held() -> Iterator[None]:
    """Signals that end the program wait for the end of the block, which takes a moment; then one is raised."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are not for this thread
        return
    arrived: list[int] = []
    before = {number: signal.signal(number, lambda number, frame: arrived.append(number)) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if arrived:
        raise KeyboardInterrupt


@contextmanager
def _raising(number: int) -> Iterator[None]:
    """The signal is raised as Ctrl-C is."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(number, _interrupt)
    try:
        yield
    finally:
        signal.signal(number, before)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
