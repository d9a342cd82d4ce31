"""Policies in a ConfigMap: checked against what is in place, and followed by a running extender."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from testing.processes.command import command
from testing.processes.scenery import Scenery
from testing.servers.cluster_objects import ClusterWriter, Manifest, node, pod
from testing.servers.control_plane.control_plane import ControlPlane
from testing.waiting import eventually
from tests.processes.conftest import Started
from tests.processes.placing import Placing, counter, events

OURS = "forecast-scheduler.io/"


def _config_map(name: str, document: Mapping[str, Any]) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"policies.yaml": yaml.safe_dump(dict(document))},
    }


def test_a_check_compares_with_the_config_map_in_place_and_changes_nothing(
    plane: ControlPlane, cluster: Scenery, writer: ClusterWriter, models: Path, tmp_path: Path
) -> None:
    namespaces = sorted({service.namespace for service in cluster.truth.model.services})
    piled = {"filters": [], "scores": {"weights": {"most_allocated": 1}}}
    rule = {"policy": "piled", "namespace_selector": {"matchLabels": {"kubernetes.io/metadata.name": namespaces[0]}}}
    with Placing(writer) as placing:
        placing.make(_config_map("in-place", {"policies": {"piled": piled}}), pod("elsewhere", node=cluster.nodes[0]))
        file = tmp_path / "policies.yaml"
        file.write_text(yaml.safe_dump({"policies": {"piled": piled}, "rules": [rule]}))
        before = {one["metadata"]["uid"]: one["metadata"]["resourceVersion"] for one in writer.list_all("pods")}
        options = ["--models", models, "--against", "configmap:default/in-place", "--json", "-"]

        ended = command("policy", "check", file, "--kubeconfig", plane.kubeconfig, *options)
        assert ended.returncode == 0, ended.stderr
        found = json.loads(ended.stdout)["cluster"]
        in_namespace = sum(one.namespace == namespaces[0] for one in cluster.truth.pods)
        assert {one["because"]: one["pods"] for one in found["choices"]} == {
            "rule 1": in_namespace,
            "no rule holds": len(before) - in_namespace,  # elsewhere
        }
        assert found["touched_pods"] == sum(one["pods"] for one in found["touched"]) == in_namespace > 0
        assert all(one["after"]["peak_share"] > 0 and one["after"]["feasible_nodes"] > 1 for one in found["touched"])
        assert any(one["moves"] for one in found["touched"])
        assert {one["metadata"]["uid"]: one["metadata"]["resourceVersion"] for one in writer.list_all("pods")} == before

        for kubeconfig, where, message in (
            (plane.kubeconfig, "configmap:default/nowhere", "there is no ConfigMap default/nowhere"),
            (plane.write_kubeconfig("nobody", plane.powerless_token), "configmap:default/in-place", "403"),
        ):
            ended = command("policy", "check", file, "--kubeconfig", kubeconfig, "--against", where)
            assert (ended.returncode, ended.stderr.count("\n")) == (2, 1), ended.stderr
            assert message in ended.stderr


def test_a_running_extender_follows_a_policy_that_is_changed(
    start: Started, plane: ControlPlane, cluster: Scenery, writer: ClusterWriter
) -> None:
    by_group = {"default": "by-group", "policies": {"by-group": {"filters": ["MachineGroup"]}}}
    by_card = {"default": "by-card", "policies": {"by-card": {"filters": ["CardTypes"]}}}
    wanted = cluster.pod("asks", annotations={OURS + "machine-group": "x", OURS + "gpu-type": "H100"})
    question = {"Pod": wanted, "NodeNames": ["in-group", "with-card"]}
    with Placing(writer) as placing:
        placing.make(
            node("in-group", labels={OURS + "machine-group": "x"}),
            node("with-card", labels={"nvidia.com/gpu.product": "H100"}),
            _config_map("followed", by_group),
        )
        live = start("--policies", "configmap:default/followed", settings={}, command="extender")

        def passes(name: str) -> bool:
            return bool(live.post("/filter", question)["NodeNames"] == [name])

        for policy, document, node_of in (("by-group", by_group, "in-group"), ("by-card", by_card, "with-card")):
            writer.patch(_config_map("followed", {}), {"data": {"policies.yaml": yaml.safe_dump(document)}})
            passing = partial(passes, node_of)
            assert eventually(passing), policy
        assert eventually(lambda: counter(live, "forecast_policy_reloads_total", outcome="accepted") >= 1)
        assert live.metric("forecast_policy_document_valid") == 1

        # A broken document, and then none at all: the last good one stays.
        broken = {"policies": {"batch": {"scores": {"weights": {"predicted_peek": 1}}}}}
        writer.patch(_config_map("followed", {}), {"data": {"policies.yaml": yaml.safe_dump(broken)}})
        assert eventually(lambda: "followed" in events(plane, "PolicyRefused"))
        told = events(plane, "PolicyRefused")["followed"]
        assert (told["regarding"]["kind"], told["type"]) == ("ConfigMap", "Warning")
        assert "did you mean predicted_peak?" in told["note"]
        assert live.metric("forecast_policy_document_valid") == 0 and passing()
        writer.delete(_config_map("followed", {}))
        assert eventually(lambda: "followed" in events(plane, "PolicyGone")) and passing()
    assert "Traceback" not in live.log
