"""Every overlay, and every component in some overlay, on a real API server: applied server-side, without a warning, and
applied again without a change. What runs in our namespace is admitted under the Pod Security Standard `restricted`."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.processes.scorer_process import eventually
from tests.servers.applying import Applier, NotApplied
from tests.servers.control_plane.control_plane import ControlPlane
from tests.servers.kustomize import DEPLOY, built, built_from

Manifest = dict[str, Any]

OVERLAYS: Final = (
    "shadow", "extender", "own-loops", "gpu", "webhook", "kube-prometheus", "prometheus-network-policy", "local",
)  # fmt: skip
OPERATORS: Final = Path(__file__).with_name("operators.yaml")
EVERYTHING: Final = {
    "resources": ["crds", "overlays/gpu", "base/extender", "base/webhook"],
    "components": [
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
    parts = [f"base/{part}" for part in ("common", "trainer", "scorer", "extender", "schedule")]
    manifests = built_from(tmp_path / "store", resources=parts, components=["components/models-on-object-store"])
    assert not [one for one in manifests if one["kind"] == "PersistentVolumeClaim"]
    apply_twice(manifests)


def _patches_of(page: str, about: str) -> list[Manifest]:
    """The YAML block of a page that says `about`."""
    text = (DEPLOY.parent / "docs" / page).read_text()
    [block] = [one for one in re.findall(r"```yaml\n(.*?)```", text, flags=re.DOTALL) if about in one]
    return list(yaml.safe_load(block)["patches"])


def test_the_report_of_the_page_follows_the_nightly_run(
    tmp_path: Path, apply_twice: Callable[[list[Manifest]], None]
) -> None:
    patches = _patches_of("deployment.md", "value: report")
    manifests = built_from(tmp_path / "report", resources=["overlays/shadow"], patches=patches)
    [job] = [one["spec"]["jobTemplate"]["spec"] for one in manifests if one["kind"] == "CronJob"]
    [trainer], [report] = job["template"]["spec"]["initContainers"], job["template"]["spec"]["containers"]
    assert (trainer["args"][0], report["args"][0]) == ("train", "report")
    assert {key: trainer[key] for key in trainer if key not in ("name", "args")} == {
        key: report[key] for key in report if key not in ("name", "args")
    }
    apply_twice(manifests)


def test_with_cert_manager_the_webhook_is_scraped_by_the_secret_that_it_makes(tmp_path: Path) -> None:
    """As docs/certificates.md patches its ServiceMonitor: the operator drops one whose Secret is not there."""
    patches = _patches_of("certificates.md", "kind: ServiceMonitor")
    manifests = built_from(tmp_path / "scraped", resources=["overlays/kube-prometheus"], patches=patches)
    [monitor] = [one for one in manifests if one["metadata"]["name"] == "forecast-scheduler-webhook"]
    [endpoint] = monitor["spec"]["endpoints"]
    named = endpoint["tlsConfig"]["ca"]["secret"]["name"]
    made = built_from(
        tmp_path / "made", components=["components/webhook-certificate-by-cert-manager"], resources=["overlays/webhook"]
    )
    shown = next(one for one in made if one["kind"] == "Certificate" and one["spec"].get("dnsNames"))
    assert (named, endpoint["tlsConfig"]["serverName"]) == (shown["spec"]["secretName"], shown["spec"]["dnsNames"][0])


def test_the_webhook_goes_over_to_cert_manager_and_back(tmp_path: Path, applier: Applier) -> None:
    """Its Deployment as docs/certificates.md says: nothing of the other way is left in it."""
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


def _as_root(pod: Manifest) -> None:
    pod["spec"]["securityContext"] |= {"runAsUser": 0, "runAsNonRoot": False}


def _with_capabilities(pod: Manifest) -> None:
    del pod["spec"]["containers"][0]["securityContext"]["capabilities"]


def _on_the_host(pod: Manifest) -> None:
    pod["spec"]["hostNetwork"] = True


def _without_seccomp(pod: Manifest) -> None:
    del pod["spec"]["securityContext"]["seccompProfile"]


def _with_a_host_path(pod: Manifest) -> None:
    pod["spec"]["volumes"].append({"name": "host", "hostPath": {"path": "/"}})


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
    assert eventually(lambda: not _is_admitted(critical, applier), 30)
    applier.apply(quota)
    assert eventually(lambda: _is_admitted(critical, applier), 30)
    assert {pod["metadata"]["name"] for pod in pods} == {
        f"forecast-scheduler-{part}" for part in ("trainer", "scorer", "extender", "schedule", "webhook", "pushgateway")
    }
    for pod in pods:
        applier.apply(pod)
        for worse in (_as_root, _with_capabilities, _on_the_host, _without_seccomp, _with_a_host_path):
            changed = copy.deepcopy(pod)
            changed["metadata"]["name"] += "-worse"
            worse(changed)
            with pytest.raises(NotApplied, match='violates PodSecurity "restricted') as refused:
                applier.apply(changed)
            assert refused.value.status == 403
    assert applier.warnings == []
