"""Templates from end to end: custom resources, the webhook over TLS, a real API server and a real kube-scheduler."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from admission.templates.shaping_annotations import CONTROL_ANNOTATION, TEMPLATES_ANNOTATION, applied_to, control_of
from testing.processes.command import command
from testing.processes.scorer_process import ROOT, ScorerProcess, eventually
from testing.processes.webhook_process import Api, WebhookProcess, configuration, manifests
from testing.servers.cluster_objects import ClusterWriter, Manifest, node, pod
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.servers.control_plane.pool import control_plane
from tests.processes.placing import Placing, counter

EXAMPLES = {
    (one["kind"], one["metadata"]["name"]): one
    for one in manifests(ROOT / "tests" / "forecast_scheduler" / "templates.yaml")
}
HASH = "5d9c7b6f4d"
ZONES = ("east", "north", "west")
FAST = [f"fast-{zone}" for zone in ZONES[:2]]
GENERAL = [f"general-{zone}" for zone in ZONES]
GPU = "gpu-west"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
ROOM_FOR = 3
"""Pods on each of the fast nodes."""


@dataclass(frozen=True)
class Site:
    """A cluster with the webhook in front and kube-scheduler behind."""

    plane: ControlPlane
    api: Api
    writer: ClusterWriter
    webhook: WebhookProcess

    def stored(self, name: str) -> dict[str, Any]:
        return dict(self.api.read({"kind": "Pod", "metadata": {"name": name}}))

    def annotations(self, name: str) -> dict[str, str]:
        return dict(self.stored(name)["metadata"].get("annotations", {}))

    def records(self, wanted: Manifest, **expected: int) -> None:
        """Wait until new pods like this one would be shaped by exactly these bindings: template versions by name."""

        def shaped() -> bool:
            tried = self.api.create(wanted, "?dryRun=All")
            found = applied_to(tried["metadata"].get("annotations", {}))
            return {one.binding: one.version for one in found} == expected

        assert eventually(shaped, 30), self.webhook.log[-3000:]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with ExitStack() as running:
        plane = running.enter_context(control_plane())
        api, writer = running.enter_context(Api(plane)), running.enter_context(ClusterWriter(plane))
        api.install_crds()
        webhook = WebhookProcess(tmp_path_factory.mktemp("webhook"), plane.kubeconfig, forked=True)
        running.enter_context(webhook)
        # Fail: a pod that is not shaped would be a test that proves nothing.
        api.create(configuration(webhook, failurePolicy="Fail"))
        for name in (*FAST, *GENERAL, GPU):
            pool, zone = name.split("-")
            labels = {"pool": pool, "topology.kubernetes.io/zone": zone}
            if pool == "gpu":
                labels["nvidia.com/gpu.present"] = "true"
            writer.create(node(name, labels=labels, pods=ROOM_FOR if pool == "fast" else 110))
        quick = {"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1}
        running.enter_context(KubeScheduler(plane, settings=quick))
        yield Site(plane, api, writer, webhook)


@pytest.fixture
def placing(site: Site) -> Iterator[Placing]:
    with Placing(site.writer) as placing:
        yield placing


@pytest.fixture
def applied(site: Site) -> Iterator[Any]:
    """applied(template, binding, ...) creates them, and takes them away in the end."""
    made: list[Manifest] = []

    def apply(*wanted: Manifest) -> None:
        for one in wanted:
            made.append(one)
            site.api.create(one)

    yield apply
    for one in reversed(made):
        site.api.delete(one)


def of_deployment(name: str, deployment: str, **more: Any) -> Manifest:
    """A pod as the ReplicaSet of a Deployment makes it."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{deployment}-{HASH}", "uid": f"uid-{deployment}"}
    labels = {"app": deployment, "pod-template-hash": HASH} | more.pop("labels", {})
    return pod(name, owner=owner, labels=labels, **more)


def changed(kind: str, name: str, **spec: Any) -> Manifest:
    """An example, with some of its spec replaced, or left out (None)."""
    one: Manifest = json.loads(json.dumps(EXAMPLES[kind, name]))
    return one | {"spec": {field: value for field, value in (one["spec"] | spec).items() if value is not None}}


def bound_to_default(name: str, **spec: Any) -> Manifest:
    """The binding of an example, for the namespace of these tests."""
    one = changed("SchedulerConfigBinding", name, **spec)
    if "namespaces" in one["spec"]["pods"]:
        one["spec"]["pods"]["namespaces"] = ["default"]
    return one


