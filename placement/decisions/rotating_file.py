"""Appends to a file that grows, is rotated by size, and may be moved away by logrotate at any time."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path


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
        """Idempotent."""
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
