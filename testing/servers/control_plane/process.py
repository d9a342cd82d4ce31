"""One server process of a test: started with its output in a file, ended for certain, also when the test is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

# The shell becomes the server. Beside it a `cat` holds the other end of our pipe: when we are gone, however that
# happened, it reads the end of file and kills the server.
_LEASH = 'exec 3<&0; { cat <&3 >/dev/null; kill -KILL $$; } 2>/dev/null & exec "$@" </dev/null 3<&-'


class ServerProcess:
    """A program that may be started, stopped and killed any number of times; output is appended to `log`."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self.command, self.log = list(command), log
        self._process: subprocess.Popen[bytes] | None = None

    def is_running(self) -> bool:
        """Whether it has been started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self, ready: Callable[[], bool], seconds: float) -> None:
        """Start it and wait until it is ready; raises RuntimeError with the end of its output."""
        if self.is_running():
            return
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _LEASH, "leash", *self.command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline = time.monotonic() + seconds
        while not ready():
            if not self.is_running() or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"{self.command[0]} did not start: {self.log.read_text(errors='replace')[-3000:]}")
            time.sleep(0.02)

    def stop(self, seconds: float = 10) -> None:
        """Ask it to end, then make it; harmless if it does not run."""
        if self.is_running() and self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)
        self.kill()

    def pause(self) -> None:
        """Let it do nothing until `resume`: connections stay open, and nothing answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, number)

    def kill(self) -> None:
        """End it now, as a crash would; harmless if it does not run."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process = None