def rendered(site: Site, wanted: Manifest | str, folder: Path, *options: str) -> dict[str, Any]:
    """What `render` says of a manifest, or of a pod that is there."""
    if isinstance(wanted, str):
        named = wanted
    else:
        path = folder / "pod.yaml"
        path.write_text(yaml.safe_dump(wanted))
        named = str(path)
    ended = command("render", named, "--kubeconfig", site.plane.kubeconfig, *options, "--json", "-")
    assert ended.returncode == 0, ended.stderr
    return dict(json.loads(ended.stdout))


def test_pool_a_while_it_has_room_else_pool_b(site: Site, placing: Placing, applied: Any, tmp_path: Path) -> None:
    applied(EXAMPLES["NodeSchedulerConfig", "pool"], bound_to_default("cart-pool"))
    wanted = [of_deployment(f"cart-{i}", "cart") for i in range(8)]
    site.records(wanted[0], **{"cart-pool": 1})
    nodes = placing.place(wanted)
    assert sorted(name for name in nodes.values() if name in FAST) == sorted(FAST * ROOM_FOR)
    assert all(name in GENERAL for name in nodes.values() if name not in FAST)
    others = placing.place([of_deployment(f"other-{i}", "other") for i in range(4)])
    assert all(TEMPLATES_ANNOTATION not in site.annotations(name) for name in others)

    # The same as `render` says of the manifest, and nothing more of the pod that is there.
    stored, said = site.stored("cart-0"), rendered(site, wanted[0], tmp_path)
    assert said["affinity"] == stored["spec"]["affinity"]
    assert said["annotations"] == {TEMPLATES_ANNOTATION: stored["metadata"]["annotations"][TEMPLATES_ANNOTATION]}
    again = rendered(site, "default/cart-0", tmp_path)
    assert not again["changed"]
    assert again["affinity"] == said["affinity"]
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "cart", "namespace": "default"},
        "spec": {"template": {"metadata": {"labels": {"app": "cart"}}, "spec": wanted[0]["spec"]}},
    }
    assert rendered(site, deployment, tmp_path)["affinity"] == said["affinity"]


def test_spread_over_zones_and_off_the_gpu_nodes(site: Site, placing: Placing, applied: Any, tmp_path: Path) -> None:
    applied(
        EXAMPLES["PodSchedulerConfig", "apart"],
        EXAMPLES["NodeSchedulerConfig", "no-gpu"],
        bound_to_default("search-apart", canary=None),
        EXAMPLES["SchedulerConfigBinding", "web-no-gpu"],
    )
    search = [of_deployment(f"search-{i}", "search", annotations={"team": "web"}) for i in range(len(ZONES))]
    site.records(search[0], **{"search-apart": 1, "web-no-gpu": 1})
    nodes = placing.place(search)
    assert sorted(name.split("-")[1] for name in nodes.values()) == sorted(ZONES)
    assert GPU not in nodes.values()
    stored, said = site.stored("search-0"), rendered(site, search[0], tmp_path)
    assert said["affinity"] == stored["spec"]["affinity"]
    assert set(said["affinity"]) == {"nodeAffinity", "podAntiAffinity"}


def test_the_shipped_examples_place_replicas_apart(site: Site, placing: Placing, applied: Any, tmp_path: Path) -> None:
    applied(*manifests(ROOT / "deploy" / "crds" / "examples" / "replicas-apart-by-zone.yaml"))
    mail = [of_deployment(f"mail-{i}", "mail", labels={"spread": "zones"}) for i in range(len(ZONES))]
    site.records(mail[0], zones=1)
    nodes = placing.place(mail)
    assert sorted(name.split("-")[1] for name in nodes.values()) == sorted(ZONES)
    # The API server puts the values of matchLabelKeys into labelSelector: rendering again must know its own terms.
    (stored,) = site.stored("mail-0")["spec"]["affinity"]["podAntiAffinity"][PREFERRED]
    assert {"key": "app", "operator": "In", "values": ["mail"]} in stored["podAffinityTerm"]["labelSelector"][
        "matchExpressions"
    ]
    assert not rendered(site, "default/mail-0", tmp_path)["changed"]


def test_later_pods_follow_a_changed_template_and_say_so(site: Site, placing: Placing, applied: Any) -> None:
    template = changed("NodeSchedulerConfig", "pool", parameters=None, preferred=None)
    template["spec"]["required"] = [{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["general"]}]}]
    binding = bound_to_default("cart-pool", arguments=None)
    applied(template, binding)
    before, after = of_deployment("before", "cart"), of_deployment("after", "cart")
    site.records(before, **{"cart-pool": 1})
    assert placing.place([before])["before"] in GENERAL
    moved = {"required": [{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["gpu"]}]}]}
    site.api.patch(template, {"spec": moved})
    site.records(after, **{"cart-pool": 2})
    assert placing.place([after]) == {"after": GPU}
    (first,), (second,) = (applied_to(site.annotations(name)) for name in ("before", "after"))
    assert (first.template, first.version, first.generation) == ("NodeSchedulerConfig/pool", 1, 1)
    assert (second.template, second.version, second.generation) == ("NodeSchedulerConfig/pool", 2, 1)
    site.api.patch(binding, {"spec": {"suspended": True}})
    site.records(after | {"metadata": after["metadata"] | {"name": "third"}})


