"""`render` from beginning to end: templates and pods from files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from admission.templates.pod_arguments import ARGUMENTS_ANNOTATION
from admission.templates.shaping_annotations import (
    CONTROL_ANNOTATION,
    TEMPLATES_ANNOTATION,
    Applied,
    control_text,
    record_text,
)
from forecast_scheduler.cli import run
from forecast_scheduler.commands.render.text import EXCLUDED_NAMESPACES

ROOT = Path(__file__).parents[4]
EXAMPLES = Path(__file__).parents[2] / "templates.yaml"
SHIPPED = ROOT / "deploy" / "crds" / "examples"

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


def test_a_deployment_gets_its_pool(write: Write, rendered: Render) -> None:
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


def test_arguments_of_the_pod_are_shown_and_what_is_wrong_with_them(write: Write, rendered: Render) -> None:
    cart = manifest("Deployment")
    arguments = cart["spec"]["template"]["metadata"].setdefault("annotations", {})
    arguments[ARGUMENTS_ANNOTATION] = json.dumps({"weight": 30})
    figures = rendered(write(cart))
    assert (outcomes(figures)["cart-pool"], reason(figures, "cart-pool")) == (
        "applied",
        "by arguments of the pod: weight 30",
    )
    preferred = figures["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert (preferred[0]["weight"], figures["warnings"]) == (30, [])
    arguments[ARGUMENTS_ANNOTATION] = json.dumps({"weight": 300, "wait": 1})
    figures = rendered(write(cart))
    assert (outcomes(figures)["cart-pool"], figures["affinity"]) == ("applied", FAST_ELSE_GENERAL)
    assert "argument weight: 300 is above maximum 100" in reason(figures, "cart-pool")
    assert ["no template of the pod has a parameter 'wait'" in figures["warnings"][0], len(figures["warnings"])] == [
        True,
        2,
    ]


@pytest.mark.parametrize(
    ("kind", "name", "owner"),
    [
        ("Deployment", "other", "Deployment/other"),
        ("StatefulSet", "cart", "StatefulSet/cart"),
        ("DaemonSet", "cart", "DaemonSet/cart"),
        ("Job", "cart", "Job/cart"),
        ("Pod", "cart", ""),
    ],
)
def test_another_owner_is_said(write: Write, rendered: Render, kind: str, name: str, owner: str) -> None:
    figures = rendered(write(manifest(kind, name)))
    assert outcomes(figures)["cart-pool"] == "not matched"
    assert reason(figures, "cart-pool") == (f"its top owner is {owner}" if owner else "it has no owner")
    assert figures["affinity"] is None
    assert not figures["changed"]


def test_the_jobs_of_a_cron_job_belong_to_it(write: Write, rendered: Render) -> None:
    cron = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "night", "namespace": "shop"},
        "spec": {"jobTemplate": {"spec": {"template": pod_template()}}},
    }
    assert reason(rendered(write(cron)), "cart-pool") == "its top owner is CronJob/night"


def test_all_conditions_that_do_not_hold_are_named(write: Write, rendered: Render) -> None:
    pod = manifest("Deployment", "cart")
    pod["metadata"]["namespace"] = "other"
    assert reason(rendered(write(pod)), "cart-pool") == "namespace other is none of shop"


def test_pods_that_the_webhook_is_not_asked_about_are_told(write: Write, capfd: pytest.CaptureFixture[str]) -> None:
    (webhook,) = yaml.safe_load((ROOT / "deploy" / "base" / "webhook" / "configuration.yaml").read_text())["webhooks"]
    (names,) = webhook["namespaceSelector"]["matchExpressions"]
    assert (names["operator"], tuple(names["values"])) == ("NotIn", EXCLUDED_NAMESPACES)
    for namespace in ("shop", *EXCLUDED_NAMESPACES):
        pod = manifest("Deployment", "cart")
        pod["metadata"]["namespace"] = namespace
        assert run(["render", str(write(pod)), "--templates", str(EXAMPLES)]) == 0
        said = f"pods of namespace {namespace} do not reach the webhook" in capfd.readouterr().out
        assert said is (namespace != "shop")


def test_what_a_suspended_binding_gave_before_is_not_shown_as_applied(write: Write, rendered: Render) -> None:
    found = list(yaml.safe_load_all(EXAMPLES.read_text()))
    for one in found:
        one["spec"] |= {"suspended": True} if one["kind"] == "SchedulerConfigBinding" else {}
    pod = manifest("Deployment")
    shaped = rendered(write(pod))
    pod["spec"]["template"]["spec"]["affinity"] = shaped["affinity"]
    pod["spec"]["template"]["metadata"]["annotations"] = shaped["annotations"]
    figures = rendered(write(pod), templates=write(*found, name="suspended.yaml"))
    assert outcomes(figures)["cart-pool"] == "suspended" and not figures["changed"]
    assert "has what it gave before" in reason(figures, "cart-pool")


def test_the_shipped_examples_can_be_tried(write: Write, rendered: Render) -> None:
    figures = rendered(write(manifest("Deployment", labels={"app": "cart", "spread": "zones"})), templates=SHIPPED)
    applied = {name for name, outcome in outcomes(figures).items() if outcome == "applied"}
    assert applied == {"cart-evening", "zones"}
    assert set(figures["affinity"]) == {"nodeAffinity", "podAntiAffinity"}


def test_it_reads_as_a_diff(write: Write, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["render", str(write(manifest("Deployment"))), "--templates", str(EXAMPLES)]) == 0
    text = capfd.readouterr().out
    assert "cart-pool (NodeSchedulerConfig/pool) applied" in text
    for line in ("--- pod template of Deployment shop/cart, before", "+++ after", "+  affinity:", "+    nodeAffinity:"):
        assert line in text.splitlines()
    assert "+            - fast" in text
    removed = [line for line in text.splitlines() if line.startswith("-") and not line.startswith("---")]
    assert not removed


def test_nothing_changes_where_nothing_applies(write: Write, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["render", str(write(manifest(name="lonely"))), "--templates", str(EXAMPLES)]) == 0
    text = capfd.readouterr().out
    assert "0 of 3 bindings" in text
    assert "nothing changes: the pod stays as it is" in text


def test_yaml_can_be_passed_on(write: Write, rendered: Render, capfd: pytest.CaptureFixture[str]) -> None:
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


def test_trials_choose_as_they_are_told(write: Write, rendered: Render) -> None:
    path = write(manifest("Deployment", "search", labels={"app": "search"}))
    chosen = rendered(path)
    assert outcomes(chosen)["search-apart"] == "applied"
    assert "20 %" in reason(chosen, "search-apart")
    assert "podAntiAffinity" in chosen["affinity"]
    assert rendered(path, "--all-canaries", "in") == chosen
    passed_over = rendered(path, "--all-canaries", "out")
    assert outcomes(passed_over)["search-apart"] == "control"
    assert passed_over["affinity"] is None
    assert passed_over["annotations"] == {CONTROL_ANNOTATION: "search-apart"}


def test_a_pod_keeps_what_it_records_unless_told_otherwise(write: Write, rendered: Render) -> None:
    annotations = {CONTROL_ANNOTATION: control_text(["search-apart"])}
    path = write(manifest(labels={"app": "search"}, annotations=annotations))
    assert outcomes(rendered(path))["search-apart"] == "control"
    assert outcomes(rendered(path, "--all-canaries", "in"))["search-apart"] == "applied"


def test_a_pod_of_an_exported_cluster(write: Write, rendered: Render, capfd: pytest.CaptureFixture[str]) -> None:
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


def test_conflicts_and_suspended_bindings_are_told(write: Write, rendered: Render) -> None:
    documents = list(yaml.safe_load_all(EXAMPLES.read_text()))
    documents[3]["spec"]["onConflict"] = "Merge"
    documents[5]["spec"] |= {"suspended": True, "pods": {"namespaces": ["shop"]}}
    templates = write(*documents, name="templates.yaml")
    elsewhere = manifest("Deployment", nodeSelector={"pool": "slow"})
    figures = rendered(write(elsewhere), templates=templates)
    assert outcomes(figures)["cart-pool"] == "contradiction"
    assert outcomes(figures)["web-no-gpu"] == "suspended"
    assert any(text.startswith("cart-pool: ") for text in figures["warnings"])
    assert not figures["changed"]
    documents[3]["spec"]["onConflict"] = "KeepPod"
    figures = rendered(write(elsewhere), templates=write(*documents, name="templates.yaml"))
    assert outcomes(figures)["cart-pool"] == "applied in part", "its preference stays"
    assert reason(figures, "cart-pool") == "left out on pool"
    assert set(figures["affinity"]["nodeAffinity"]) == {"preferredDuringSchedulingIgnoredDuringExecution"}


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
        ({"arguments": [{"name": "first", "integer": 3}]}, "first"),
        ({"canary": {"percent": 200}}, "percent"),
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
        ("just text", "document 1: str instead of an object"),
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


def test_the_record_of_a_binding_that_is_gone_is_taken_away(write: Write, rendered: Render) -> None:
    annotations = {TEMPLATES_ANNOTATION: record_text([Applied("gone", 1, "NodeSchedulerConfig/gone", 1)])}
    figures = rendered(write(manifest(annotations=annotations)))
    assert figures["annotations"] == {TEMPLATES_ANNOTATION: None}
