"""`relieve` on a real control plane: its commands typed with kubectl, and the same done by --apply."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from forecast_scheduler.cli import run
from testing.rebalancing.live_two_peaks import LiveTwoPeaks, by_extender
from testing.rebalancing.two_peaks import TwoPeaks
from testing.servers.control_plane.pool import control_plane
from testing.servers.kubectl.binary import kubectl
from testing.waiting import eventually

pytestmark = pytest.mark.long  # training, and a control plane of its own

HOT = "node-0"


def test_a_hot_node_is_relieved_by_kubectl_and_by_the_command(
    world: TwoPeaks, models: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with control_plane() as plane, LiveTwoPeaks(plane, world) as live, by_extender(live, tmp_path, models):
        options = ["relieve", HOT, "--kubeconfig", str(plane.kubeconfig), "--models", str(models)]

        def looked() -> dict[str, Any]:
            capfd.readouterr()
            assert run([*options, "--json", "-"]) == 0
            found: dict[str, Any] = json.loads(capfd.readouterr().out)
            return found

        def unschedulable() -> bool:
            return bool(live.api.request("GET", f"/api/v1/nodes/{HOT}")["spec"].get("unschedulable"))

        # Dry: nothing moves, and the plan is enough.
        dry = looked()
        assert dry["is_hot"] and dry["is_enough"] and len(dry["moves"]) >= 2 and dry["measured"] is None
        assert not live.kubelets.gone and not unschedulable()

        # The first pod by the commands of the answer, in a shell that has kubectl.
        cordon, evict, *_, uncordon = dry["commands"]
        environment = {
            **os.environ,
            "PATH": f"{kubectl().parent}:{os.environ['PATH']}",
            "KUBECONFIG": str(plane.kubeconfig),
        }

        def typed(command: str) -> None:
            done = subprocess.run(["sh", "-c", command], env=environment, capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done.stderr

        typed(cordon)
        assert unschedulable()
        typed(evict)
        assert eventually(live.is_settled)
        typed(uncordon)
        first = dry["moves"][0]
        assert {one["metadata"]["name"] for one in live.kubelets.gone.values()} == {first["pod"]}
        assert not unschedulable()

        # The others by the command itself.
        left = looked()
        assert len(left["moves"]) < len(dry["moves"]) + 1
        capfd.readouterr()
        assert run([*options, "--apply"]) == 0
        said = " ".join(capfd.readouterr().out.split())
        gone = {one["metadata"]["name"] for one in live.kubelets.gone.values()} - {first["pod"]}
        assert gone and gone <= {one["pod"] for one in left["moves"]}
        assert f"cordoned {HOT}" in said and f"uncordoned {HOT}" in said and "as expected" in said, said
        assert live.is_settled() and not unschedulable() and live.violations() == {}
        assert not looked()["is_hot"]
