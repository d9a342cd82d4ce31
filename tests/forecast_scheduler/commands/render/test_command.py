"""`render` from beginning to end: templates and pods from files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from admission.templates.shaping_annotations import (
    TEMPLATES_ANNOTATION,
)
from forecast_scheduler.cli import run
from forecast_scheduler.commands.render.rendered_pod import UNSHAPED_NAMESPACES

ROOT = Path(__file__).parents[4]
EXAMPLES = Path(__file__).parents[2] / "templates.yaml"

FAST_ELSE_GENERAL = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["fast", "general"]}]}
            ]
        },
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {
                "weight": 100,
                "preference": {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["fast"]}]},
            }
        ],
    }
}
Render = Callable[..., dict[str, Any]]
Write = Callable[..., Path]


def pod_template(labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"labels": labels or {}}, "spec": {"containers": [{"name": "m", "image": "app:1"}], **spec}}


def manifest(kind: str = "Pod", name: str = "cart", **more: Any) -> dict[str, Any]:
    groups = {"Deployment": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "Job": "batch/v1"}
    metadata = {"name": name, "namespace": "shop"}
    made: dict[str, Any] = {"apiVersion": groups.get(kind, "v1"), "kind": kind, "metadata": metadata}
    if kind == "Pod":
        template = pod_template(more.pop("labels", None), **more.pop("spec", {}))
        return made | {"metadata": metadata | template["metadata"] | more, "spec": template["spec"]}
    return made | {"spec": {"template": pod_template(more.pop("labels", None), **more)}}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(*documents: object, name: str = "manifest.yaml") -> Path:
        path = tmp_path / name
        path.write_text(yaml.safe_dump_all(documents) if not isinstance(documents[0], str) else documents[0])
        return path

    return write


@pytest.fixture
def rendered(capfd: pytest.CaptureFixture[str]) -> Render:
    def rendered(pod: object, *options: object, templates: Path = EXAMPLES) -> dict[str, Any]:
        capfd.readouterr()
        arguments = ["render", str(pod), "--templates", str(templates), *map(str, options)]
        assert run([*arguments, "--json", "-"]) == 0, capfd.readouterr().err
        return dict(json.loads(capfd.readouterr().out))

    return rendered


def outcomes(figures: dict[str, Any]) -> dict[str, str]:
    return {one["binding"]: one["outcome"] for one in figures["bindings"]}


def reason(figures: dict[str, Any], binding: str) -> str:
    return next(str(one["message"]) for one in figures["bindings"] if one["binding"] == binding)


def test_a_deployment_gets_its_pool_if_the_webhook_is_asked_about_it(
    write: Write, rendered: Render, capfd: pytest.CaptureFixture[str]
) -> None:
    figures = rendered(write(manifest("Deployment")))
    assert outcomes(figures) == {
        "cart-pool": "applied",
        "search-apart": "not matched",
        "web-no-gpu": "not matched",
    }
    assert reason(figures, "search-apart") == "selector does not match the pod's labels"
    assert reason(figures, "web-no-gpu") == "annotation team is missing"
    assert figures["affinity"] == FAST_ELSE_GENERAL
    assert figures["pod"] == "pod template of Deployment shop/cart"
    assert figures["changed"]
    (webhook,) = yaml.safe_load((ROOT / "deploy" / "base" / "webhook" / "configuration.yaml").read_text())["webhooks"]
    (names,) = webhook["namespaceSelector"]["matchExpressions"]
    assert (names["operator"], tuple(names["values"])) == ("NotIn", UNSHAPED_NAMESPACES)
    for namespace in ("shop", *UNSHAPED_NAMESPACES):
        pod = manifest("Deployment", "cart")
        pod["metadata"]["namespace"] = namespace
        assert run(["render", str(write(pod)), "--templates", str(EXAMPLES)]) == 0
        said = f"pods of namespace {namespace} do not reach the webhook" in capfd.readouterr().out
        assert said is (namespace != "shop")


def test_it_reads_as_a_diff_and_its_yaml_can_be_passed_on(
    write: Write, capfd: pytest.CaptureFixture[str], rendered: Render
) -> None:
    assert run(["render", str(write(manifest("Deployment"))), "--templates", str(EXAMPLES)]) == 0
    text = capfd.readouterr().out
    assert "cart-pool (NodeSchedulerConfig/pool) applied" in text
    for line in ("--- pod template of Deployment shop/cart, before", "+++ after", "+  affinity:", "+    nodeAffinity:"):
        assert line in text.splitlines()
    assert "+            - fast" in text
    removed = [line for line in text.splitlines() if line.startswith("-") and not line.startswith("---")]
    assert not removed
    path = write(manifest("Deployment"))
    arguments = ["render", str(path), "--templates", str(EXAMPLES), "--output", "yaml"]
    assert run(arguments) == 0
    said = capfd.readouterr()
    pod = yaml.safe_load(said.out)
    assert pod["kind"] == "Pod"
    assert pod["spec"]["affinity"] == FAST_ELSE_GENERAL
    assert json.loads(pod["metadata"]["annotations"][TEMPLATES_ANNOTATION])[0]["binding"] == "cart-pool"
    assert "cart-pool (NodeSchedulerConfig/pool) applied" in said.err
    # What was rendered once stays so.
    again = rendered(write(pod, name="again.yaml"))
    assert not again["changed"], again


def test_pods_of_workloads_and_of_an_exported_cluster(
    write: Write, rendered: Render, capfd: pytest.CaptureFixture[str]
) -> None:
    path = write(manifest("Deployment", "search", labels={"app": "search"}))
    chosen = rendered(path)
    assert outcomes(chosen)["search-apart"] == "applied"
    assert "podAntiAffinity" in chosen["affinity"]
    stored = manifest(name="web-1", uid="u-1", annotations={"team": "web"}, spec={"nodeName": "node-1"})
    listed = {"apiVersion": "v1", "kind": "List", "items": [stored]}
    path = write(json.dumps(listed), name="cluster.json")
    figures = rendered("shop/web-1", "--cluster", path)
    assert outcomes(figures)["web-no-gpu"] == "applied"
    assert run(["render", "shop/web-1", "--cluster", str(path), "--templates", str(EXAMPLES)]) == 0
    assert "the pod was created already" in capfd.readouterr().out
    assert run(["render", "shop/web-2", "--cluster", str(path), "--templates", str(EXAMPLES)]) == 2
    assert "pod 'shop/web-2' is not known" in capfd.readouterr().err


def test_templates_of_an_exported_cluster_and_labels_of_its_namespaces(
    write: Write, capfd: pytest.CaptureFixture[str]
) -> None:
    documents = list(yaml.safe_load_all(EXAMPLES.read_text()))
    selecting = json.loads(json.dumps(documents[3]))
    selecting["metadata"]["name"] = "by-namespace"
    selecting["spec"]["pods"] = {"namespaceSelector": {"matchLabels": {"tier": "front"}}}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"tier": "front"}}}
    stored = manifest(name="web-1")
    everything = {"kind": "List", "apiVersion": "v1", "items": [*documents, selecting, namespace, stored]}
    cluster = write(json.dumps(everything), name="cluster.json")
    assert run(["render", "shop/web-1", "--cluster", str(cluster), "--json", "-"]) == 0
    assert outcomes(json.loads(capfd.readouterr().out))["by-namespace"] == "applied"
    templates = write(*documents, selecting, name="templates.yaml")
    pod = write(stored)
    assert run(["render", str(pod), "--templates", str(templates), "--json", "-"]) == 0
    figures = json.loads(capfd.readouterr().out)
    assert outcomes(figures)["by-namespace"] == "not matched"
    assert reason(figures, "by-namespace") == "the labels of namespace shop are not known: pass a cluster"
    bare = write(json.dumps({"kind": "List", "items": [stored]}), name="bare.json")
    assert run(["render", "shop/web-1", "--cluster", str(bare)]) == 2
    assert "holds no SchedulerConfigBinding: pass the templates with --templates" in capfd.readouterr().err


def test_policies_are_named(write: Write, rendered: Render) -> None:
    document = """
