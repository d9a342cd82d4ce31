"""A look at a live cluster by its kubeconfig alone has the figures of the separate commands, and leaves nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from testing.local_cluster.running import LocalCluster, Ports

pytestmark = pytest.mark.long

_DAYS = 9


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("cluster"), days=_DAYS, ports=Ports().free()) as running:
        yield running


def typed(line: list[str], folder: Path, settings: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """A command with nothing from outside but a kubeconfig, in a folder of its own."""
    (folder / "settings.yaml").write_text(settings)
    used = {name: value for name, value in os.environ.items() if not name.startswith("FORECAST_SCHEDULER_")}
    used |= {"FORECAST_SCHEDULER_CONFIG": str(folder / "settings.yaml"), **environment}
    command = [sys.executable, "-m", "forecast_scheduler", *line]
    return subprocess.run(command, cwd=folder, env=used, capture_output=True, text=True, check=False)


def test_it_agrees_with_the_commands_that_it_stands_for(cluster: LocalCluster, tmp_path: Path) -> None:
    settings = f"prometheus: {{step: 30m, days: {_DAYS}}}\nrebalance: {{budget: {{most: 7}}}}\n"
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    environment = {"KUBECONFIG": str(cluster.kubeconfig), "TMPDIR": str(temporary)}

    def figures(line: list[str]) -> Mapping[str, Any]:
        done = typed([*line, "--json", "out.json"], tmp_path, settings, **environment)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads((tmp_path / "out.json").read_text())
        return found

    seen = figures(["look"])
    assert list(temporary.iterdir()) == []
    assert not {"models", "history"} & {one.name for one in tmp_path.iterdir()}
    assert seen["not_computed"] == {}
    figures(["train"])  # finds the same store
    recorded = ["--history", "history"]
    assert seen["capacity"] == figures(["capacity", *recorded])
    assert seen["placing"]["rules"]["forecast"] == figures(["replay", *recorded])["rules"]["forecast"]
    assert {one["finding"] for one in seen["doctor"]["findings"]} == {
        one["finding"] for one in figures(["doctor", *recorded])["findings"]
    }
    assert seen["requests"] == figures(["requests"])
    nodes = {one["name"]: one["peak"] for one in figures(["nodes"])["nodes"]}
    hottest = seen["tonight"]["nodes"][0]
    # What is measured now moves expected peaks from minute to minute.
    assert nodes[hottest["name"]]["resource"] == hottest["peak"]["resource"]
    assert nodes[hottest["name"]]["share"] == pytest.approx(hottest["peak"]["share"], rel=0.05)
    moves = figures(["rebalance", "--plan"])
    assert (moves["n_pods"], moves["window"], len(moves["moves"])) == (
        seen["moves"]["n_pods"],
        seen["moves"]["window"],
        len(seen["moves"]["moves"]),
    )