@pytest.mark.long
def test_a_trial_with_half_of_the_pods(site: Site, placing: Placing, applied: Any, tmp_path: Path) -> None:
    trial = bound_to_default("cart-pool", canary={"percent": 50})
    trial["spec"]["arguments"] = [{"name": "pools", "strings": ["gpu"]}, {"name": "first", "string": "gpu"}]
    applied(EXAMPLES["NodeSchedulerConfig", "pool"], trial)
    wanted = [of_deployment(f"cart-{i:02d}", "cart") for i in range(60)]

    def is_on_trial() -> bool:
        annotations = site.api.create(wanted[0], "?dryRun=All")["metadata"].get("annotations", {})
        return bool(applied_to(annotations) or control_of(annotations))

    assert eventually(is_on_trial, 30), site.webhook.log[-3000:]
    nodes = placing.place(wanted, 120)
    pods = {one["metadata"]["name"]: one for one in site.writer.list_all("pods")}
    annotations = {name: pods[name]["metadata"]["annotations"] for name in nodes}
    chosen = {name for name in nodes if [one.binding for one in applied_to(annotations[name])] == ["cart-pool"]}
    control = {name for name in nodes if control_of(annotations[name]) == {"cart-pool"}}
    assert chosen | control == set(nodes)
    assert not chosen & control
    assert chosen and control  # 1 in 2^59 has no such luck
    assert all(one.canary for name in chosen for one in applied_to(annotations[name]))
    assert {nodes[name] for name in chosen} == {GPU}
    assert all("affinity" not in pods[name]["spec"] for name in control)

    by_name = {one["metadata"]["name"]: one for one in wanted}
    for names, choice in ((chosen, "in"), (control, "out")):
        name = min(names)
        said = rendered(site, by_name[name], tmp_path, "--all-canaries", choice)
        assert said["affinity"] == pods[name]["spec"].get("affinity")
        key = TEMPLATES_ANNOTATION if choice == "in" else CONTROL_ANNOTATION
        assert said["annotations"] == {key: annotations[name][key]}
        assert not rendered(site, f"default/{name}", tmp_path)["changed"]

    models = tmp_path / "models"
    reported = {"canary": len(chosen), "control": len(control)}
    plane = ("--kubeconfig", site.plane.kubeconfig, "--models", models)
    with ScorerProcess(tmp_path / "extender", *plane, settings={}, command="extender", forked=True) as extender:
        for group, count in reported.items():
            exported = counter(extender, "forecast_binding_pods", binding="cart-pool", group=group)
            assert exported == count
    ended = command("canary", "cart-pool", *plane, "--json", "-")
    assert ended.returncode == 0, ended.stderr
    figures = json.loads(ended.stdout)
    (told,) = figures["bindings"]
    assert {group: of["pods"] for group, of in told["groups"].items()} == reported
    assert "on nodes with a predicted peak" in told["untold"], "no model was published"
    (asked,) = figures["what_if"]["services"]
    assert (asked["service"], asked["pods"]) == ("default/Deployment/cart", len(control))
    assert asked["shaped"]["node"] == GPU
    assert asked["shaped"]["feasible"] == 1
    assert asked["without"]["feasible"] > 1


def test_what_the_api_server_does_not_give_is_one_line_and_status_2(site: Site, tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text(yaml.safe_dump(of_deployment("cart-0", "cart")))
    plane = site.plane
    powerless = plane.write_kubeconfig("nobody", plane.powerless_token)
    elsewhere = plane.write_kubeconfig("admin", plane.token, url=f"{plane.url}/nowhere")
    for named, kubeconfig, message in (
        (path, powerless, "the API server does not let us list nodeschedulerconfigs (403)"),
        (path, elsewhere, "knows no nodeschedulerconfigs: install the CustomResourceDefinitions of deploy/crds"),
        ("default/nobody", plane.kubeconfig, "pod 'default/nobody' is not known"),
        ("default/nobody", powerless, "the API server does not let us read pods (403)"),
    ):
        ended = command("render", named, "--kubeconfig", kubeconfig)
        assert ended.returncode == 2, ended.stdout
        assert message in ended.stderr
        assert ended.stderr.count("\n") == 1, ended.stderr
