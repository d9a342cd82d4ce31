"""docs/use/http-api.md says what is so: its examples run, its paths and metrics are those of the service."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

from testing.app_client import AppClient

# The rest is about another process, and its tests' matter: tests/scheduler/service/test_http_api_doc.py
TEXT = (Path(__file__).parents[3] / "docs" / "use" / "http-api.md").read_text()
PAGE = TEXT.partition("\n## The scheduling process\n")[0]


def _commands() -> list[list[str]]:
    blocks = re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL)
    return [shlex.split(command) for block in blocks for command in re.findall(r"curl (?:.|\n)*?(?=\ncurl|\n$)", block)]


def test_every_example_runs(client: AppClient) -> None:
    commands = _commands()
    assert len(commands) == 9
    for _, _, address, *rest in commands:
        path = address.removeprefix("$SCORER")
        answer = client.post(path, content=rest[1].encode()) if rest else client.get(path)
        assert answer.status_code == 200, (path, answer.text)


def test_the_answer_paths_and_statuses_are_those_of_the_page(client: AppClient) -> None:
    shown = re.search(r"```json\n(.*?)```", PAGE, flags=re.DOTALL)
    assert shown
    _, _, _, _, body = _commands()[0]
    assert client.post("/v1/scores", content=body.encode()).json() == json.loads(shown[1])
    document = client.get("/openapi.json").json()
    listed = {path.partition("?")[0] for path in re.findall(r"`(?:GET|POST) (/[^`]*)`", PAGE)}
    assert listed == {*document["paths"], "/"}
    statuses = {s for path in document["paths"].values() for o in path.values() for s in o["responses"]} - {"200"}
    assert statuses | {"405"} == set(re.findall(r"^\| (\d{3}) \|", PAGE, flags=re.MULTILINE))


def test_every_metric_is_in_the_table(client: AppClient) -> None:
    client.get("/v1/self-check")
    exported = set(re.findall(r"^# TYPE (forecast_\w+) ", client.get("/metrics").text, flags=re.MULTILINE))
    listed = set(re.findall(r"^\| `(forecast_\w+)`", PAGE, flags=re.MULTILINE))
    assert listed == {name for name in exported if not name.endswith("_created")}
