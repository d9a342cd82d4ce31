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
from contextlib import contextmanager
from dataclasses import replace
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


Served = tuple[subprocess.Popen[str], str]


@pytest.fixture
def served(evening: Evening, token: Path) -> Iterator[Served]:
    with serving(evening, token) as found:
        yield found


@contextmanager
def serving(evening: Evening, token: Path, *arguments: str) -> Iterator[Served]:
    line = [str(COMMAND), "scorer", *evening.options(), "--port", "0", "--token-file", str(token), *arguments]
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


def measured(url: str) -> Any:
    """The status once both nodes are."""
    for _ in range(int(SECONDS / 0.05)):
        status = ask(f"{url}/v1/status")
        if status["ready"] and status["measured_nodes"] == 2:
            break
        time.sleep(0.05)
    return status


def test_it_serves_the_recorded_evening_to_those_with_a_token_until_it_is_told_to_end(
    served: Served,
) -> None:
    process, url = served
    status = measured(url)
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


POLICIES = """
policies: {packed: {scores: {weights: {most_allocated: 1}}}}
rules: [{policy: packed, description: web, namespace_selector: {matchLabels: {team: web}}}]
"""


def test_policies_choose_by_the_labels_of_namespaces(evening: Evening, token: Path, tmp_path: Path) -> None:
    document = json.loads(evening.cluster.read_text())
    document["items"].append(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"team": "web"}}}
    )
    (tmp_path / "cluster.json").write_text(json.dumps(document))
    policies = tmp_path / "policies.yaml"
    policies.write_text(POLICIES)
    labelled = replace(evening, cluster=tmp_path / "cluster.json")
    with serving(labelled, token, "--policies", str(policies)) as (process, url):
        measured(url)
        scored = ask(f"{url}/v1/scores", body={"pod": {"namespace": "shop", "name": "cart-0"}})
        assert (scored["policy"], scored["weights"]) == ("packed", {"most_allocated": 1.0})
        forecast = ask(f"{url}/v1/services/shop/Deployment/cart/forecast")
        assert "policy packed (rule 1: web)" in forecast["notes"]
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 0 and "Traceback" not in err
