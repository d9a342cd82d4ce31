"""`explain` on a real API server, its export by kubectl, and the scheduler that then runs name the same nodes."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from forecast_scheduler.cli import run
from testing.clusters.own_nodes import LONG, group, groups, member, nodes_of, our_node, our_pod
from testing.servers.cluster_objects import ClusterWriter, node, pod, running
from testing.servers.control_plane.control_plane import ControlPlane
from testing.waiting import eventually
from tests.schedule.conftest import Started

_DOCS = Path(__file__).parents[2] / "docs" / "use" / "scheduling.md"


def told(capfd: pytest.CaptureFixture[str], *command: str) -> dict[str, Any]:
    capfd.readouterr()
    assert run([*command, "--json", "-"]) == 0
    found: dict[str, Any] = json.loads(capfd.readouterr().out)
    return found


def exported(plane: ControlPlane, folder: Path) -> Path:
    """By the documented commands, word for word."""
    block = re.search(r"```console\n(\$ kinds=.*?)```", _DOCS.read_text(), re.S)
    assert block is not None
    script = "\n".join(line.removeprefix("$ ") for line in block[1].splitlines())
    environment = os.environ | {"KUBECONFIG": str(plane.kubeconfig), "HOME": str(folder)}
    subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=folder, env=environment, check=True, timeout=LONG)
    return folder / "cluster.json"


def test_explain_the_export_and_the_running_loop_agree(
    plane: ControlPlane,
    writer: ClusterWriter,
    start: Started,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    for number, cpu in enumerate((4, 8, 2)):
        writer.create(our_node(f"ours-{number}", cpu=cpu))
    writer.create(node("theirs", cpu="32"))
    writer.create(our_pod("cheap", cpu="6", node="ours-1", status=running()))
    writer.create(our_pod("single", cpu="1500m"))
    writer.create(pod("other", cpu="1"))
    with groups(plane) as podgroups:
        podgroups.create(group("whole", members=3))
        for number in range(3):
            writer.create(member("whole", number, cpu="3"))
        live = ["--kubeconfig", str(plane.kubeconfig), "--models", str(tmp_path / "none")]
        single = told(capfd, "explain", "default/single", *live)
        assert single["judgement"]["component"].startswith("profile online of `schedule`")
        assert single["not_covered"] == []
        assert single["state"]["name"] == "queued"
        assert any("no `schedule` runs here: there is no Lease" in why for why in single["state"]["because"])
        assert {one["filter"]: one["nodes"] for one in single["judgement"]["rejections"]}["Domain"] == 1
        other = told(capfd, "explain", "default/other", *live)
        assert other["judgement"]["node"] == "theirs"
        held = told(capfd, "explain", "default/whole-member-0", *live)
        assert "placed as a whole or not at all" in held["judgement"]["held"]

        file = ["--cluster", str(exported(plane, tmp_path)), "--models", str(tmp_path / "none")]
        plan = {one["name"]: one["node"] for one in told(capfd, "schedule", "--dry-run", *file)["pods"]}
        assert plan == {"single": single["judgement"]["node"]} | {f"whole-member-{i}": None for i in range(3)}
        assert told(capfd, "explain", "default/single", *file)["judgement"]["node"] == single["judgement"]["node"]

        scheduler = start()
        assert eventually(lambda: bool(nodes_of(writer).get("single")))
        assert nodes_of(writer)["single"] == single["judgement"]["node"]
        assert told(capfd, "explain", "default/single", *live)["state"]["name"] == "placed"
        state = told(capfd, "explain", "default/whole-member-0", *live, "--server", scheduler.url)["state"]
        assert state["name"] == "waiting for its gang", state
        assert any("of the queue, after" in why for why in state["because"]), state

        # The running scheduler answers by its own profiles, and says what it leaves out of others' pods.
        asked = scheduler.post("/v1/explain", {"pod": {"namespace": "default", "name": "whole-member-0"}})
        assert asked["judgement"]["component"] == held["judgement"]["component"]
        assert any("PodGroup default/whole" in what for what in asked["not_applied"])
        asked = scheduler.post("/v1/explain", {"pod": {"namespace": "default", "name": "other"}})
        assert asked["judgement"] is None and "schedulerName default-scheduler" in asked["not_applied"][0]