default: calm
policies:
  calm: {}
  quick: {deadline: 100ms}
rules:
  - {policy: quick, selector: {matchLabels: {app: cart}}}
"""
    policies = write(document, name="policies.yaml")
    path = write(manifest("Deployment", labels={"app": "cart"}))
    figures = rendered(path, "--policies", policies)
    assert figures["policy"]["name"] == "quick"
    assert "rule 1" in figures["policy"]["because"]
    figures = rendered(write(manifest("Deployment")), "--policies", policies)
    assert figures["policy"]["name"] == "calm"
    assert rendered(path)["policy"] is None


BINDING = yaml.safe_load("""
apiVersion: forecast-scheduler.io/v1alpha1
kind: SchedulerConfigBinding
metadata: {name: broken}
spec:
  template: {kind: NodeSchedulerConfig, name: pool}
  pods: {namespaces: [shop]}
""")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"template": {"kind": "NodeSchedulerConfig", "name": "nothing"}}, "nothing"),
        ({"arguments": [{"name": "unheardOf", "string": "x"}]}, "unheardOf"),
        ({"pods": {}}, "pods"),
        ({"shoe": 3}, "shoe"),
    ],
)
def test_broken_templates_are_status_2_with_file_and_field(
    write: Write, change: dict[str, Any], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    broken = json.loads(json.dumps(BINDING)) | {"spec": BINDING["spec"] | change}
    templates = write(*yaml.safe_load_all(EXAMPLES.read_text()), broken, name="templates.yaml")
    assert run(["render", str(write(manifest())), "--templates", str(templates)]) == 2
    said = capfd.readouterr()
    assert f"{templates}: SchedulerConfigBinding broken" in said.err
    assert message in said.err.partition("broken")[2]
    assert said.err.count("\n") == 1, said.err
    assert said.out == ""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("kind: Service\nmetadata: {name: a}", "holds no Pod and nothing that makes pods (CronJob"),
        ("kind: Deployment\napiVersion: apps/v1\nmetadata: {name: a}", "has no pod template at spec.template"),
        ("just text", "not objects in JSON or YAML"),
        ("a: [", "cannot be read as a manifest"),
        ("kind: Pod\nmetadata: {name: 3}\nspec: 7", "Pod"),
        ("{kind: Pod, metadata: {name: a}}\n---\n{kind: Pod, metadata: {name: b}}", "holds 2 that make pods (pod "),
    ],
)
def test_what_is_no_pod_is_one_line_and_status_2(
    write: Write, content: str, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["render", str(write(content)), "--templates", str(EXAMPLES)]) == 2
    said = capfd.readouterr()
    assert message in said.err
    assert said.err.count("\n") == 1, said.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nobody", "--templates", str(EXAMPLES)], "neither a file nor namespace/name"),
        (["a/b", "--cluster", "x", "--kubeconfig", "y"], "two clusters"),
        (["a/b", "--kubeconfig", "/nowhere"], "there is no kubeconfig /nowhere"),
        (["{manifest}"], "templates from files (--templates FILE) and a manifest need none"),
        (["{manifest}", "--templates", "/nowhere.yaml"], "/nowhere.yaml cannot be read"),
        (["{manifest}", "--templates", "{manifest}"], "Deployment"),
        (["{manifest}", "--templates", str(ROOT / "forecast")], "holds no .yaml, .yml or .json file"),
        (["{manifest}", "--templates", str(EXAMPLES), "--templates", str(EXAMPLES)], "is in "),
    ],
)
def test_what_cannot_be_used_is_one_line_and_status_2(
    write: Write, arguments: list[str], message: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    path = str(write(manifest("Deployment")))
    assert run(["render", *(one.replace("{manifest}", path) for one in arguments)]) == 2
    said = capfd.readouterr()
    assert message in said.err
    assert said.err.count("\n") == 1, said.err
    assert said.out == ""
