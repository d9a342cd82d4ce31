"""CONTRIBUTING.md, "A profile": one file and one line are a profile."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from forecast_scheduler.cli import run
from scheduler.profiles.registry import PROFILES
from tests.forecast_scheduler.made_cluster import cluster_file, made_node, made_pod, seated

PAGE = (Path(__file__).parents[3] / "CONTRIBUTING.md").read_text()


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The profile of the page, registered by the line of the page."""
    [code] = re.findall(r"^   ```python\n(.*?)^   ```$", PAGE, re.MULTILINE | re.DOTALL)
    module: dict[str, Any] = {}
    exec(re.sub(r"^   ", "", code, flags=re.MULTILINE), module)
    assert '`"builds": builds.build`' in PAGE
    monkeypatch.setattr("scheduler.profiles.registry.PROFILES", {**PROFILES, "builds": module["build"]})


def planned(cluster: Path, capfd: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capfd.readouterr()
    models = str(cluster.with_name("no-models"))
    assert run(["schedule", "--dry-run", "--cluster", str(cluster), "--models", models, "--json", "-", *arguments]) == 0
    return {pod["name"]: pod for pod in json.loads(capfd.readouterr().out)["pods"]}


@pytest.mark.usefixtures("builds")
def test_its_filter_and_score_choose_the_node(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pool = [made_node(f"builds-{i}", cpu="64") for i in range(2)]
    for node in pool:
        node["metadata"]["labels"]["pool"] = "builds"
    sitting = [seated(made_pod(f"sits-{i}", cpu="100m"), "builds-0") for i in range(5)]
    waits = made_pod("build", cpu="1", scheduler="builds-scheduler")
    cluster = cluster_file(tmp_path, *pool, made_node("other", cpu="64"), *sitting, waits)
    assert planned(cluster, capfd, "--profile", "builds")["build"]["node"] == "builds-1"
    without = cluster_file(tmp_path, made_node("other", cpu="64"), waits)
    assert (
        "node(s) were not in the pool of builds"
        in planned(without, capfd, "--profile", "online,builds")["build"]["message"]
    )


def test_a_profile_that_is_not_registered_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    cluster = cluster_file(tmp_path, made_node("a"))
    assert run(["schedule", "--dry-run", "--cluster", str(cluster), "--profile", "builds"]) == 2
    assert "there is no profile 'builds': there is online, gpu, job" in capfd.readouterr().err
