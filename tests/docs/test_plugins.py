"""docs/extend/plugins.md: the package of the page is built, installed, and places pods in every way we place them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from testing.clusters.own_nodes import nodes_of, our_node, our_pod
from testing.processes.scorer_process import ScorerProcess
from testing.servers.cluster_objects import ClusterWriter
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.pool import control_plane
from testing.waiting import eventually
from tests.docs.pages import ROOT, blocks, text_of
from tests.forecast_scheduler.made_cluster import cluster_file, made_node, made_pod

PAGE = ROOT / "docs" / "extend" / "plugins.md"
WATTS = "example.com/watts"
WHY = "node(s) had too little power left"

LICENCES = """
from pathlib import Path

from placement.node_plugin import NodePlugin


class Licences(NodePlugin):
    name, on_error = "Licences", "fail"

    def pre_bind(self, pod, node):
        return "no licence is left" if pod.labels.get("licence") == "none" else ""

    def post_bind(self, pod, node):
        with Path(__file__).with_name("bound").open("a") as file:
            file.write(f"{pod.name} {node}\\n")
"""


def files() -> dict[str, str]:
    """Text by name, of the files that the page shows."""
    named = ((re.search(r"`([\w./-]+)`:$", block.before), block) for block in blocks(text_of(PAGE)))
    return {found[1]: block.text for found, block in named if found is not None}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where both packages are installed as pip does it, beside no other."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    shown = files()
    project = shown["rack-power/pyproject.toml"]
    other = project.replace("rack-power", "licences").replace("rack_power", "licences").replace("RackPower", "Licences")
    packages = {
        "rack-power": {"rack_power.py": shown["rack-power/rack_power.py"], "pyproject.toml": project},
        "licences": {"licences.py": LICENCES, "pyproject.toml": other},
    }
    for package, of_package in packages.items():
        for name, text in of_package.items():
            (source / package).mkdir(exist_ok=True)
            (source / package / name).write_text(text)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-build-isolation", "--no-deps"]
    subprocess.run([*pip, "--target", target, *(source / package for package in packages)], check=True)
    return target


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "settings.yaml"
    path.write_text(files()["settings.yaml"])
    return path


Ours = Callable[..., str]


@pytest.fixture
def ours(site: Path, config: Path, tmp_path: Path) -> Ours:
    """A command of ours in a process that finds the packages, with the settings of the page."""

    def ran(*arguments: str | Path) -> str:
        command = [sys.executable, "-m", "forecast_scheduler", *arguments, "--config", config]
        environment = os.environ | {"PYTHONPATH": f"{site}:{ROOT}"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return ran


def powered(name: str, watts: int | None, *, domain: str | None = "forecast-scheduler") -> dict[str, Any]:
    made = made_node(name, cpu="64", domain=domain)
    made["metadata"]["labels"] |= {} if watts is None else {WATTS: str(watts)}
    return made


def test_the_class_of_the_page_has_25_lines() -> None:
    assert len(files()["rack-power/rack_power.py"].splitlines()) <= 25


def test_the_command_of_the_page_prints_what_it_shows(ours: Ours) -> None:
    (console,) = [one for one in blocks(text_of(PAGE)) if "forecast-scheduler plugins --config" in one.text]
    shown = [line for line in console.text.splitlines() if not line.startswith("$ ")]
    assert ours("plugins").splitlines() == [*shown, "licences (licences 0.1): not loaded, the settings do not name it"]


def test_a_dry_run_places_pods_by_it(ours: Ours, tmp_path: Path) -> None:
    nodes = [powered("weak", 30), powered("strong", 900), powered("medium", 400)]
    cluster = cluster_file(tmp_path, *nodes, made_pod("cart", cpu="2"), made_pod("huge", cpu="60"))
    usual = ("--cluster", cluster, "--models", tmp_path / "none", "--json", "-")
    planned = {one["name"]: one for one in json.loads(ours("schedule", "--dry-run", *usual))["pods"]}
    assert planned["cart"]["node"] == "strong"
    assert planned["huge"]["node"] is None and f"3 {WHY}" in planned["huge"]["message"]


@pytest.mark.parametrize("scheduler", ["forecast-scheduler", "default-scheduler"])
def test_an_explanation_names_it_whatever_places_the_pod(ours: Ours, scheduler: str, tmp_path: Path) -> None:
    domain = "forecast-scheduler" if scheduler == "forecast-scheduler" else None
    nodes = [powered(name, watts, domain=domain) for name, watts in (("weak", 30), ("strong", 900), ("medium", 400))]
    cluster = cluster_file(tmp_path, *nodes, made_pod("cart", cpu="2", scheduler=scheduler))
    usual = ("--cluster", cluster, "--models", tmp_path / "none", "--json", "-")
    judgement = json.loads(ours("explain", "shop/cart", *usual))["judgement"]
    assert judgement["node"] == "strong"
    rejected = [(one["filter"], one["reason"], one["nodes"]) for one in judgement["rejections"]]
    assert rejected == [("RackPower", WHY, 1)]
    (part,) = [one for one in judgement["parts"] if one["name"] == "RackPower"]
    assert (part["weight"], part["points"]) == (3, {"strong": 270, "medium": 120})


def test_the_extender_filters_and_scores_by_it(site: Path, config: Path, tmp_path: Path) -> None:
    nodes = [powered("weak", 30, domain=None), powered("strong", 900, domain=None), powered("medium", 400, domain=None)]
    cluster = cluster_file(tmp_path, *nodes)
    settings = yaml.safe_load(config.read_text())
    with ScorerProcess(
        tmp_path / "extender",
        "--cluster",
        cluster,
        "--models",
        tmp_path / "none",
        settings=settings,
        command="extender",
        environment={"PYTHONPATH": f"{site}:{ROOT}"},
    ) as process:
        asked = {
            "Pod": made_pod("cart", cpu="2", scheduler="default-scheduler"),
            "NodeNames": ["weak", "strong", "medium"],
        }
        passed = process.http.post("/filter", json=asked).raise_for_status().json()
        assert passed["NodeNames"] == ["strong", "medium"]
        assert {**(passed["FailedNodes"] or {}), **(passed["FailedAndUnresolvableNodes"] or {})} == {"weak": WHY}
        asked["NodeNames"] = ["strong", "medium"]
        points = {one["Host"]: one["Score"] for one in process.http.post("/prioritize", json=asked).json()}
        # 3 x 90 and 3 x 40 of kube-scheduler's sum, of which a point is 10
        assert points["strong"] - points["medium"] == 15
        assert "forecast_plugin_failures" in process.http.get("/metrics").text


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with control_plane() as running:
        yield running


def test_a_live_loop_places_and_binds_pods_by_it(site: Path, config: Path, plane: ControlPlane, tmp_path: Path) -> None:
    settings, bound = yaml.safe_load(config.read_text()), site / "bound"
    settings["plugins"]["licences"] = {"profiles": ["online"]}
    settings |= {"scorer": {"usage_every": "1s", "model_every": "1s"}, "leader_election": {"enabled": False}}
    with ClusterWriter(plane) as writer:
        for name, watts in (("weak", 30), ("strong", 900), ("medium", 400)):
            writer.create(our_node(name, cpu=8, labels={WATTS: str(watts)}))
        with ScorerProcess(
            tmp_path / "schedule",
            "--kubeconfig",
            plane.write_kubeconfig("admin", plane.token),
            "--models",
            tmp_path / "none",
            settings=settings,
            command="schedule",
            environment={"PYTHONPATH": f"{site}:{ROOT}"},
        ) as process:
            unlicensed = our_pod("unlicensed")
            unlicensed["metadata"]["labels"] = {"licence": "none"}
            writer.create_many([our_pod("cart", cpu="2"), unlicensed])
            assert eventually(lambda: nodes_of(writer, "cart") == {"cart": "strong"}), process.log[-3000:]
            assert eventually(lambda: bound.exists() and "cart strong" in bound.read_text())
            assert eventually(lambda: "plugin Licences: no licence is left" in json.dumps(writer.list_all("pods")))
            assert nodes_of(writer, "unlicensed") == {"unlicensed": ""}
