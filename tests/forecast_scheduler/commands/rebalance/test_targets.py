"""Targets of moves: nodes that the component which places the pod would take, and no others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forecast_scheduler.commands.live_placing import open_placing
from forecast_scheduler.commands.scorer.scorer_setup import Inputs
from forecast_scheduler.settings.document import load_settings
from kube.decoding.decoding import decode_pod
from testing.clusters.own_nodes import our_node, our_pod
from testing.servers.cluster_objects import node, pod


@pytest.mark.parametrize(
    ("scheduler", "targets"), [("forecast-scheduler", {"ours-0", "ours-1"}), ("default-scheduler", {"plain"})]
)
def test_pods_stay_in_the_domain_of_what_places_them(scheduler: str, targets: set[str], tmp_path: Path) -> None:
    """Failed before: a pod of our own loops could go nowhere but to the nodes of kube-scheduler."""
    placed = our_pod("moves") if scheduler == "forecast-scheduler" else pod("moves")
    placed["spec"]["nodeName"] = min(targets)
    placed["metadata"]["uid"] = "uid-moves"
    objects = [our_node("ours-0"), our_node("ours-1"), node("plain"), placed]
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    with open_placing(load_settings(None, {}), Inputs(file, models=str(tmp_path))) as (_, background, placing):
        background.wait_synced(10)
        assert set(placing.may_go(decode_pod(placed))) == targets
