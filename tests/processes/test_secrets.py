"""Our commands with secrets in every place that takes one, and everything going wrong: none of them is repeated."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
import yaml

from forecast_scheduler.cli import run
from testing.processes.scorer_process import settings_of
from testing.servers.control_plane.control_plane import ControlPlane
from testing.waiting import eventually
from tests.processes.conftest import Started

SECRETS = {
    "password": "hunter2-of-prometheus",
    "token": "swordfish-of-prometheus",
    "ours": "our-own-bearer-token",
    "asker": "somebody-elses-token",
    "url": "letmein-in-a-url",
    "s3": "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY",
}
USER_AND_PASSWORD = base64.b64encode(f"alice:{SECRETS['password']}".encode()).decode()


class Indiscreet(BaseHTTPRequestHandler):
    """Refuses everybody, and tells them what they had sent."""

    def do_GET(self) -> None:
        body = json.dumps({"error": f"not good enough: Authorization: {self.headers['Authorization']}"}).encode()
        self.send_response(401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:
        """Not to stderr."""


@dataclass
class Written:
    """Everything that came out, by where."""

    texts: dict[str, str] = field(default_factory=dict)

    def leaks(self, *more: str) -> list[tuple[str, str]]:
        """(place, secret) of each that was found."""
        secrets = [*SECRETS.values(), USER_AND_PASSWORD, *more]
        return [(place, secret) for place, text in self.texts.items() for secret in secrets if secret in text]


@contextmanager
def indiscreet() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Indiscreet)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join(20)
        server.server_close()


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Secrets in files, by name."""
    places = {name: tmp_path / f"{name}.secret" for name in ("password", "token", "ours", "asker")}
    for name, place in places.items():
        place.write_text(SECRETS[name] + "\n")
    return places


def _prometheus(url: str, files: dict[str, Path], *, basic: bool) -> dict[str, object]:
    how = {"username": "alice", "password_file": files["password"]} if basic else {"bearer_token_file": files["token"]}
    return {"url": url, "patience": "1s", **{name: str(value) for name, value in how.items()}}


def test_a_scorer_whose_sources_all_fail_says_so_without_their_secrets(
    start: Started, plane: ControlPlane, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRETS["s3"])
    with indiscreet() as url:
        models = f"http://bob:{SECRETS['url']}@{url.removeprefix('http://')}/models"
        serving = {"token_files": [str(files["ours"])]}
        settings = settings_of(serving=serving) | {"prometheus": _prometheus(url, files, basic=True)}
        scorer = start("--models", models, "--verbose", settings=settings)
        written, ours = Written(), {"Authorization": f"Bearer {SECRETS['ours']}"}
        status = partial(scorer.http.get, "/v1/status", headers=ours)

        def refused() -> bool:
            return bool(status().json()["refused_model"]) and "refuses the credentials" in scorer.log

        assert eventually(refused), scorer.log
        theirs = {"Authorization": f"Bearer {SECRETS['asker']}"}
        for headers in (ours, theirs, {}):
            for path in (
                "/v1/status",
                "/metrics",
                "/v1/nodes",
                "/openapi.json",
                f"/gone?token={SECRETS['asker']}",
                "/",
            ):
                answer = scorer.http.get(path, headers=headers)
                written.texts[f"{path} {answer.status_code}"] = f"{answer.headers} {answer.text}"
        scorer.http.post("/v1/scores", json={"pod": {"metadata": SECRETS["url"]}}, headers=ours)
        assert scorer.terminate() == 0
        written.texts |= {"log": scorer.log, "stdout": scorer._out.read_text()}
    assert "***@127.0.0.1" in written.texts["/v1/status 200"]
    assert written.leaks(plane.token) == []


@pytest.mark.parametrize("basic", [True, False], ids=["password", "token"])
def test_a_training_that_is_refused_says_so_without_its_secrets(
    tmp_path: Path, files: dict[str, Path], capfd: pytest.CaptureFixture[str], basic: bool
) -> None:
    with indiscreet() as url:
        config = tmp_path / "config.yaml"
        config.write_text(yaml.safe_dump({"prometheus": _prometheus(url, files, basic=basic)}))
        models = str(tmp_path / "models")
        assert run(["train", "--config", str(config), "--models", models, "--json", "-", "--verbose"]) == 2
    said = capfd.readouterr()
    assert "refuses the credentials" in said.err
    assert Written({"stdout": said.out, "stderr": said.err}).leaks() == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["jobs", "--server", "http://alice:{url}@127.0.0.1:9"], "holds a user name or password"),
        (["jobs", "--server", "{indiscreet}", "--token-file", "{asker}"], "answered 401"),
        (["train", "--prometheus", "http://alice:{url}@127.0.0.1:9"], "holds a user name or password"),
        (["models", "list", "--models", "http://alice:{url}@127.0.0.1:9/m"], "***@127.0.0.1:9"),
        (["scorer", "--kubeconfig", "{kubeconfig}"], "kubeconfig"),
        (["train", "--config", "{wrong}"], "unknown key 'prometheus.password'"),
    ],
    ids=["jobs url", "jobs token", "prometheus url", "models url", "broken kubeconfig", "wrong name"],
)
def test_a_command_that_fails_says_why_without_secrets(
    tmp_path: Path, files: dict[str, Path], capfd: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    kubeconfig, wrong = tmp_path / "kubeconfig", tmp_path / "wrong.yaml"
    kubeconfig.write_text(f"users:\n- user: {{token: {SECRETS['token']}\n  name: [{SECRETS['token']}\n")
    wrong.write_text(yaml.safe_dump({"prometheus": {"password": SECRETS["password"]}}))
    with indiscreet() as url:
        places = {"url": SECRETS["url"], "indiscreet": url, "asker": str(files["asker"])}
        places |= {"kubeconfig": str(kubeconfig), "wrong": str(wrong)}
        assert run([*(argument.format(**places) for argument in arguments), "--verbose"]) == 2
    said = capfd.readouterr()
    assert says in said.err
    assert Written({"stdout": said.out, "stderr": said.err}).leaks() == []
