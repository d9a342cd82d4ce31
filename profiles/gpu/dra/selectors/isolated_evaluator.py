"""Costly expressions are evaluated in another process, which may be killed by them: evaluator.py.

    idle --ask--> evaluating --answer--> idle
                      +--too long, too much memory, no answer--> killed; the next one is started at once

An expression of 10 KiB that the API server accepts can run for hours here, or need all memory: cel.bind doubles a list
with each line, and only the cost of strings is estimated.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import msgspec

from base.errors import InputError
from profiles.gpu.dra.selectors.evaluator import HEADER

_CPU_SECONDS: Final = 0.25
_MEBIBYTES: Final = 128
_SECONDS: Final = 2.0
"""For an answer, also where the machine has much else to do."""
_START_SECONDS: Final = 10.0


class TooCostly(InputError):
    """An expression takes more time or memory than one evaluation may."""


class NoAnswer(InputError):
    """The evaluator did not answer, for whatever reason."""


class Apart:
    """One process, started when it is first asked. For any thread; one asks at a time."""

    def __init__(
        self, *, cpu_seconds: float = _CPU_SECONDS, mebibytes: int = _MEBIBYTES, seconds: float = _SECONDS
    ) -> None:
        """Limits of one evaluation. seconds: of waiting for its answer."""
        self._cpu_seconds, self._mebibytes, self._seconds = cpu_seconds, mebibytes, seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ready = False
        self._lock = threading.Lock()
        self.killed = 0

    def answer(self, source: str, device: Mapping[str, Any], name: str) -> bool | str:
        """See Programs.answer. Raises TooCostly and NoAnswer."""
        with self._lock:
            process = self._process or self._start()
            if not self._is_ready:
                self._read(process, _START_SECONDS)
                self._is_ready = True
            body = msgspec.json.encode({"source": source, "device": device, "name": name})
            try:
                os.write(_fd(process.stdin), HEADER.pack(len(body)) + body)
            except OSError as error:
                raise self._ended(process) from error
            answer: bool | str = msgspec.json.decode(self._read(process, self._seconds))
            return answer

    def close(self) -> None:
        """End the process; another one is started when it is asked again."""
        with self._lock:
            if self._process is not None:
                self._kill(self._process)
                self._process = None

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "profiles.gpu.dra.selectors.evaluator"]
        try:
            self._process = subprocess.Popen(
                [*command, str(self._cpu_seconds), str(self._mebibytes)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise NoAnswer(f"the process that evaluates expressions cannot be started: {error}") from error
        self._is_ready = False
        return self._process

    def _read(self, process: subprocess.Popen[bytes], seconds: float) -> bytes:
        fd, until, got = _fd(process.stdout), time.monotonic() + seconds, b""
        waiting = select.poll()
        waiting.register(fd, select.POLLIN)
        while len(got) < HEADER.size or len(got) < HEADER.size + HEADER.unpack_from(got)[0]:
            left = until - time.monotonic()
            if left <= 0 or not waiting.poll(1000 * left):
                self._restart(process)
                raise NoAnswer(f"the process that evaluates expressions did not answer within {seconds:g} s")
            piece = os.read(fd, 1 << 16)
            if not piece:
                raise self._ended(process)
            got += piece
        return got[HEADER.size :]

    def _ended(self, process: subprocess.Popen[bytes]) -> InputError:
        """Why it is no more; another one is started."""
        was_ready, status = self._is_ready, process.wait()
        self._restart(process)
        if not was_ready:
            return NoAnswer(f"the process that evaluates expressions ended with status {status} at its start")
        if status == -signal.SIGPROF:
            return TooCostly(f"its evaluation takes more than {self._cpu_seconds:g} s for one device: simplify it")
        return TooCostly(f"its evaluation takes more than {self._mebibytes} MiB of memory: simplify it")

    def _restart(self, process: subprocess.Popen[bytes]) -> None:
        was_ready = self._is_ready
        self._kill(process)
        self._process = None
        self.killed += 1
        if was_ready:  # so it can be; it is read from when it is needed
            self._start()

    def _kill(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def _fd(pipe: Any) -> int:
    return int(pipe.fileno())


@cache
def shared_evaluator() -> Apart:
    """The one of this process."""
    made = Apart()
    atexit.register(made.close)
    return made
