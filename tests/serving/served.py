"""A real server on a loopback port: in a thread of this process, or in a process of its own."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from fastapi import FastAPI

from serving.server import ScorerServer
from serving.server_settings import ServerOptions

ROOT = Path(__file__).parents[2]


@contextlib.contextmanager
def served(app: FastAPI, options: ServerOptions | None = None) -> Iterator[str]:
    """The address of the application."""
    started = threading.Event()
    server = ScorerServer(app, options or ServerOptions(port=0), lambda url: started.set())
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        if not started.wait(30):
            raise RuntimeError("the server did not start within 30 s")
        yield server.url
    finally:
        server.stop()
        thread.join(30)
        if thread.is_alive():
            raise RuntimeError("the server did not stop within 30 s")


@contextlib.contextmanager
def process(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The made-up scorer in a process of its own, and its address."""
    command = [sys.executable, "-m", "tests.scorer.service.serve_fake_scorer", "0", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            url = running.stdout.readline().strip()
            if not url:
                raise RuntimeError(f"the server did not start: {running.communicate()[1]}")
            yield running, url
        finally:
            running.kill()
