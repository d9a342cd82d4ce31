"""The service as a process: told to end, it drains; work that hangs does not keep it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import httpx
import pytest

from tests.extender.service.questions import nodes_question
from tests.serving.served import ROOT


@pytest.fixture(params=[(), ("hang",)], ids=["", "hanging"])
def running(request: pytest.FixtureRequest) -> Iterator[tuple[subprocess.Popen[str], str, bool]]:
    command = [sys.executable, "-m", "tests.extender.service.serve_simple_extender", *request.param]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip(), bool(request.param)
        finally:
            process.kill()


def test_a_signal_drains_and_ends_with_status_0(running: tuple[subprocess.Popen[str], str, bool]) -> None:
    process, url, hangs = running
    with httpx.Client() as client:
        passed = client.post(f"{url}/filter", json=nodes_question("hot-1")).json()["NodeNames"]
        assert passed == (["hot-1"] if hangs else [])
        assert client.get(f"{url}/readyz").status_code == (503 if hangs else 200)
        process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + 20
        while "shutting down" not in client.get(f"{url}/readyz").text:
            assert time.monotonic() < deadline
        assert client.post(f"{url}/filter", json=nodes_question("a")).json()["NodeNames"] == ["a"]  # still served
    assert process.wait(20) == 0
