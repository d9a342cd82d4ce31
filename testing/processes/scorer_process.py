"""The command `forecast-scheduler scorer` in a process of its own, and a client that never stops asking it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import yaml

from testing.constants import Constants, split_constants
from testing.processes.forked_process import ForkedProcess
from testing.waiting import eventually

ROOT = Path(__file__).parents[2]
ANSWER_SECONDS = 3.0
_START_SECONDS = 180  # of a machine that has much else to do


def settings_of(**scorer: Any) -> dict[str, Any]:
    """Settings under which a test does not wait long; `scorer` replaces some of the group of that name."""
    quick = {"usage_every": "1s", "model_every": "1s", "overview_every": "1s", "ladder": {"fresh_usage": "4s"}}
    return {"scorer": quick | scorer}


class ScorerProcess:
    """Context manager around one process. `url` is where it listens, `http` a client for it.

    directory   : where its settings and its log go
    settings    : document; constants of options classes may be among its keys (testing/constants.py)
    constants   : of further classes
    ready       : wait until it is
    command     : which service it is; `scorer` or `extender`
    code        : directory of the code that runs
    environment : variables beyond those of the tests
    forked      : from a process that has imported everything (forked_process.py): saves 2 s of CPU. Not where memory or
                  start or end of the process are what is judged
    """

    def __init__(
        self,
        directory: Path,
        *arguments: str | Path,
        settings: Mapping[str, Any] | None = None,
        constants: Constants | None = None,
        ready: bool = True,
        command: str = "scorer",
        code: Path = ROOT,
        environment: Mapping[str, str] | None = None,
        forked: bool = False,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        config = directory / "settings.yaml"
        given = settings_of() if settings is None else settings
        document, self._constants = split_constants(given) if code == ROOT else (dict(given), {})
        self._constants |= constants or {}
        config.write_text(yaml.safe_dump(document))
        self._code = code
        self._arguments = [command, "--port", "0", "--config", str(config), *map(str, arguments)]
        self._forked = forked and code == ROOT and not environment  # whose variables may be read by the interpreter
        self._environment = os.environ | {"OMP_NUM_THREADS": "1"} | dict(environment or {})
        self._says = f"{command}: http".encode()
        self._out, self._err, self._ready = directory / "stdout", directory / "log", ready
        self.process: subprocess.Popen[bytes] | ForkedProcess | None = None
        self.url = ""
        self.http = httpx.Client(timeout=20, headers={"Content-Type": "application/json"})

    def __enter__(self) -> Self:
        try:
            self.start()
            if self._ready:
                self.wait_ready()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def log(self) -> str:
        """Everything it has said on stderr."""
        return self._err.read_text(errors="replace")

    def said(self) -> list[str]:
        """The lines that it has said on stdout."""
        return self._out.read_text().splitlines()

    @property
    def complaints(self) -> list[str]:
        """The lines of it that are no mere news."""
        return [line for line in self.log.splitlines() if " INFO " not in line]

    def start(self) -> None:
        """Start it and wait until it listens."""
        self._out.write_bytes(b"")
        if self._forked:
            self.process = ForkedProcess(
                self._arguments,
                constants=self._constants,
                directory=self._code,
                environment=self._environment,
                out=self._out,
                err=self._err,
            )
        else:
            module = ["testing.constants", json.dumps(self._constants)] if self._constants else ["forecast_scheduler"]
            command = [sys.executable, "-m", *module, *self._arguments]
            with self._out.open("ab") as out, self._err.open("ab") as err:
                self.process = subprocess.Popen(
                    command, cwd=self._code, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=self._environment
                )
        if not eventually(lambda: self._listens() or self.process_ended(), _START_SECONDS) or not self._listens():
            raise RuntimeError(f"the scorer did not start: {self.log[-3000:]}")
        (line,) = (line for line in self.said() if line.startswith(self._says.decode()))
        self.url = line.split()[1].rstrip(",")
        self.http.base_url = self.url

    def wait_ready(self, seconds: float = 30) -> None:
        """Wait until it says that it is."""
        if not eventually(lambda: self.http.get("/readyz").status_code == 200, seconds):
            raise RuntimeError(f"the scorer is not ready: {self.http.get('/readyz').text} {self.log[-3000:]}")

    def get(self, path: str) -> dict[str, Any]:
        """A JSON document; raises httpx.HTTPStatusError."""
        return dict(self.http.get(path).raise_for_status().json())

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a question; raises httpx.HTTPStatusError."""
        return dict(self.http.post(path, json=body).raise_for_status().json())

    def metric(self, name: str) -> float:
        """Value of a metric, summed over its labels; 0 where it is known and nothing was counted yet."""
        text = self.http.get("/metrics").raise_for_status().text
        series = [line for line in text.splitlines() if line.startswith((f"{name} ", f"{name}{{"))]
        if not series and f"# TYPE {name.removesuffix('_count')} " not in text:
            raise KeyError(name)
        return sum(float(line.rpartition(" ")[2]) for line in series)

    def process_ended(self) -> bool:
        """Whether it runs no more."""
        return self.process is not None and self.process.poll() is not None

    def terminate(self, seconds: float = 20) -> int:
        """Ask it to end; returns its exit status."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def kill(self) -> None:
        """End it now, as a crash would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Stop it for the time of the context, as a machine that swaps does, or a paused container."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End it and close all connections."""
        self.http.close()
        self.kill()

    def _listens(self) -> bool:
        return self._says in self._out.read_bytes()


class Asker:
    """Context manager: a thread that asks for scores every 50 ms and remembers what did not go well.

    answers  : bodies
    failures : what went wrong, in words; also an answer that took more than ANSWER_SECONDS
    """

    def __init__(self, url: str, body: Mapping[str, Any], *, every: float = 0.05) -> None:
        self._url, self._body, self._every = url, dict(body), every
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.answers: list[dict[str, Any]] = []
        self.failures: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *unused: object) -> None:
        self._stop.set()
        self._thread.join(20)

    def _run(self) -> None:
        with httpx.Client(base_url=self._url, timeout=ANSWER_SECONDS) as client:
            while not self._stop.wait(self._every):
                try:
                    answer = client.post("/v1/scores", json=self._body)
                except httpx.HTTPError as error:
                    self.failures.append(f"{type(error).__name__}: {error}")
                    continue
                if answer.status_code == 200:
                    self.answers.append(answer.json())
                else:
                    self.failures.append(f"{answer.status_code} {answer.text}")
