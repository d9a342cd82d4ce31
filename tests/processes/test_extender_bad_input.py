"""What the command `extender` cannot work with: one line, status 2, and nothing was served."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
import yaml

from forecast_scheduler.cli import run
from testing.servers.cluster_objects import node, pod


@pytest.mark.parametrize(
    ("settings", "arguments", "says"),
    [
        ({"extender": {"standard_filters": ["NodeAfinity"]}}, [], "NodeAfinity"),
        ({"node_rules": {"highest_peaks": {"cpus": 0.9}}}, [], "cpus"),
        ({"node_rules": {"highest_peaks": {"cpu": 0}}}, [], "highest_peaks"),
        (
            {"node_rules": {"highest_peaks": {"cpu": 0.9}}},
            ["--scorer", "http://scorer:8080"],
            "leave one of them out",
        ),
        ({}, ["--bind"], "--bind needs an API server"),
        ({}, ["--scorer", "scorer:8080"], "is not a URL"),
        ({"extender": {"scorer": {"ca": "/etc/ca.pem"}}}, ["--scorer", "http://scorer:8080"], "write https://"),
        (
            {"extender": {"scorer": {"token_file": "/nowhere/token"}}},
            ["--scorer", "http://scorer:8080"],
            "/nowhere/token",
        ),
        ({}, ["--decisions", "/nowhere/decisions.jsonl"], "/nowhere/decisions.jsonl cannot be written"),
        ({}, ["--tls-key", "/nowhere/key.pem"], "tls_cert"),
        ({}, ["--port", "TAKEN"], "choose another port"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_cannot_work_is_refused_in_one_line(
    settings: dict[str, Any],
    arguments: list[str],
    says: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    config, objects = tmp_path / "settings.yaml", tmp_path / "cluster.json"
    config.write_text(yaml.safe_dump(settings))
    objects.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "List",
                "items": [node("n1"), pod("p1", namespace="shop", node="n1")],
            }
        )
    )
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        usual = ["--config", config, "--cluster", objects, "--models", tmp_path / "models", "--port", "0"]
        asked = [str(one) for one in usual] + [argument.replace("TAKEN", port) for argument in arguments]
        status = run(["extender", *asked])
    said = capfd.readouterr()
    assert status == 2, said.err
    complaint = said.err.splitlines()[-1]
    assert says in complaint
    assert [line for line in said.err.splitlines() if " INFO " not in line] == [complaint]
    assert said.out == ""
