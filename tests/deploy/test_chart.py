"""The Helm chart installs what kustomize builds, for every overlay; its schema refuses what it does not know."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from deploy.chart.chart_archive import values_schema, write_chart
from testing.servers.applying import Applier
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.helm.binary import helm
from testing.servers.kustomize import DEPLOY, built, built_from

Manifest = dict[str, Any]

VERSION: Final = ("--kube-version", "1.37.0")
"""A helm that is built from its module alone takes Kubernetes for 1.20."""

ON: Final = {"enabled": True}
OFF: Final = {"enabled": False}
LOOPS: Final = {"schedule": ON}
BOTH: Final = {"extender": ON, "schedule": {"enabled": True, "gpu": True, "profiles": "gpu,job"}}
WEBHOOK: Final = {"trainer": OFF, "scorer": OFF, "webhook": ON}
OVERLAYS: Final[Mapping[str, Mapping[str, Any]]] = {
    "observe": {},
    "shadow": {"extender": {"enabled": True, "shadow": True}},
    "extender": {"extender": ON},
    "own-loops": LOOPS,
    "extender-and-own-loops": BOTH,
    "gpu": {"schedule": {"enabled": True, "gpu": True}},
    "webhook": WEBHOOK,
    "advisor": {"webhook": ON, "advisor": ON},
    "rebalancer": {"rebalancer": ON},
    "autoscaler": {"autoscaler": ON},
    "local": LOOPS | {"small": True},
}
BESIDE: Final[Mapping[str, Mapping[str, Any]]] = {
    "kube-prometheus": {"monitoring": ON},
    "prometheus-network-policy": {"monitoring": {"prometheusNetworkPolicy": True}},
}
"""Overlays that go beside another one."""

COMPONENTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "reports-through-api-server": {"scorer": {"throughApiServer": True}},
    "pushgateway": {"pushgateway": ON},
    "workload-identity": {"workloadIdentity": ON},
    "signed-models": {"models": {"signed": True}},
    "certificates-by-cert-manager": {"extender": {"enabled": True, "certificates": "certManager"}},
    "autoscaler-writes": {"autoscaler": {"enabled": True, "writes": True}},
    "shards": {"schedule": {"enabled": True, "shards": True}},
    "external-metrics": {"autoscaler": {"enabled": True, "externalMetrics": True}},
}


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_chart(tmp_path_factory.mktemp("chart"))


def _helm(*arguments: str | Path, values: Mapping[str, Any] | None = None) -> subprocess.CompletedProcess[str]:
    command = [helm(), *arguments, *VERSION, "--values", "-"]
    return subprocess.run(command, input=yaml.safe_dump(values or {}), capture_output=True, text=True, timeout=120)


def _rendered(chart: Path, values: Mapping[str, Any]) -> list[Manifest]:
    namespace = {"namespace": {"create": True}}  # kustomize makes it; the chart's default leaves it to its user
    done = _helm("template", "forecast-scheduler", chart, values={**namespace, **values})
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one is not None]


def _comparable(manifests: list[Manifest]) -> dict[tuple[str, ...], Manifest]:
    """By kind and name, without the ways in which the two differ on purpose.

    The ConfigMap of settings: kustomize puts a digest into its name, the chart into an annotation of the pods, since
    Helm deletes an old ConfigMap while pods still mount it. helm.sh/resource-policy: `kubectl apply` deletes nothing
    anyway.
    Folded CEL expressions: kustomize writes an empty line more than it has read where the next line is indented.
    """
    found: dict[tuple[str, ...], Manifest] = {}
    for one in manifests:
        text = yaml.safe_dump(one)
        text = re.sub(r"(forecast-scheduler-settings)-[a-z0-9]{10}\b", r"\1", text)
        text = re.sub(r" *annotations:\n( +)checksum/settings: [0-9a-f]{64}\n", "", text)
        text = re.sub(r" *helm.sh/resource-policy: keep\n", "", text)
        same = _unfolded(yaml.safe_load(text))
        if same["metadata"].get("annotations", ()) is None:
            del same["metadata"]["annotations"]
        metadata = same["metadata"]
        key = (same["apiVersion"], same["kind"], metadata.get("namespace", ""), metadata["name"])
        assert key not in found
        found[key] = same
    return found


def _unfolded(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: re.sub(r"\n+", "\n", one) if key in ("rule", "expression") and isinstance(one, str) else _unfolded(one)
            for key, one in value.items()
        }
    return [_unfolded(one) for one in value] if isinstance(value, list) else value


def test_every_overlay_is_compared() -> None:
    assert {place.name for place in (DEPLOY / "overlays").iterdir()} == {*OVERLAYS, *BESIDE}


@pytest.mark.parametrize("name", OVERLAYS)
def test_the_chart_installs_what_an_overlay_installs(name: str, chart: Path) -> None:
    assert _comparable(_rendered(chart, OVERLAYS[name])) == _comparable(built(f"overlays/{name}"))


@pytest.mark.parametrize("name", BESIDE)
def test_the_chart_installs_what_an_overlay_beside_another_installs(name: str, chart: Path, tmp_path: Path) -> None:
    both = built_from(tmp_path / "both", resources=["overlays/observe", f"overlays/{name}"])
    assert _comparable(_rendered(chart, BESIDE[name])) == _comparable(both)


@pytest.mark.parametrize("name", COMPONENTS)
def test_the_chart_knows_the_components(name: str, chart: Path, tmp_path: Path) -> None:
    overlay_of = {"extender": "extender", "autoscaler": "autoscaler", "schedule": "own-loops"}
    overlay = f"overlays/{next((overlay_of[part] for part in overlay_of if part in COMPONENTS[name]), 'observe')}"
    by_kustomize = built_from(tmp_path / "with", resources=[overlay], components=[f"components/{name}"])
    assert _comparable(_rendered(chart, COMPONENTS[name])) == _comparable(by_kustomize)


def test_the_webhooks_certificate_by_cert_manager(chart: Path, tmp_path: Path) -> None:
    component = "components/webhook-certificate-by-cert-manager"
    by_kustomize = built_from(tmp_path / "with", resources=["overlays/webhook"], components=[component])
    values = WEBHOOK | {"webhook": {"enabled": True, "certificates": "certManager"}}
    assert _comparable(_rendered(chart, values)) == _comparable(by_kustomize)


def test_models_in_an_object_store(chart: Path, tmp_path: Path) -> None:
    parts = [f"base/{part}" for part in ("common", "trainer", "scorer")]
    store = built_from(tmp_path / "store", resources=parts, components=["components/models-on-object-store"])
    assert _comparable(_rendered(chart, {"models": {"store": "objectStore"}})) == _comparable(store)


def test_values_reach_the_objects(chart: Path) -> None:
    part = {
        "replicas": 1,
        "resources": {"limits": {"memory": "2Gi"}},
        "nodeSelector": {"pool": "system"},
        "podLabels": {"azure.workload.identity/use": "true"},
        "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/reader"}},
    }
    values = {
        "image": {"repository": "registry.example/forecast-scheduler", "tag": "1.2.3", "pullSecrets": ["registry"]},
        "settings": {"prometheus": {"url": "http://metrics:9090"}, "serving": {"kubernetes_auth": False}},
        "models": {"storageClassName": "nfs"},
        "scorer": part,
    }
    objects = {key[1:]: one for key, one in _comparable(_rendered(chart, values)).items()}

    def named(kind: str, name: str) -> Manifest:
        return objects[kind, "forecast-scheduler", f"forecast-scheduler-{name}"]

    deployment = named("Deployment", "scorer")["spec"]
    pod = deployment["template"]["spec"]
    [container] = pod["containers"]
    assert deployment["replicas"] == 1
    assert named("PodDisruptionBudget", "scorer")["spec"]["minAvailable"] == 0
    assert deployment["template"]["metadata"]["labels"]["azure.workload.identity/use"] == "true"
    assert (container["image"], pod["imagePullSecrets"]) == (
        "registry.example/forecast-scheduler:1.2.3",
        [{"name": "registry"}],
    )
    assert container["resources"] == {"requests": {"cpu": "250m", "memory": "384Mi"}, "limits": {"memory": "2Gi"}}
    assert pod["nodeSelector"] == {"pool": "system"}
    assert "eks.amazonaws.com/role-arn" in named("ServiceAccount", "scorer")["metadata"]["annotations"]
    assert named("PersistentVolumeClaim", "models")["spec"]["storageClassName"] == "nfs"
    settings = yaml.safe_load(named("ConfigMap", "settings")["data"]["settings.yaml"])
    assert settings["prometheus"] == {"url": "http://metrics:9090"}
    assert settings["serving"]["kubernetes_auth"] is False and settings["serving"]["drain"] == "5s"


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"scorers": ON}, "scorers"),
        ({"scorer": {"replica": 3}}, "replica"),
        ({"models": {"store": "disk"}}, "store"),
        ({"settings": {"prometheus": {"adress": "http://metrics:9090"}}}, "adress"),
    ],
)
def test_a_typo_is_refused(values: Mapping[str, Any], named: str, chart: Path) -> None:
    done = _helm("template", "forecast-scheduler", chart, values=values)
    assert done.returncode != 0
    assert named in done.stderr


def test_every_value_is_in_the_schema() -> None:
    def keys(values: Any, schema: Any) -> None:
        if isinstance(values, dict) and "properties" in schema:
            assert set(values) <= set(schema["properties"])
            for key, value in values.items():
                keys(value, schema["properties"][key])

    keys(yaml.safe_load((DEPLOY / "chart" / "values.yaml").read_text()), values_schema())


def test_lint_has_nothing_to_say(chart: Path) -> None:
    done = _helm("lint", "--strict", chart)
    assert done.returncode == 0, done.stdout + done.stderr


def test_helm_installs_upgrades_and_uninstalls(chart: Path) -> None:
    with ControlPlane() as plane, Applier(plane) as applier:
        applier.apply(yaml.safe_load((DEPLOY / "base" / "common" / "namespace.yaml").read_text()))
        kubeconfig = plane.write_kubeconfig("helm", plane.token)
        where = ("--namespace", "forecast-scheduler", "--kubeconfig", kubeconfig)
        for arguments in (
            ["upgrade", "--install", "forecast-scheduler", chart, "--set", "schedule.enabled=true"],
            ["upgrade", "--install", "forecast-scheduler", chart, "--set", "webhook.enabled=true"],
            ["uninstall", "forecast-scheduler"],
        ):
            done = subprocess.run([helm(), *arguments, *where], capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, done.stderr
        for kept in _rendered(chart, {}):
            if kept["kind"] == "PersistentVolumeClaim":
                applier.read(kept)
