"""Every overlay, and every component in some overlay, on a real API server: applied server-side, without a warning, and
applied again without a change. What runs in our namespace is admitted under the Pod Security Standard `restricted`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
import yaml

from testing.servers.applying import Applier, NotApplied
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.kustomize import DEPLOY, built, built_from
from testing.waiting import eventually
from tests.deploy.shown import block_about, built_as_shown, file_shown

Manifest = dict[str, Any]

OVERLAYS: Final = (
    "observe", "shadow", "extender", "own-loops", "extender-and-own-loops", "gpu", "webhook", "advisor", "rebalancer",
    "autoscaler", "kube-prometheus", "prometheus-network-policy", "local",
)  # fmt: skip
OPERATORS: Final = Path(__file__).with_name("operators.yaml")
EVERYTHING: Final = {
    "resources": ["overlays/gpu", "base/extender"],
    "components": [
        "components/webhook",
        "components/advisor",
        "components/rebalancer",
        "components/autoscaler",
        "components/autoscaler-writes",
        "components/shards",
        "components/external-metrics",
        "components/pushgateway",
        "components/signed-models",
        "components/certificates-by-cert-manager",
        "components/webhook-certificate-by-cert-manager",
    ],
}
"""All parts at once, with what no overlay has."""


CRITICAL: Final = {"scopeName": "PriorityClass", "operator": "In", "values": ["system-cluster-critical"]}
ONLY_BY_QUOTA: Final = {
    "apiVersion": "apiserver.config.k8s.io/v1",
    "kind": "AdmissionConfiguration",
    "plugins": [
        {
            "name": "ResourceQuota",
            "configuration": {
                "apiVersion": "apiserver.config.k8s.io/v1",
                "kind": "ResourceQuotaConfiguration",
                "limitedResources": [{"resource": "pods", "matchScopes": [CRITICAL]}],
            },
        }
    ],
}
"""Pods of that priority are admitted where a quota names it and nowhere else, as on GKE."""


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    file = tmp_path_factory.mktemp("plane") / "admission.yaml"
    file.write_text(yaml.safe_dump(ONLY_BY_QUOTA))
    with ControlPlane(api_server_arguments=[f"--admission-control-config-file={file}"]) as running:
        yield running


@pytest.fixture(scope="module")
def applier(plane: ControlPlane) -> Iterator[Applier]:
    with Applier(plane) as applier:
        applier.apply_all(yaml.safe_load_all(OPERATORS.read_text()))
        applier.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "monitoring"}})
        yield applier


@pytest.fixture
def apply_twice(applier: Applier) -> Iterator[Callable[[list[Manifest]], None]]:
    """Without warnings and, the second time, without changes. Claims are taken away afterwards: they never change."""
    applied: list[Manifest] = []

    def apply_twice(manifests: list[Manifest]) -> None:
        applied.extend(manifests)
        first = applier.apply_all(manifests)
        assert applier.warnings == []
        second = applier.apply_all(manifests)
        assert {path for path in first if _wanted(first[path]) != _wanted(second[path])} == set()
        assert applier.warnings == []

    yield apply_twice
    for one in applied:
        if one["kind"] == "PersistentVolumeClaim":
            applier.delete(one)


def _wanted(stored: Manifest) -> Manifest:
    """Without what the API server itself writes at any time: statuses, and who wrote what when."""
    metadata = {
        key: stored["metadata"][key] for key in stored["metadata"] if key not in ("managedFields", "resourceVersion")
    }
    return {key: stored[key] for key in stored if key != "status"} | {"metadata": metadata}


def test_all_overlays_are_tried() -> None:
    assert {place.name for place in (DEPLOY / "overlays").iterdir()} == set(OVERLAYS)


@pytest.mark.parametrize("name", OVERLAYS)
def test_an_overlay_applies_without_warnings_and_again_without_changes(
    name: str, apply_twice: Callable[[list[Manifest]], None]
) -> None:
    apply_twice(built(f"overlays/{name}"))


def test_all_parts_together_with_what_no_overlay_has(
    tmp_path: Path, apply_twice: Callable[[list[Manifest]], None]
) -> None:
    apply_twice(built_from(tmp_path / "everything", **EVERYTHING))


def test_models_in_an_object_store(tmp_path: Path, apply_twice: Callable[[list[Manifest]], None]) -> None:
    parts = [
        f"base/{part}"
        for part in ("common", "trainer", "scorer", "extender", "schedule", "advisor", "rebalancer", "autoscaler")
    ]
    manifests = built_from(tmp_path / "store", resources=parts, components=["components/models-on-object-store"])
    assert not [one for one in manifests if one["kind"] == "PersistentVolumeClaim"]
    apply_twice(manifests)


def test_the_nightly_run_writes_the_report_that_the_scorer_offers() -> None:
    manifests = built("overlays/shadow")
    [trainer] = [one["spec"]["jobTemplate"]["spec"]["template"] for one in manifests if one["kind"] == "CronJob"]
    [scorer] = [
        one["spec"]["template"]
        for one in manifests
        if one["kind"] == "Deployment" and one["metadata"]["name"] == "forecast-scheduler-scorer"
    ]
    paths, volumes = [], []
    for template, name in ((trainer, "TRAIN__PEAKS_REPORT"), (scorer, "SCORER__REPORT")):
        [container] = template["spec"]["containers"]
        env = {one["name"]: one.get("value") for one in container["env"]}
        paths.append(env[f"FORECAST_SCHEDULER_{name}"])
        [mount] = [one for one in container["volumeMounts"] if str(paths[-1]).startswith(one["mountPath"] + "/")]
        [volume] = [one for one in template["spec"]["volumes"] if one["name"] == mount["name"]]
        volumes.append(volume["persistentVolumeClaim"]["claimName"])
    assert paths[0] == paths[1]
    assert volumes[0] == volumes[1]


def test_what_scrapes_all_parts_applies(tmp_path: Path, apply_twice: Callable[[list[Manifest]], None]) -> None:
    """`our-prometheus` of the page; tests/deploy/test_scraping.py holds it against what is installed."""
    manifests = built_as_shown(tmp_path, file_shown("operate/deployment.md", "our-prometheus/kustomization.yaml"))
    assert {one["metadata"]["name"] for one in manifests if one["kind"] == "ServiceMonitor"} == {
        f"forecast-scheduler-{part}"
        for part in ("scorer", "schedule", "advisor", "rebalancer", "autoscaler", "extender", "webhook", "pushgateway")
    }
    apply_twice(manifests)


@pytest.mark.parametrize("overlay", ["shadow", "own-loops", "advisor", "rebalancer", "autoscaler"])
def test_a_store_behind_a_proxy_finds_token_authority_and_port(
    overlay: str, tmp_path: Path, apply_twice: Callable[[list[Manifest]], None]
) -> None:
    """As docs/operate/prometheus.md sets it up."""
    page = "operate/prometheus.md"
    settings = block_about(page, "bearer_token_file")["prometheus"]
    shown, policy = block_about(page, "kind: CronJob"), block_about(page, "kind: NetworkPolicy")
    shown["resources"] = [one.replace("overlays/shadow", f"overlays/{overlay}") for one in shown["resources"]]
    (tmp_path / "thanos.yaml").write_text(yaml.safe_dump(policy))
    manifests = built_as_shown(tmp_path, shown)
    [expression] = policy["spec"]["podSelector"]["matchExpressions"]
    [rule] = policy["spec"]["egress"]
    assert [port["port"] for port in rule["ports"]] == [urlsplit(settings["url"]).port]
    asking = {pod["metadata"]["name"]: pod["spec"] for pod in _pods(manifests)}
    asking.pop("forecast-scheduler-webhook", None)  # it reads no metrics
    assert len(asking) == 3 and set(asking) <= set(expression["values"])
    for pod in asking.values():
        [mount] = [one for one in pod["containers"][0]["volumeMounts"] if one["name"] == "thanos"]
        [volume] = [one for one in pod["volumes"] if one["name"] == "thanos"]
        authority, token = volume["projected"]["sources"]
        assert settings["bearer_token_file"] == f"{mount['mountPath']}/{token['serviceAccountToken']['path']}"
        made = f"create configmap {authority['configMap']['name']} --from-file={Path(settings['ca_file']).name}="
        assert made in (DEPLOY.parent / "docs" / page).read_text()
        assert Path(settings["ca_file"]).parent == Path(mount["mountPath"])
    apply_twice(manifests)


def test_the_webhook_goes_over_to_cert_manager_and_back(tmp_path: Path, applier: Applier) -> None:
    """Its Deployment as docs/operate/webhook.md says: nothing of the other way is left in it."""
    managed = built("overlays/webhook")
    by_cert_manager = built_from(
        tmp_path / "webhook",
        resources=["overlays/webhook"],
        components=["components/webhook-certificate-by-cert-manager"],
    )

    def template_after(manifests: list[Manifest]) -> Manifest:
        applier.apply_all(manifests)
        [deployment] = [one for one in manifests if one["kind"] == "Deployment"]
        return dict(applier.read(deployment)["spec"]["template"])

    before, between, after = (template_after(one) for one in (managed, by_cert_manager, managed))
    assert before == after != between
    assert applier.warnings == []


@pytest.mark.parametrize("name", ["examples/services.yaml", "examples/jobs.yaml", "examples/gpus.yaml"])
def test_an_example_applies(name: str, applier: Applier) -> None:
    for one in yaml.safe_load_all((DEPLOY / name).read_text()):
        applier.apply({**one, "metadata": {"namespace": "default"} | one["metadata"]})
    assert applier.warnings == []


def _pods(manifests: list[Manifest]) -> list[Manifest]:
    """One pod as each controller would make it."""
    templates = {
        one["metadata"]["name"]: (one["spec"].get("jobTemplate", one)["spec"]["template"])
        for one in manifests
        if one["kind"] in ("Deployment", "CronJob")
    }
    metadata = {"namespace": "forecast-scheduler"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "spec": one["spec"],
            "metadata": one["metadata"] | metadata | {"name": name},
        }
        for name, one in templates.items()
    ]


def _is_admitted(pod: Manifest, applier: Applier) -> bool:
    """Or no quota names its priority. Tried without making it."""
    path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods?dryRun=All"
    try:
        applier.send("POST", path, pod, kind="application/json")
    except NotApplied as refused:
        if "insufficient quota to match these scopes" not in refused.message:
            raise
        return False
    return True


def test_the_namespace_admits_our_pods_and_none_that_asks_for_more(tmp_path: Path, applier: Applier) -> None:
    manifests = built_from(tmp_path / "pods", **EVERYTHING)
    applier.apply_all(one for one in manifests if one["kind"] in ("Namespace", "ServiceAccount"))
    pods = _pods(manifests)
    critical = next(pod for pod in pods if "priorityClassName" in pod["spec"])
    [quota] = [one for one in manifests if one["kind"] == "ResourceQuota"]
    applier.delete(quota)  # the API server's admission hears of quotas a moment later
    assert eventually(lambda: not _is_admitted(critical, applier))
    applier.apply(quota)
    assert eventually(lambda: _is_admitted(critical, applier))
    assert {pod["metadata"]["name"] for pod in pods} == {
        f"forecast-scheduler-{part}"
        for part in (
            "trainer",
            "scorer",
            "extender",
            "schedule",
            "advisor",
            "rebalancer",
            "autoscaler",
            "webhook",
            "pushgateway",
        )
    }
    for pod in pods:
        applier.apply(pod)
        as_root = copy.deepcopy(pod)
        as_root["metadata"]["name"] += "-as-root"
        as_root["spec"]["securityContext"] |= {"runAsUser": 0, "runAsNonRoot": False}
        with pytest.raises(NotApplied, match='violates PodSecurity "restricted') as refused:
            applier.apply(as_root)
        assert refused.value.status == 403
    assert applier.warnings == []
