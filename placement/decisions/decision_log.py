"""The decision log: one JSON object a line for each pod that was advised on and bound, to standard output or to a
file that is rotated by size and may be moved away by logrotate.

Writing happens behind an outbox. If the disk is full or hangs, lines are lost and counted, and one warning is logged.
No answer waits for the disk.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from base.errors import InputError
from kube.failure_notice import FailureNotice
from kube.outbox import Outbox
from placement.decisions.decision import Binding, decision_of, slimmed

logger = logging.getLogger(__name__)

STDOUT = Path("-")
"""The name that means standard output."""

_MAX_WAITING = 2_000

_MAX_WAITING_NODES = 500_000
"""Node names and points held by what waits to be written, 80 MB at most; beyond it only the best two nodes are kept."""

_STDOUT_DESCRIPTOR = 1


class RotatingFile:
    """Whole lines into `path`; full ones become path.1 (the newest) to path.`keep`. One writer; raises OSError.

    A file is full before the lines that would take it past `max_bytes`; 0 = never. keep 0: full ones are deleted.

    Before each write it is looked whether the path still names the open file: moved or deleted, it is created anew.
    Where a write stopped half-way (a full disk, a kill), the next one begins a new line, so that one line is lost.
    """

    def __init__(self, path: Path, *, max_bytes: int = 100 << 20, keep: int = 5) -> None:
        """Creates the file, so that one that cannot be written is known at once."""
        self._path, self._max_bytes, self._keep = path, max_bytes, keep
        self._descriptor: int | None = None
        self._torn = False
        self._open()

    def write(self, lines: bytes) -> None:
        """Append lines that end with a newline. After an error some of them may have been written."""
        status = self._current()
        full = 0 < self._max_bytes < status.st_size + len(lines)
        if full and status.st_size and stat.S_ISREG(status.st_mode):
            self._rotate()
        assert self._descriptor is not None
        rest = memoryview(b"\n" + lines if self._torn else lines)
        begun = False
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
                begun = True
        except OSError:
            self._torn = self._torn or begun
            raise
        self._torn = False

    def close(self) -> None:
        """Close the file; nothing if it is closed."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)

    def _current(self) -> os.stat_result:
        """The status of the file that the path names; it is the one that is open afterwards."""
        if self._descriptor is not None:
            opened = os.fstat(self._descriptor)
            with contextlib.suppress(FileNotFoundError):
                named = os.stat(self._path)
                if (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino):
                    return opened
        self._open()
        assert self._descriptor is not None
        return os.fstat(self._descriptor)

    def _open(self) -> None:
        self.close()
        self._descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)
        self._torn = _ends_within_a_line(self._path)

    def _rotate(self) -> None:
        for number in range(self._keep - 1, 0, -1):
            with contextlib.suppress(FileNotFoundError):
                os.replace(self._numbered(number), self._numbered(number + 1))
        with contextlib.suppress(FileNotFoundError):
            if self._keep:
                os.replace(self._path, self._numbered(1))
            else:
                os.unlink(self._path)
        self._open()

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")


def _ends_within_a_line(path: Path) -> bool:
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode) or status.st_size == 0:
        return False
    try:
        with path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"
    except OSError:
        return True  # it may be written but not read: an empty line costs nothing


@dataclass(frozen=True, slots=True)
class LogFigures:
    """Decisions since the start. dropped: the queue was full; failed: they could not be written."""

    written: int
    dropped: int
    failed: int


class DecisionLog:
    """Takes bindings from any thread, writes them as lines in its own."""

    def __init__(self, write: Callable[[bytes], None], *, name: str, close: Callable[[], None] = lambda: None) -> None:
        """write: lines, raising OSError; name: of the place, for messages."""
        self._write, self._name, self._close = write, name, close
        self._written = self._failed = 0
        self._notice = FailureNotice(
            logger, "decisions are not logged, scheduling goes on", "the decision log is written again"
        )
        self._outbox: Outbox[Binding] = Outbox("decision-log", self._append, max_items=_MAX_WAITING)

    def start(self) -> None:
        self._outbox.start()

    def stop(self, timeout: float = 2.0) -> None:
        """Write what waits, if that takes no longer than `timeout` seconds, and close."""
        self._outbox.stop(timeout)
        self._close()

    def take(self, binding: Binding) -> None:
        """Write it soon. Never waits."""
        weight = len(binding.advice.nodes)
        if self._outbox.weight + weight > _MAX_WAITING_NODES:
            binding = replace(binding, advice=slimmed(binding.advice))
            weight = 0
        self._outbox.put(binding, weight)

    @property
    def figures(self) -> LogFigures:
        return LogFigures(self._written, self._outbox.refused, self._failed)

    def _append(self, bindings: Sequence[Binding]) -> None:
        lines = []
        for binding in bindings:
            try:
                lines.append(msgspec.json.encode(decision_of(binding).to_json()) + b"\n")
            except Exception as error:  # a text that is no Unicode, a time beyond the calendar
                self._fail(1, f"a decision cannot be written as JSON: {error}")
        if not lines:
            return
        try:
            self._write(b"".join(lines))
        except (OSError, ValueError) as error:
            self._fail(len(lines), str(error))
            return
        self._written += len(lines)
        self._notice.succeeded(log=self._name, lost=self._failed)

    def _fail(self, n_decisions: int, why: str) -> None:
        self._failed += n_decisions
        self._notice.failed(why, log=self._name)


def open_decision_log(path: Path, *, max_bytes: int = 100 << 20, keep: int = 5) -> DecisionLog:
    """The log in a file, rotated at max_bytes (0 = never) with `keep` old files next to it, or standard output for `-`.

    Raises InputError where the file cannot be written.
    """
    if path == STDOUT:
        return DecisionLog(_to_stdout, name="standard output")
    try:
        file = RotatingFile(path, max_bytes=max_bytes, keep=keep)
    except OSError as error:
        raise InputError(
            f"the decision log {path} cannot be written ({error.strerror or error}): name a file in a directory that "
            "exists and may be written, or - for standard output"
        ) from error
    return DecisionLog(file.write, name=str(path), close=file.close)


def _to_stdout(lines: bytes) -> None:
    rest = memoryview(lines)
    while rest:
        rest = rest[os.write(_STDOUT_DESCRIPTOR, rest) :]
