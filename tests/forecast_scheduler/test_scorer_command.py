"""`scorer` as a process: it says where it listens, answers, and ends when told to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.forecast_scheduler.recorded_evening import Evening, recorded_evening

COMMAND = Path(sys.executable).with_name("forecast-scheduler")
SECONDS = 60.0


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> Evening:
    return recorded_evening(tmp_path_factory.mktemp("evening"))


@pytest.fixture
def token(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("open-sesame\n")
    return path


@pytest.fixture
def served(evening: Evening, token: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    line = [str(COMMAND), "scorer", *evening.options(), "--port", "0", "--token-file", str(token)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert said.startswith("scorer: http://127.0.0.1:"), said
            yield process, said.removeprefix("scorer: ").strip()
        finally:
            process.kill()


def ask(url: str, token: str | None = "open-sesame", body: dict[str, Any] | None = None) -> Any:
    headers = {"Content-Type": "application/json"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(url, json.dumps(body).encode() if body else None, headers)
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        return json.loads(answer.read())


def test_it_serves_the_recorded_evening_to_those_with_a_token_until_it_is_told_to_end(
    served: tuple[subprocess.Popen[str], str],
) -> None:
    process, url = served
    for _ in range(int(SECONDS / 0.05)):
        status = ask(f"{url}/v1/status")
        if status["ready"] and status["measured_nodes"] == 2:
            break
        time.sleep(0.05)
    assert status["level"] == 0
    assert status["nodes"] == 2
    scored = ask(f"{url}/v1/scores", body={"pod": {"namespace": "shop", "name": "cart-0"}})
    assert set(scored["scores"]) == {"node-0", "node-1"}
    assert ask(f"{url}/v1/self-check")["drift"] == []
    with pytest.raises(urllib.error.HTTPError, match="401"):
        ask(f"{url}/v1/status", token=None)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, err
    assert out.endswith("scorer: ended\n")
    assert "Traceback" not in err
