"""A command of ours in a process that is forked from one that has imported everything: a start saves 2 s of CPU.

    pytest --forkserver--> preloaded.py, idle --fork--> forecast_scheduler.cli.main with its own argv and environment

It has a PID, signals and an exit status like any other process. Its imports, and much of its memory, are those of
the process it comes from. Tests that judge memory, or how a process starts or ends, start it as users do: ScorerProcess
without `forked`.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from multiprocessing.context import ForkServerContext
from pathlib import Path

from testing.constants import Constants, set_constants


class ForkedProcess:
    """What tests use of subprocess.Popen."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        constants: Constants,
        directory: Path,
        environment: Mapping[str, str],
        out: Path,
        err: Path,
    ) -> None:
        """arguments: of `forecast-scheduler`. out, err: files that are appended to."""
        self._arguments = tuple(arguments)
        self._process = _forkserver().Process(
            target=_run,
            args=(self._arguments, constants, str(directory), dict(environment), str(out), str(err)),
            daemon=True,
        )
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """Return its exit status, None while it runs. Of one ended by a signal: the negative number of that."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit status. Raises subprocess.TimeoutExpired."""
        self._process.join(timeout)
        status = self._process.exitcode
        if status is None:
            raise subprocess.TimeoutExpired(self._arguments, timeout or 0)
        return status

    def send_signal(self, number: int) -> None:
        """No error if it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it now, as a crash would."""
        self._process.kill()


@cache
def _forkserver() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["testing.processes.preloaded"])
    return context


def _run(
    arguments: Sequence[str], constants: Constants, directory: str, environment: Mapping[str, str], out: str, err: str
) -> None:
    """In the new process."""
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    for descriptor, path in ((1, out), (2, err)):
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.dup2(file, descriptor)
        os.close(file)
    sys.argv = ["forecast-scheduler", *arguments]
    set_constants(constants)
    from forecast_scheduler.cli import main

    main()
