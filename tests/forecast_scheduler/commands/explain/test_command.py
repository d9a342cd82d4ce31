"""`explain` from beginning to end on a recorded evening."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from forecast.published_models import Registry
from forecast_scheduler.cli import run
from tests.forecast_scheduler.recorded_evening import Evening, recorded_evening

MANIFEST = """
apiVersion: v1
kind: Pod
metadata: {name: "new[red]", namespace: shop}
spec:
  containers:
    - {name: main, resources: {requests: {cpu: 500m, memory: 1Gi}}}
"""


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> Evening:
    return recorded_evening(tmp_path_factory.mktemp("evening"))


def explained(capfd: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capfd.readouterr()
    assert run(["explain", *arguments, "--json", "-"]) == 0
    found: dict[str, Any] = json.loads(capfd.readouterr().out)
    return found


def test_a_pod_of_the_cluster_is_explained_the_same_in_json_and_for_some_nodes(
    evening: Evening, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    capfd.readouterr()
    monkeypatch.setenv("COLUMNS", "250")
    assert run(["explain", "shop/cart-0", *evening.options()]) == 0
    text = capfd.readouterr().out
    assert "shop/cart-0 (shop/Deployment/cart) on 2 nodes, best first" in text
    for part in ("node-0", "node-1", "runs here now", "runner-up: node-", "measured", "cores"):
        assert part in text
    version = Registry(str(evening.models)).latest()
    assert f"model {version}" in text
    assert "degradation level 0 (fresh)" in text
    both = explained(capfd, "shop/cart-0", *evening.options())
    assert [node["node"] for node in both["nodes"]] in (["node-0", "node-1"], ["node-1", "node-0"])
    assert both["nodes"][0]["score"] >= both["nodes"][1]["score"] > 0
    one = explained(capfd, "shop/cart-0", *evening.options(), "--node", "node-1")
    assert [node["node"] for node in one["nodes"]] == ["node-1"]
    first = explained(capfd, "shop/cart-0", *evening.options(), "--top", "1")
    assert [node["node"] for node in first["nodes"]] == [both["nodes"][0]["node"]]


def test_without_measurements_and_without_a_model_it_says_so(
    evening: Evening, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()
    assert run(["explain", "shop/cart-0", *evening.options(history=False)]) == 0
    text = capfd.readouterr().out
    assert "degradation level 1 (no_live_correction)" in text
    assert "usage is measured on 0 of 2 nodes" in text
    assert run(["explain", "shop/cart-0", *evening.options(models=False)]) == 0
    text = capfd.readouterr().out
    assert "degradation level 3 (requests)" in text
    assert "no model has been published" in text
    assert "predicted_peak is neutral: no model is in use" in text
    assert "What each score contributes" not in text  # the predicted peak alone, 50 on every node


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["shop/nobody"], "pod 'shop/nobody' is not known; known are: shop/cart-0"),
        (["nobody"], "'nobody' is neither a file nor namespace/name"),
        (["/nobody"], "neither a file nor namespace/name"),
        (["a/b/c"], "neither a file nor namespace/name"),
        (["shop/cart-0", "--node", "node-7"], "node 'node-7' is not known; known are: node-0, node-1"),
    ],
)
def test_what_is_not_there_is_one_line_and_status_2(
    evening: Evening, arguments: list[str], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()
    assert run(["explain", *arguments, *evening.options()]) == 2
    said = capfd.readouterr()
    assert message in said.err
    assert said.err.count("\n") == 1, said.err
    assert said.out == ""


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "kind: Pod\nspec: 7",
        "kind: Node\nmetadata: {name: x}",
        "",
    ],
    ids=repr,
)
def test_a_manifest_that_is_none_is_one_line_and_status_2(
    evening: Evening, content: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pod.yaml").write_text(content)
    capfd.readouterr()
    assert run(["explain", str(tmp_path / "pod.yaml"), *evening.options()]) == 2
    assert capfd.readouterr().err.count("\n") == 1


def test_files_of_powershell_and_the_manifest_of_a_workload_are_explained(
    evening: Evening, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    cluster, manifest = tmp_path / "cluster.json", tmp_path / "pod.yaml"
    cluster.write_text(evening.cluster.read_text(), encoding="utf-16", newline="\r\n")
    workload = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"template": {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "5k"}}}]}}},
    }
    manifest.write_text(json.dumps(workload), encoding="utf-16")
    options = [str(cluster) if option == str(evening.cluster) else option for option in evening.options()]
    found = explained(capfd, str(manifest), *options)
    assert found["filters"]["nodes"] == [] and found["cluster_file"] == []
    assert found["filters"]["rejections"][0]["reason"] == "Insufficient cpu"


def test_it_says_where_the_pod_could_go_and_why_not_elsewhere(
    evening: Evening, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    document = json.loads(evening.cluster.read_text())
    for item in document["items"]:
        if item["kind"] == "Node" and item["metadata"]["name"] == "node-1":
            item["spec"]["taints"] = [{"key": "only", "value": "batch", "effect": "NoSchedule"}]
    cluster, manifest = tmp_path / "cluster.json", tmp_path / "pod.yaml"
    cluster.write_text(json.dumps(document))
    options = [str(cluster) if option == str(evening.cluster) else option for option in evening.options()]
    found = explained(capfd, "shop/cart-0", *options, "--filters")["filters"]
    assert found["nodes"] == ["node-0"]
    assert [(one["filter"], one["nodes"], one["preemptible"]) for one in found["rejections"]] == [
        ("TaintToleration", 1, False)
    ]
    manifest.write_text(MANIFEST.replace("cpu: 500m", "cpu: 5k"))
    capfd.readouterr()
    assert run(["explain", str(manifest), *options, "--filters"]) == 0
    text = capfd.readouterr().out
    assert "0 of 2 nodes pass all filters" in text
    assert "2 rejected by NodeResourcesFit: Insufficient cpu (evicting pods does not help)" in text


POLICIES = """
policies:
  cold: {filters: [PredictedPeak], highest_peaks: {cpu: 0.001}, scores: {weights: {most_allocated: 1}}}
rules:
  - {policy: cold, description: web, namespace_selector: {matchLabels: {team: web}}}
"""


def test_the_policy_is_named_and_its_filters_count(
    evening: Evening, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    policies = tmp_path / "policies.yaml"
    policies.write_text(POLICIES)
    document = json.loads(evening.cluster.read_text())
    document["items"].append(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"team": "web"}}}
    )
    (tmp_path / "cluster.json").write_text(json.dumps(document))
    known = replace(evening, cluster=tmp_path / "cluster.json").options()
    asked = ("shop/cart-0", "--policies", str(policies))
    for filters in ((), ("--filters",)):  # which bring labels of namespaces in different ways
        found = explained(capfd, *asked, *known, *filters)
        assert (found["policy"], found["policy_because"]) == ("cold", "rule 1: web")
        assert found["namespaces_not_known"] == {"count": 0, "first": []}
        assert {part["name"] for node in found["nodes"] for part in node["contributions"]} == {"most_allocated"}
    assert found["filters"]["nodes"] == []
    assert run(["explain", *asked, *known]) == 0
    assert "cold" in capfd.readouterr().out
    found = explained(capfd, *asked, *evening.options())
    assert (found["policy"], found["policy_because"]) == ("settings", "no rule holds")
    assert found["namespaces_not_known"] == {"count": 1, "first": ["shop"]}
