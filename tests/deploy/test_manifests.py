"""What every manifest of ours has to say, whoever writes it: security, probes, resources, images, selectors, ports."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from forecast_scheduler.settings.document import load_settings
from testing.servers.kustomize import DEPLOY, built
from tests.deploy.rights import command_of

Manifest = dict[str, Any]

OVERLAYS: Final = (
    "observe", "shadow", "extender", "own-loops", "extender-and-own-loops", "gpu", "webhook", "advisor", "rebalancer",
    "autoscaler", "local",
)  # fmt: skip
NAMESPACE: Final = "forecast-scheduler"
SETTINGS: Final = "/etc/forecast-scheduler/settings.yaml"
DNS: Final = {53, 5353}
API_SERVER: Final = {443, 6443}
PROMETHEUS: Final = 9090
ADVISOR: Final = 8890
ANYBODY: Final[list[Manifest]] = []
NEIGHBOURS: Final[list[Manifest]] = [{"podSelector": {}}]
FROM: Final = {
    "scorer": NEIGHBOURS, "schedule": NEIGHBOURS, "advisor": NEIGHBOURS, "rebalancer": NEIGHBOURS,
    "autoscaler": NEIGHBOURS,
    "extender": ANYBODY, "webhook": ANYBODY,
}  # fmt: skip
"""Who may send: the extender and the webhook are asked from the host network, which no selector names."""

_built = cache(built)


@pytest.fixture(params=OVERLAYS)
def manifests(request: pytest.FixtureRequest) -> list[Manifest]:
    return _built(f"overlays/{request.param}")


def _workloads(manifests: list[Manifest]) -> Iterator[tuple[Manifest, Manifest]]:
    """Object and pod template."""
    for one in manifests:
        if one["kind"] in ("Deployment", "CronJob"):
            yield one, one["spec"].get("jobTemplate", one)["spec"]["template"]


def _of_kind(manifests: list[Manifest], kind: str) -> list[Manifest]:
    return [one for one in manifests if one["kind"] == kind]


def test_images_are_of_a_version_and_named_in_one_place(manifests: list[Manifest]) -> None:
    images = {container["image"] for _, pod in _workloads(manifests) for container in pod["spec"]["containers"]}
    assert images == {"forecast-scheduler:0.1.0"}
    naming = [path for path in DEPLOY.rglob("*.yaml") if "newTag: 0.1.0" in path.read_text().partition("kind:")[2]]
    assert naming == [DEPLOY / "components" / "image" / "kustomization.yaml"]


def test_containers_run_as_nobody_and_write_nowhere_but_where_they_must(manifests: list[Manifest]) -> None:
    for _, template in _workloads(manifests):
        pod = template["spec"]
        security = pod["securityContext"]
        assert (security["runAsNonRoot"], security["runAsUser"], security["runAsGroup"]) == (True, 65532, 65532)
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        [container] = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        mounted = {one["name"] for one in container["volumeMounts"]}
        assert mounted == {one["name"] for one in pod["volumes"]}
        assert all("sizeLimit" in one["emptyDir"] for one in pod["volumes"] if "emptyDir" in one)


def test_containers_say_what_they_need_and_whether_they_are_well(manifests: list[Manifest]) -> None:
    for workload, template in _workloads(manifests):
        [container] = template["spec"]["containers"]
        assert {"cpu", "memory"} <= set(container["resources"]["requests"])
        assert "memory" in container["resources"]["limits"]
        if workload["kind"] == "Deployment":
            assert {"livenessProbe", "readinessProbe", "startupProbe"} <= set(container)
            assert template["spec"]["priorityClassName"] == "system-cluster-critical"
            assert template["spec"]["topologySpreadConstraints"]
            [budget] = [
                one for one in _of_kind(manifests, "PodDisruptionBudget")
                if one["metadata"]["name"] == workload["metadata"]["name"]
            ]  # fmt: skip
            assert budget["spec"]["selector"] == workload["spec"]["selector"]
            assert budget["spec"]["minAvailable"] < workload["spec"]["replicas"]


def test_liveness_is_asked_on_the_port_of_probes(manifests: list[Manifest]) -> None:
    for one, template in _workloads(manifests):
        for container in template["spec"]["containers"] if one["kind"] == "Deployment" else []:
            (port,) = {container[probe]["httpGet"]["port"] for probe in ("livenessProbe", "startupProbe")}
            assert {"name": "FORECAST_SCHEDULER_SERVING__PROBE_PORT", "value": str(port)} in container["env"]
            assert port not in {listed["containerPort"] for listed in container["ports"]}


def test_services_select_pods_and_their_ports(manifests: list[Manifest]) -> None:
    ports = {
        workload["metadata"]["name"]: (
            template["metadata"]["labels"],
            template["spec"]["containers"][0].get("ports", []),
        )
        for workload, template in _workloads(manifests)
    }
    for service in _of_kind(manifests, "Service"):
        [(labels, those)] = [
            (labels, those) for labels, those in ports.values() if service["spec"]["selector"].items() <= labels.items()
        ]
        assert {one["targetPort"] for one in service["spec"]["ports"]} == {one["name"] for one in those}
        assert service["metadata"]["labels"].items() <= labels.items()  # a ServiceMonitor selects by the same


def test_accounts_are_their_own_and_the_trainer_has_no_token(manifests: list[Manifest]) -> None:
    accounts = {one["metadata"]["name"] for one in _of_kind(manifests, "ServiceAccount")}
    used = {workload["metadata"]["name"]: template["spec"] for workload, template in _workloads(manifests)}
    assert {pod["serviceAccountName"] for pod in used.values()} == accounts == set(used)
    if trainer := used.get("forecast-scheduler-trainer"):
        assert trainer["automountServiceAccountToken"] is False


def test_settings_are_settings_and_listen_where_the_manifests_say(manifests: list[Manifest]) -> None:
    settings = load_settings(DEPLOY / "base" / "common" / "settings.yaml", {})
    assert settings.prometheus.url and settings.prometheus.url.endswith(f":{PROMETHEUS}")
    for workload, template in _workloads(manifests):
        if workload["kind"] == "Deployment":
            part = workload["metadata"]["name"].removeprefix("forecast-scheduler-")
            serving = getattr(settings, command_of(part)).serving
            [container] = template["spec"]["containers"]
            assert [one["containerPort"] for one in container["ports"]] == [serving.port]
            assert container["args"][0] == command_of(part)
            assert container["args"][container["args"].index("--config") + 1] == SETTINGS
            [mount] = [one for one in container["volumeMounts"] if one["mountPath"] == str(Path(SETTINGS).parent)]
            [volume] = [one for one in template["spec"]["volumes"] if one["name"] == mount["name"]]
            assert volume["configMap"]["name"] in {one["metadata"]["name"] for one in _of_kind(manifests, "ConfigMap")}
            assert template["spec"]["terminationGracePeriodSeconds"] > serving.drain + 15
            is_checked = serving.kubernetes_auth or serving.client_ca or part == "webhook"
            assert is_checked, "anybody could ask it"


def test_traffic_is_let_through_where_it_is_needed_and_nowhere_else(manifests: list[Manifest]) -> None:
    """By part: ports in and from whom, ports out; names are looked up by all."""
    policies = [one for one in _of_kind(manifests, "NetworkPolicy") if one["metadata"]["namespace"] == NAMESPACE]
    [closed] = [one["spec"] for one in policies if one["metadata"]["name"] == "default-deny"]
    assert closed == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    for workload, template in _workloads(manifests):
        part = workload["metadata"]["name"].removeprefix("forecast-scheduler-")
        mine = [
            one["spec"] for one in policies
            if one["spec"]["podSelector"].get("matchLabels", {}).items() <= template["metadata"]["labels"].items()
        ]  # fmt: skip
        rules_in, rules_out = ([rule for one in mine for rule in one.get(way, [])] for way in ("ingress", "egress"))
        let_in, let_out = (
            {port["port"] for rule in rules for port in rule["ports"]} for rules in (rules_in, rules_out)
        )
        assert let_in == {one["containerPort"] for one in template["spec"]["containers"][0].get("ports", [])}
        assert [rule.get("from", ANYBODY) for rule in rules_in] == ([FROM[part]] if part in FROM else [])
        asks_api_server = set() if part == "trainer" else API_SERVER
        asks_prometheus = set() if part == "webhook" else {PROMETHEUS}
        is_advised = any(one["metadata"]["name"] == "forecast-scheduler-advisor" for one in manifests)
        asks_advisor = {ADVISOR} if part == "webhook" and is_advised else set()
        assert let_out == DNS | asks_api_server | asks_prometheus | asks_advisor


def test_other_namespaces_are_closed_to_nobody_unless_that_is_all_an_overlay_is_for() -> None:
    """The first policy that selects a pod shuts everybody else out."""
    elsewhere = {
        place.name
        for place in (DEPLOY / "overlays").iterdir()
        for one in _of_kind(_built(f"overlays/{place.name}"), "NetworkPolicy")
        if one["metadata"]["namespace"] != NAMESPACE
    }
    assert elsewhere == {"prometheus-network-policy"}
    assert [one["kind"] for one in _built("overlays/prometheus-network-policy")] == ["NetworkPolicy"]


def test_the_extender_in_the_cluster_is_asked_as_the_one_beside_kube_scheduler() -> None:
    """Only where it is and how its certificate is checked differ."""
    beside, inside = (
        yaml.safe_load((DEPLOY / "kube-scheduler" / name).read_text())
        for name in ("scheduler-config.yaml", "extender-in-cluster.yaml")
    )
    for one in (beside, inside):
        [extender] = one["extenders"]
        assert set(extender.pop("tlsConfig")) - {"serverName"} == {"caFile", "certFile", "keyFile"}
        assert extender.pop("urlPrefix").startswith("https://")
    assert beside == inside


def test_certificates_are_good_for_the_names_by_which_the_extender_is_called() -> None:
    path = Path("components") / "certificates-by-cert-manager" / "certificates.yaml"
    certificates = [one for one in yaml.safe_load_all((DEPLOY / path).read_text()) if one["kind"] == "Certificate"]
    served = {name: one for one in certificates for name in one["spec"].get("dnsNames", ())}
    [extender] = yaml.safe_load((DEPLOY / "kube-scheduler" / "extender-in-cluster.yaml").read_text())["extenders"]
    assert extender["tlsConfig"]["serverName"] in served
    [deployment] = _of_kind(_built("overlays/extender"), "Deployment")[:1]
    volumes = {one["name"]: one for one in deployment["spec"]["template"]["spec"]["volumes"]}
    assert volumes["tls"]["secret"]["secretName"] == served[extender["tlsConfig"]["serverName"]]["spec"]["secretName"]


def test_observe_reads_and_needs_no_certificates() -> None:
    manifests = _built("overlays/observe")
    parts = {one["metadata"]["name"] for one, _ in _workloads(manifests)}
    assert parts == {"forecast-scheduler-scorer", "forecast-scheduler-trainer"}
    assert not {one["kind"] for one in manifests} & {"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}
    bound = {one["roleRef"]["name"] for one in _of_kind(manifests, "ClusterRoleBinding")}
    granted = [one for one in _of_kind(manifests, "ClusterRole") if one["metadata"]["name"] in bound]
    assert {verb for role in granted for rule in role["rules"] for verb in rule["verbs"]} == {"list", "watch"}
    assert bound - {role["metadata"]["name"] for role in granted} == {"system:auth-delegator"}
    secrets = [volume for _, template in _workloads(manifests) for volume in template["spec"]["volumes"]
               if "secret" in volume]  # fmt: skip
    assert secrets == []
