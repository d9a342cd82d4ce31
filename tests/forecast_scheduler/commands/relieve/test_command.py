"""`relieve` on a recorded evening: what it prints, what it writes, and what it refuses."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from forecast_scheduler.cli import run
from forecast_scheduler.commands.relieve.relief_tables import eviction_command
from tests.forecast_scheduler.recorded_evening import Evening, recorded_evening
from tests.scorer.live_cluster import pod_of


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> Evening:
    return recorded_evening(tmp_path_factory.mktemp("evening"))


def test_a_node_over_the_hot_share_has_moves_with_their_commands(
    evening: Evening, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    config, written = tmp_path / "settings.yaml", tmp_path / "relief.json"
    asked = ["relieve", "node-0", *evening.options(), "--config", str(config), "--json", str(written)]
    config.write_text("hot_share: 0.999\n")
    assert run(asked) == 0
    assert "it is not hot (over 100 %): nothing has to move" in capfd.readouterr().out
    config.write_text("hot_share: 0.05\n")
    assert run(asked) == 0
    text, found = capfd.readouterr().out, json.loads(written.read_text())
    assert found["is_hot"] and f"{found['node']} uses " in text and "expected peak" in text
    assert found["peak"]["share"] > 0.05 and found["measured"] > 0.05
    for move in found["moves"]:
        assert move["target"] == "node-1" and move["commands"][0] in text
    assert set(found["stays"]).isdisjoint(f"{one['namespace']}/{one['pod']}" for one in found["moves"])
    assert len(found["stays"]) + len(found["moves"]) > 0
    shown = "Type, and wait before each next pod" in text
    assert shown == bool(found["moves"]) == bool(found["commands"])


def test_an_eviction_is_typed_as_the_api_server_takes_it() -> None:
    echo, create = eviction_command(pod_of(1, "o'clock", "node-0")).split(" | ")
    said = subprocess.run(["sh", "-c", echo], capture_output=True, text=True, check=True).stdout
    assert json.loads(said) == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "o'clock", "namespace": "shop"},
        "deleteOptions": {"preconditions": {"uid": pod_of(1, "o'clock", "node-0").uid}},
    }
    assert create.startswith("kubectl create --raw ") and create.endswith("/eviction -f -")


@pytest.mark.parametrize(
    ("node", "options", "words"),
    [
        ("node-7", (), "node 'node-7' is not known"),
        ("node-0", ("--apply",), "--cluster is a cluster from a file, whose pods cannot be moved"),
        ("node-0", ("no models",), "there is no forecast: run `forecast-scheduler train`"),
    ],
)
def test_what_cannot_be_answered_is_one_sentence(
    node: str, options: tuple[str, ...], words: str, evening: Evening, capfd: pytest.CaptureFixture[str]
) -> None:
    without = options == ("no models",)
    assert run(["relieve", node, *evening.options(models=not without), *(() if without else options)]) == 2
    assert words in " ".join(capfd.readouterr().err.split())
